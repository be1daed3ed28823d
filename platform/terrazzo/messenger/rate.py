"""A project's rate limit: at most ``per_minute`` messages within any 60 seconds, of which companies have shares."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable

MINUTE_US = 60_000_000


class RateWindow:
    """A sliding window over the last attempts: time in UTC microseconds, and company. ``per_minute`` 0: no limit."""

    def __init__(self, per_minute: int, attempts: Iterable[tuple[int, int]] = ()) -> None:
        self._per_minute = per_minute
        self._attempts: deque[tuple[int, int]] = deque()
        self._of_company: Counter[int] = Counter()
        for now_us, company_id in sorted(attempts):
            self.take(now_us, company_id)

    def free_us(self, now_us: int) -> int:
        """When the next message may be sent: ``now_us`` or later."""
        if not self._per_minute or len(self._attempts) < self._per_minute:
            return now_us
        return max(now_us, self._attempts[0][0] + MINUTE_US)

    def take(self, now_us: int, company_id: int) -> None:
        """Counts a company's message that is sent now."""
        if not self._per_minute:
            return
        if len(self._attempts) == self._per_minute:
            _, former = self._attempts.popleft()
            self._of_company[former] -= 1
            if not self._of_company[former]:
                del self._of_company[former]
        self._attempts.append((now_us, company_id))
        self._of_company[company_id] += 1

    def has_share(self, company_id: int, waiting: int) -> bool:
        """Whether a company with so many that wait has sent less than its even share with the others that sent some."""
        companies = len(self._of_company.keys() | {company_id})
        return self._of_company[company_id] + waiting < max(1, self._per_minute // companies)
