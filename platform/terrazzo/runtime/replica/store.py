"""``ReadStore``: a follower's store as reads see it; changes come through the log alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from terrazzo.errors import Unavailable
from terrazzo.ports.store import NO_NOTES, Notes, Record, Seen, TimeSeriesStore
from terrazzo.reasons import say


class ReadStore:
    """``TimeSeriesStore`` whose changes are refused."""

    def __init__(self, store: TimeSeriesStore) -> None:
        self._store = store
        self.stats, self.kept, self.give_up = store.stats, store.kept, store.give_up
        self.sizes, self.watch = store.sizes, store.watch
        self.notes, self.series, self.check = store.notes, store.series, store.check
        self.latest, self.latest_each, self.first_after = store.latest, store.latest_each, store.first_after
        self.page, self.scan, self.names, self.columns = store.page, store.scan, store.names, store.columns
        self.digests, self.resample, self.extremes = store.digests, store.resample, store.extremes

    @property
    def has_sizes(self) -> bool:
        return self._store.has_sizes

    @property
    def is_whole(self) -> bool:
        return self._store.is_whole

    @property
    def is_replaceable(self) -> bool:
        return False

    async def append(self, records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
        raise Unavailable(say("replica_only_reads"))

    async def replace(self, series: str, start_us: int, end_us: int, records: Sequence[Record], *, given: Seen) -> bool:
        raise Unavailable(say("replica_only_reads"))

    async def drop_before(self, time_us: int, *, series: Collection[str] | None = None) -> None:
        raise Unavailable(say("replica_only_reads"))

    async def checkpoint(self, path: Path) -> None:
        raise Unavailable(say("replica_only_reads"))

    async def close(self) -> None:
        """Nothing: whoever follows the log has opened it."""
