"""Whose bytes make commits long rests between them, while others report. Pure.

A commit is synced as a whole: a company whose reports are large, or become much, has all others wait for its bytes. As
long as a commit took for them the company then waits, so that in between others have commits without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from terrazzo.ingest.backlog import Share

_LONG_S = 0.025  # what a commit may take for bytes without anybody's resting for it
_MOST_S = 0.5
_LATELY_S = 1.0  # who has had something stored since then is waited for


class DiskTurns:
    """The companies that rest, and until when; ``rests`` counts how often one did."""

    def __init__(self) -> None:
        self.rests = 0
        self._until: dict[str, float] = {}

    def __bool__(self) -> bool:
        return bool(self._until)

    @staticmethod
    def is_long(seconds: float) -> bool:
        """Whether anybody may have to rest for a commit that took so long."""
        return seconds > _LONG_S

    def is_resting(self, owner: str) -> bool:
        """Whether nothing of a company is to go into the next commit."""
        return owner in self._until

    def begin(self, sizes: Mapping[Share, int], seconds: float, others: Iterable[Share], now_s: float) -> None:
        """A commit begins that is expected to take so long: what comes of them meanwhile isn't for the next one.

        Who rests already and has bytes in it, of before the rest, doesn't come back while it is under way, either.
        """
        resting = {share.owner for share in sizes} & set(self._until)
        for owner in resting.union(self._whose(sizes, seconds, others, now_s)):
            self._until[owner] = now_s + seconds + _MOST_S  # if nothing is heard of the commit

    def note(self, sizes: Mapping[Share, int], seconds: float, others: Iterable[Share], now_s: float) -> None:
        """A commit took so long for so many bytes of each company.

        Args:
            sizes: by whose they are.
            seconds: what it took beyond what a commit takes in any case.
            others: all shares there are.
            now_s: the clock's, as in ``Share.stored_s``.
        """
        for share in sizes:
            self._until.pop(share.owner, None)
        resting = self._whose(sizes, seconds, others, now_s)
        self.rests += len(resting)
        self._until.update({owner: now_s + min(_MOST_S, rest_s) for owner, rest_s in resting.items()})

    def _whose(
        self, sizes: Mapping[Share, int], seconds: float, others: Iterable[Share], now_s: float
    ) -> dict[str, float]:
        """Those who have to rest for a commit, and how long."""
        total = sum(sizes.values())
        if not self.is_long(seconds) or not total:
            return {}
        active = {share.owner for share in others if share.messages or now_s - share.stored_s < _LATELY_S}
        parts = {share.owner: seconds * size / total for share, size in sizes.items()}
        return {owner: part_s for owner, part_s in parts.items() if self.is_long(part_s) and active - {owner}}

    def end(self, now_s: float) -> None:
        """Lets go whose rest is over."""
        self._until = {owner: until_s for owner, until_s in self._until.items() if until_s > now_s}

    def end_all(self) -> None:
        """Lets all go."""
        self._until.clear()

    @property
    def next_s(self) -> float | None:
        """When the first rest ends; None: nobody rests."""
        return min(self._until.values(), default=None)
