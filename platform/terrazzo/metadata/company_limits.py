"""What companies' own records say of their limits: less than the configuration allows, never more."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from terrazzo.listeners import Listeners

PREFIX = "limit_"
"""What the fields of a company's record begin with; then the name of a limit as in ``limits.company_<name>``."""
NAMES = (
    "records",
    "record_bytes",
    "files",
    "file_bytes",
    "events",
    "event_bytes",
    "publish_per_second",
    "api_keys",
    "authorities",
    "rules",
    "rule_conditions",
    "rule_commands_per_hour",
    "queued_messages",
    "queued_bytes",
    "subscriptions",
    "retained_messages",
    "retained_bytes",
    "answer_bytes",
    "series_mib",
)

SERIES_MIB = f"{PREFIX}series_mib"
"""The field that says how much of the disk time series may take."""

SERIES_DAYS = "retention_series"
"""The field that says for how many days time series are kept."""


class Limit(NamedTuple):
    """How much a company may have, and what says so."""

    most: int
    key: str


class CompanyLimits:
    """The limits that companies' records have, by company; ``changes`` tells whose have changed."""

    def __init__(self) -> None:
        self.changes: Listeners[[int]] = Listeners("limits of companies")
        self._own: dict[int, dict[str, int]] = {}

    def put(self, company_id: int, row: Mapping[str, Any] | None) -> None:
        """Takes a company's record as it is now; None: it is gone."""
        own = {} if row is None else {name: most for name in NAMES if (most := row[PREFIX + name])}
        if row is not None and row.get(SERIES_DAYS):
            own[SERIES_DAYS] = row[SERIES_DAYS]
        if own == self._own.get(company_id, {}):
            return
        if own:
            self._own[company_id] = own
        else:
            del self._own[company_id]
        self.changes.tell(company_id)

    def limit(self, company_id: int, name: str, configured: int, *, off: int | None = None) -> Limit:
        """What a company may have at most.

        Args:
            name: of ``NAMES``.
            configured: by the configuration.
            off: what stands there for no limit.
        """
        own = self._own.get(company_id, {}).get(name, 0)
        if own and (own < configured or configured == off):
            return Limit(own, f"{PREFIX}{name} of the company's record")
        return Limit(configured, f"limits.company_{name}")

    def series_days(self, company_id: int | None, configured: int) -> int:
        """For how many days a company's time series are kept; 0: for ever."""
        own = 0 if company_id is None else self._own.get(company_id, {}).get(SERIES_DAYS, 0)
        return min((days for days in (own, configured) if days), default=0)

    def of(self, name: str, configured: int) -> Callable[[int], Limit]:
        """``limit`` by the company's id alone."""
        return lambda company_id: self.limit(company_id, name, configured)

    def companies(self) -> list[int]:
        """Those that have some."""
        return list(self._own)
