"""What the parts of the analysis share: the seams they work on, the scripts, and how far each job is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from importlib import import_module

import msgspec

from terrazzo.analysis.known_progress import KnownProgress
from terrazzo.analysis.late_records import LateMarks
from terrazzo.analysis.periods import Calendar
from terrazzo.analysis.scripts import ScriptCatalogue
from terrazzo.analysis.statistics_rows import StatisticsRows
from terrazzo.analysis.summarizer import Summarizer
from terrazzo.analysis.tally import Summary
from terrazzo.compute_thread import ComputeThread
from terrazzo.database.database import Database
from terrazzo.loop_pauses import next_turn
from terrazzo.mosaic.body import parse_mosaic
from terrazzo.ports.store import StoreUnavailable, TimeSeriesStore, Value
from terrazzo.reasons import say
from terrazzo.times import DAY_US

DELAY_US = 10_000_000  # how long after its end a period is computed: most of what is on its way has come then
HISTORY_US = 3_660 * DAY_US
_RECORDS_AT_ONCE = 500  # that hold the event loop
_LOOKS_BACK_US = (DAY_US, 32 * DAY_US)


class AnalysisContext(msgspec.Struct, frozen=True, kw_only=True):
    """What the jobs work with: the store, the database, the scripts, and how far each job has come."""

    store: TimeSeriesStore
    database: Database
    calendar: Calendar
    catalogue: ScriptCatalogue
    marks: LateMarks
    clock: Callable[[], int]
    retention_us: Callable[[int], int]  # by object: what is older isn't in the store any more; 0: everything is
    progress: KnownProgress = msgspec.field(default_factory=KnownProgress)
    computing: ComputeThread = msgspec.field(default_factory=ComputeThread)

    def horizon_us(self, object_id: int) -> int:
        """The earliest time that is computed of an object, in UTC microseconds."""
        return max(0, self.clock() - (self.retention_us(object_id) or HISTORY_US))

    def ensure_whole(self) -> None:
        """Raises ``StoreUnavailable`` while the store doesn't show all that was appended: it would be missing."""
        if not self.store.is_whole:
            raise StoreUnavailable(say("records_on_their_way"))

    async def fence(self, company_id: int, object_id: int, until_us: int) -> None:
        """From now on what comes earlier than a time is marked; what came before is there to be read.

        Raises:
            StoreUnavailable: it isn't yet.
        """
        await self.marks.fence(company_id, object_id, until_us)
        self.ensure_whole()

    async def first_us(self, object_id: int, codes: Collection[str], after_us: int) -> int | None:
        """The time of the first record that carries one of the codes, not earlier than ``after_us``."""
        record = await self.store.first_after([series_of(object_id)], after_us - 1, keys=tuple(codes))
        return None if record is None else record.time_us

    async def carried(self, object_id: int, codes: Sequence[str], before_us: int) -> dict[str, Value]:
        """What each code was just before a time; one that no record carries is absent."""
        found: dict[str, Value] = {}
        for code in codes:
            for back_us in (*_LOOKS_BACK_US, before_us):
                start_us = max(0, before_us - back_us)
                page = await self.store.page(
                    [series_of(object_id)], start_us, before_us - 1, offset=0, limit=1, keys=(code,)
                )
                if page.records:
                    found[code] = parse_mosaic(page.records[0].body).get(code)
                    break
        return found

    async def summarize(
        self, statistics_rows: StatisticsRows, object_id: int, bounds: Sequence[int], carried: Mapping[str, Value]
    ) -> list[Summary]:
        """A summary for each of consecutive periods; others have their turn meanwhile.

        From a digest where that says enough, else from all records: how long a value held only these tell.
        """
        if not statistics_rows.watched:
            found = await self._from_digests(statistics_rows.codes, object_id, bounds)
            if found is not None:
                return found
        summarizer = Summarizer(statistics_rows, bounds, carried)
        async for piece in self.store.scan(
            [series_of(object_id)], bounds[0], bounds[-1] - 1, keys=statistics_rows.codes
        ):
            for at in range(0, len(piece), _RECORDS_AT_ONCE):
                summarizer.feed(piece[at : at + _RECORDS_AT_ONCE])
                await next_turn()
        return summarizer.finish()

    async def _from_digests(self, codes: Sequence[str], object_id: int, bounds: Sequence[int]) -> list[Summary] | None:
        await asyncio.to_thread(import_module, "terrazzo.analysis.digest_summarizer")  # its library is heavy
        from terrazzo.analysis.digest_summarizer import DigestSummarizer

        summarizer, series = DigestSummarizer(bounds), series_of(object_id)
        pieces = self.store.digests(series, codes, bounds[0], bounds[-1] - 1, undivided=summarizer.undivided)
        async with aclosing(pieces) as found:
            async for piece in found:
                if not await self.computing.run(summarizer.feed, piece):
                    return None
        return summarizer.finish()


def series_of(object_id: int) -> str:
    """The name of an object's mosaic series, ``m/<object_id>``."""
    return f"m/{object_id}"
