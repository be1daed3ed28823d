"""What terminals reported that were deleted: it is found out whose it is, and ends after a time of its own."""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import aclosing

import msgspec

from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import MARK, series_name_in
from terrazzo.metadata.former_terminals import FormerTerminal, FormerTerminals
from terrazzo.ports.store import NotReplaceable, Seen, TimeSeriesStore
from terrazzo.sparse_log import SparseLog
from terrazzo.times import LATEST_US

_NOTE = "former-terminals"
_AT_ONCE = 100  # terminals whose reports one run ends

_log = logging.getLogger(__name__)


class FormerDataStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    purged_terminals: int = 0  # of which nothing is left
    purged_records: int = 0


async def note_former_terminals(
    store: TimeSeriesStore, former: FormerTerminals, registry: Registry, time_us: int
) -> None:
    """Notes, once for a store, the terminals that were deleted before such deletions were kept.

    Without that a new terminal with such a uid would go on with their series. May be cut off anywhere.

    Raises:
        StoreUnavailable: the store can't say what it has.
    """
    if await store.notes(_NOTE):
        return
    names = {series_name_in(each) for kind in ("g/", "x/") for each in await store.series(kind)}
    gone = sorted(name for name in names if MARK not in name and registry.terminal(name) is None)
    added = await former.add_found(gone, time_us)
    if added:
        _log.info("%d terminals that were deleted before still have records: they stay their companies' own", added)
    await store.append([], notes={_NOTE: b"1"})


class FormerDataRetention:
    """Deletes what deleted terminals reported, ``retention_us`` after their deletion, a bounded piece at a time."""

    def __init__(
        self, store: TimeSeriesStore, former: FormerTerminals, *, retention_us: int, clock: Callable[[], int]
    ) -> None:
        self.stats = FormerDataStats()
        self._store = store
        self._former = former
        self._retention_us = retention_us
        self._clock = clock
        self._refusal_log = SparseLog(_log)

    async def run(self) -> None:
        """Ends the reports of all that are due; what is cut off goes on with the next run."""
        while due := await self._former.unpurged_before(self._clock() - self._retention_us, _AT_ONCE):
            for each in due:
                try:
                    await self._purge(each)
                except NotReplaceable as error:
                    self._refusal_log.warning("what deleted terminals reported stays: %s", error)
                    return
                await self._former.set_purged(each, self._clock())
                self.stats.purged_terminals += 1

    async def _purge(self, former: FormerTerminal) -> None:
        for series in [*await self._store.series(f"g/{former.series}/"), f"x/{former.series}"]:
            while await self._purge_piece(series):
                pass

    async def _purge_piece(self, series: str) -> bool:
        """Deletes the oldest piece of a series; False: there is none."""
        async with aclosing(self._store.scan([series], 0, LATEST_US)) as found:
            piece = await anext(found, None)
        if piece is None:
            return False
        start_us, end_us = piece[0].time_us, piece[-1].time_us
        count = (await self._store.page([series], start_us, end_us, offset=0, limit=0)).total
        if await self._store.replace(series, start_us, end_us, [], given=Seen([series], count)):
            self.stats.purged_records += count
        return True
