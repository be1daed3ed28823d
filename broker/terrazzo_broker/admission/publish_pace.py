"""How many messages a second a client publishes, and the clients of an owner together."""

from __future__ import annotations

_MOST_BUCKETS = 10_000  # of owners; beyond, those that are full are forgotten


class PublishPace:
    """A bucket of tokens for each owner: so many of them come each second, and no more than that are kept.

    Clients have theirs themselves. 0 is no limit.
    """

    def __init__(self, of_client: int, of_owner: int) -> None:
        self.of_client = of_client
        self.is_limited = bool(of_client or of_owner)
        self._per_second = of_owner
        self._own: dict[str, int] = {}
        self._buckets: dict[str, tuple[float, float]] = {}  # tokens at a time

    def take(self, owner: str, count: int, now_s: float) -> float:
        """Takes a token for each message that a client has published; for how many seconds it isn't to be read."""
        limit = self.of_owner(owner)
        if not limit or not count:
            return 0.0
        tokens, seen_s = self._buckets.get(owner) or self._add(owner, now_s)
        tokens = min(float(limit), tokens + (now_s - seen_s) * limit) - count
        self._buckets[owner] = tokens, now_s
        return max(0.0, -tokens / limit)

    def of_owner(self, owner: str) -> int:
        """How many messages a second an owner's clients may publish; 0 is no limit."""
        return self._own.get(owner, self._per_second)

    def limit_owner(self, owner: str, per_second: int) -> None:
        """Gives an owner a limit of its own; 0: the one of all owners."""
        if per_second:
            self._own[owner] = per_second
        else:
            self._own.pop(owner, None)
        self._buckets.pop(owner, None)
        self.is_limited = bool(self.of_client or self._per_second or self._own)

    def _add(self, owner: str, now_s: float) -> tuple[float, float]:
        if len(self._buckets) >= _MOST_BUCKETS:
            kept = self._buckets.items()
            self._buckets = {each: bucket for each, bucket in kept if not self._is_full(each, *bucket, now_s)}
        self._buckets[owner] = float(self.of_owner(owner)), now_s
        return self._buckets[owner]

    def _is_full(self, owner: str, tokens: float, seen_s: float, now_s: float) -> bool:
        limit = self.of_owner(owner)
        return tokens + (now_s - seen_s) * limit >= limit
