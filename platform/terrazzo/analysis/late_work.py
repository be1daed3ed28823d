"""From spans of objects in which something came late to ranges that their jobs compute again."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from terrazzo.analysis.context import AnalysisContext
from terrazzo.analysis.late_records import LateSpan, joined
from terrazzo.analysis.progress import MOST_RANGES, JobRange, add_todos
from terrazzo.analysis.scripts import Job, ScriptKind
from terrazzo.analysis.statistics import StatisticsWork
from terrazzo.errors import Unavailable
from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.store import StoreUnavailable
from terrazzo.sparse_log import SparseLog

REST_US = 60_000_000  # of what failed
_SPANS_AT_ONCE = 500  # of a company, before others have their turn

_log = logging.getLogger(__name__)
_sparse = SparseLog(_log)


class LateWork:
    """Works off marks, each company's for one turn; one that fails rests, and the others go on."""

    def __init__(self, context: AnalysisContext, statistics: StatisticsWork) -> None:
        self.failures = 0
        self._context = context
        self._statistics = statistics
        self._resting: dict[str, int] = {}  # notes that failed, and until when they are left alone

    async def take(self) -> tuple[int, bool]:
        """Works some marks of each company off; how many spans they were, and whether there are more.

        From the store's notes to what is to be done again: first there, then gone here.
        """
        count, is_more, now_us = 0, False, self._context.clock()
        self._resting = {name: until_us for name, until_us in self._resting.items() if until_us > now_us}
        for company_id in self._context.marks.companies():
            begun = at_work.begin(Work("analysis", company_id))
            try:
                spans, has_more = await self._take_of(company_id)
            finally:
                at_work.end(begun)
            count, is_more = count + spans, is_more or has_more
        return count, is_more

    async def _take_of(self, company_id: int) -> tuple[int, bool]:
        names, spans, has_more = self._oldest(company_id)
        if not names:
            return 0, False
        failed: set[int] = set()
        whole = joined(spans)
        for object_id, mine in groupby(whole, key=lambda span: span[0]):
            if not await self._has_worked(object_id, list(mine)):
                failed.add(object_id)
        done = []
        marked = self._context.marks.marked(company_id)
        for name in names:
            if failed.isdisjoint(span[0] for span in marked.get(name, ())):
                done.append(name)
            else:
                self._resting[name] = self._context.clock() + REST_US
        await self._context.store.append([], notes=dict.fromkeys(done))
        self._context.marks.forget(company_id, done)
        return len(whole), has_more

    def _oldest(self, company_id: int) -> tuple[list[str], list[LateSpan], bool]:
        """Notes with about as many spans as are worked off at once, their spans, and whether others are due, too."""
        names, spans = list[str](), list[LateSpan]()
        for name, some in self._context.marks.marked(company_id).items():
            if name in self._resting:
                continue
            if len(spans) >= _SPANS_AT_ONCE:
                return names, spans, True
            names.append(name)
            spans += some
        return names, spans, False

    async def _has_worked(self, object_id: int, spans: Sequence[LateSpan]) -> bool:
        try:
            await self.compute_again(spans)
        except (Unavailable, StoreUnavailable):
            raise
        except Exception:  # noqa: BLE001 - whatever is wrong with one object's marks
            self.failures += 1
            _sparse.error("what came late for object %d can't be noted, and rests", object_id, exc_info=True)
            return False
        return True

    async def compute_again(self, spans: Sequence[LateSpan]) -> None:
        """Notes what jobs have to compute again, some hundred ranges in a transaction: others write in between."""
        ranges, pauses = list[JobRange](), LoopPauses()
        for object_id, start_us, end_us in self._by_object(spans):
            for job, progress in self._context.progress.of_object(object_id):
                await pauses.pause()
                if job.kind is ScriptKind.CALCULATE or start_us >= progress.done_us:
                    continue
                ranges.append(JobRange(job, start_us, await self._until_us(job, end_us, progress.done_us)))
                if len(ranges) >= MOST_RANGES:
                    await self._add(ranges)
                    ranges = []
        await self._add(ranges)

    def _by_object(self, spans: Iterable[LateSpan]) -> Iterator[LateSpan]:
        for object_id, start_us, end_us in spans:
            if object_id >= 0:
                yield object_id, start_us, end_us
                continue
            for each in self._context.catalogue.named(-object_id):
                yield each, start_us, end_us

    async def _add(self, ranges: Sequence[JobRange]) -> None:
        if ranges:
            async with self._context.database.writing() as connection:
                await add_todos(connection, ranges)

    async def _until_us(self, job: Job, end_us: int, done_us: int) -> int:
        script = self._context.catalogue.get(job.kind, job.script_id)
        if job.kind is not ScriptKind.STATISTICS or script is None:
            return end_us
        return await self._statistics.affected_until_us(script, job.object_id, end_us, done_us)
