"""Token buckets: so many tries at once, then one each few seconds. Pure: the caller passes the time."""

from __future__ import annotations

import msgspec


class Bucket(msgspec.Struct):
    """What one key has left."""

    tokens: float
    at_s: float


class BucketSize:
    """How many tokens a bucket holds, and how fast it fills again.

    A tenth more is a reserve for the patient, who come back when they were told to. Whoever hammers takes the tokens
    down to there, and an honest one that waits finds one of those.

    Args:
        tokens: at most, without the reserve; as many come back within ``window_s``.
    """

    __slots__ = ("_most", "_reserve", "period_s")

    def __init__(self, tokens: float, window_s: float) -> None:
        self.period_s = window_s / tokens  # seconds that a token takes
        self._reserve = max(1.0, tokens / 10)
        self._most = tokens + self._reserve

    def full(self, now_s: float) -> Bucket:
        """A bucket nothing was taken of."""
        return Bucket(self._most, now_s)

    def has_token(self, bucket: Bucket, now_s: float, *, is_patient: bool) -> bool:
        """Whether a try may take one now."""
        return self._fill(bucket, now_s) >= (1 if is_patient else 1 + self._reserve)

    def wait_s(self, bucket: Bucket, now_s: float) -> float:
        """Seconds until one who waits that long may take a token: a token's time at least."""
        return max(self.period_s, (1 - self._fill(bucket, now_s)) * self.period_s)

    def free_s(self, bucket: Bucket, now_s: float) -> float:
        """Seconds until anybody may take a token."""
        return max(0.0, (1 + self._reserve - self._fill(bucket, now_s)) * self.period_s)

    def take(self, bucket: Bucket, now_s: float) -> None:
        """Takes a token."""
        bucket.tokens = self._fill(bucket, now_s) - 1

    def give_back(self, bucket: Bucket) -> None:
        """Puts a token back that was taken."""
        bucket.tokens = min(self._most, bucket.tokens + 1)

    def _fill(self, bucket: Bucket, now_s: float) -> float:
        """The tokens there are now; a clock that was set back adds none."""
        elapsed_s = max(0.0, now_s - bucket.at_s)
        bucket.tokens = min(self._most, bucket.tokens + elapsed_s / self.period_s)
        bucket.at_s = now_s
        return bucket.tokens
