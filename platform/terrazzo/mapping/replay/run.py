"""One replay, from the first report to the last row; it can be repeated whenever it was interrupted.

The mosaic is replaced a piece at a time, each piece all or nothing, and only if no report came to it since it was read.
Events and labels follow at the end, some hundred rows in a transaction, so that others write in between: events by
time, labels some together or one in parts, each only if no report came there. Otherwise it begins anew, and so it does
after a kill: what is as it should be stays as it is.
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence, Set
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.domain.payload import PointLimits, Points, has_many_values
from terrazzo.domain.registry import Registry
from terrazzo.loop_pauses import LoopPauses
from terrazzo.mapping.labels import Key, Labels, Standing
from terrazzo.mapping.replay import reasons
from terrazzo.mapping.replay.completeness import worded
from terrazzo.mapping.replay.label_merge import Range
from terrazzo.mapping.replay.piece_pace import PiecePace
from terrazzo.mapping.replay.progress import ReplayProgress
from terrazzo.mapping.replay.replacement import (
    Collected,
    LabelPart,
    Place,
    collected,
    collected_count,
    count_labels,
    delete_outdated_labels,
    event_slices,
    label_parts,
    replace_events,
    replace_labels,
)
from terrazzo.mapping.replay.rerun import MOST_HAPPENINGS, Rerun, RerunOutcome, TooMuchHappened
from terrazzo.mapping.replay.running_objects import RunningObjects, Stand, Subject
from terrazzo.metadata.event_quotas import EventQuotas
from terrazzo.ports.store import Record, Seen, StoreUnavailable, TimeSeriesStore
from terrazzo.reasons import say
from terrazzo.times import DAY_US, LATEST_US

ATTEMPTS = 5
_PIECE = 2_000  # reports whose mosaic is replaced together
_PIECE_BYTES = 512 * 1024  # of what is made of them: everybody's reports wait while it is written
_LEAST_BYTES = 64 * 1024
_READ_BYTES = 4 * 2**20  # of reports whose mosaic is replaced together: their points are in memory meanwhile
_LOOK = 10  # reports between two looks whether it is others' turn
_LAG_US = 60_000_000  # reports of the last minute may still be on their way: they are read while the ingest waits
_NEAR_US = 10_000_000
_PASSES = 10
_LOOKS_BACK_US = (DAY_US, 8 * DAY_US, 64 * DAY_US, 366 * DAY_US)  # before the range, as far as it takes


class Stopped(Exception):
    """The replay was cancelled."""


class Failed(Exception):
    """It can't be done; ``str()`` says why, fit to show whoever asked."""


class Disturbed(Exception):
    """Reports of the range were stored while it was replayed: the replay begins anew."""


class RecomputeStatistics(Protocol):
    """The port to the analysis, which computes statistics again."""

    async def compute_again(self, spans: list[tuple[int, int, int]]) -> None:
        """Has the statistics of objects computed again, from a time up to another (exclusive), UTC microseconds."""


class ReportReader(Protocol):
    """Reads what terminals have reported otherwise than as objects of points."""

    async def read(self, records: Sequence[Record]) -> Sequence[Record]:
        """The same records, with objects of points as their bodies where they can be read so."""

    async def points_of(self, body: bytes, limits: PointLimits) -> Points:
        """The points of a report, a long one's beside the event loop; raises ``Reject``."""


class ReplayParts(NamedTuple):
    """What a replay works on: the store, the database, the running objects, the analysis, how much is kept."""

    store: TimeSeriesStore
    database: Database
    live: RunningObjects
    analysis: RecomputeStatistics
    clock: Callable[[], int]
    quotas: EventQuotas
    registry: Registry
    reader: ReportReader


class ReplayTask(NamedTuple):
    """What is asked for. ``end_us`` None: up to now, and the live state is renewed."""

    object_id: int
    start_us: int
    end_us: int | None
    dry_run: bool


class ReplayRun:
    """One replay. ``progress`` and ``remark`` are for others to read; ``cancel`` ends it at the next report."""

    def __init__(self, parts: ReplayParts, task: ReplayTask) -> None:
        self.progress = ReplayProgress()
        self.remark = ""
        self._parts = parts
        self._task = task
        self._is_cancelled = False
        self._has_replaced = False
        self._pauses = LoopPauses()

    def cancel(self) -> None:
        """Ends it soon, with ``Stopped``."""
        self._is_cancelled = True

    async def run(self) -> None:
        """Does it.

        Raises:
            Stopped, Failed, NotReplaceable: the mosaic may be replaced up to ``progress.position_us``.
            StoreUnavailable, Unavailable: the same.
        """
        try:
            for _ in range(ATTEMPTS):
                try:
                    await self._attempt()
                    return
                except Disturbed:
                    continue
                except TooMuchHappened:
                    raise Failed(reasons.TOO_MUCH_HAPPENED.format(most=f"{MOST_HAPPENINGS:,}")) from None
            raise Failed(reasons.REPORTS_KEEP_COMING)
        finally:
            if self._has_replaced:
                await self._mark()

    async def _mark(self) -> None:
        task = self._task
        end_us = self._parts.clock() + 86_400_000_000 if task.end_us is None else task.end_us + 1
        await self._parts.analysis.compute_again([(task.object_id, task.start_us, end_us)])

    async def _attempt(self) -> None:
        await self._parts.live.prepare(self._task.object_id)
        subject = self._parts.live.subject(self._task.object_id)
        if subject is None:
            raise Failed(reasons.NO_MAPPING)
        attempt = _Attempt(self, subject)
        await attempt.prepare()
        await attempt.prime()
        if self._task.dry_run:
            await attempt.cover(self._task.end_us or self._parts.clock())
            await attempt.finish()
        elif self._task.end_us is not None:
            await attempt.cover(self._task.end_us)
            await attempt.finish()
        else:
            await attempt.catch_up()
            async with self._parts.live.standing_still(subject):
                await attempt.cover(LATEST_US)
                await attempt.finish()

    # What an attempt needs of it

    @property
    def parts(self) -> ReplayParts:
        """The store, the database and the other parts that the replay uses."""
        return self._parts

    @property
    def task(self) -> ReplayTask:
        """The object and the range that are to be replayed."""
        return self._task

    async def breathe(self) -> None:
        """Everybody else's turn, where it has computed for some milliseconds.

        Raises:
            Stopped: it was cancelled.
        """
        if self._is_cancelled:
            raise Stopped
        await self._pauses.pause()

    def on_replacing(self) -> None:
        """From now on statistics of the range have to be computed again, however this ends."""
        self._has_replaced = True


class _Attempt:
    """One pass over the reports."""

    def __init__(self, run: ReplayRun, subject: Subject) -> None:
        self._run = run
        self._store = run.parts.store
        self._live = run.parts.live
        self._subject = subject
        self._rerun = Rerun(subject.catalogue, subject.object_id)
        self._looks = 0
        self._series: list[str] = []
        self._next_us = run.task.start_us  # up to here it is covered
        self._pieces: list[tuple[int, int, int]] = []  # from when to when, and how many reports
        self._mosaic = 0  # records made of them
        self._collected: list[Collected] = []
        self._collected_taken = 0
        self._pace = PiecePace(_PIECE_BYTES, _LEAST_BYTES)

    async def prepare(self) -> None:
        """Counts what there is to do."""
        task, progress = self._run.task, self._run.progress
        self._series = await self._find_series()
        self._collected = await self._find_collected()
        end_us = LATEST_US if task.end_us is None else task.end_us
        progress.mosaic_after = None
        if progress.mosaic_before is None:
            progress.mosaic_before = await self._count([self._subject.bound.series], task.start_us, end_us)

    async def _find_series(self) -> list[str]:
        registry = self._run.parts.registry
        found = [await self._store.series(f"g/{registry.series_name(uid)}/") for uid in self._subject.terminals]
        return sorted({name for names in found for name in names})

    async def _find_collected(self) -> list[Collected]:
        async with self._run.parts.database.reading() as connection:
            return await collected(connection, self._subject.object_id)

    async def _count(self, series: list[str], start_us: int, end_us: int) -> int:
        return (await self._store.page(series, start_us, end_us, offset=0, limit=0)).total

    async def prime(self) -> None:
        """Learns from what was before the range how things stood when it began.

        It looks back further as long as something isn't known, and not longer than a year.
        """
        start_us, is_all = self._run.task.start_us, False
        first = await self._store.first_after(self._series, -1)
        for back_us in _LOOKS_BACK_US:
            from_us = max(0, start_us - back_us)
            is_all = first is None or from_us <= first.time_us
            await self._look_back(from_us)
            if is_all or self._rerun.is_known:
                break
        unknown = self._rerun.begin()
        if not is_all and unknown:
            days = _LOOKS_BACK_US[-1] // DAY_US
            self._run.remark = reasons.NOT_KNOWN.format(days=days, codes=worded(unknown))

    async def _look_back(self, from_us: int) -> None:
        task, progress = self._run.task, self._run.progress
        if self._looks:
            self._rerun = Rerun(self._fresh().catalogue, task.object_id)
        self._looks += 1
        end_us = LATEST_US if task.end_us is None else task.end_us
        progress.records_done, self._collected_taken = 0, 0
        progress.records_total = await self._count(self._series, from_us, end_us)
        async for records in self._store.scan(self._series, from_us, task.start_us - 1):
            size = 0
            for record in await self._run.parts.reader.read(records):
                await self._take(record)
                size += len(record.body)
                if size >= _READ_BYTES:
                    self._rerun.gather()
                    size = 0
            self._rerun.gather()
        self._collect_until(task.start_us)

    def _fresh(self) -> Subject:
        subject = self._live.subject(self._run.task.object_id)
        if subject is None or subject.bound is not self._subject.bound:
            raise Failed(reasons.CHANGED)
        return subject

    async def _take(self, record: Record) -> None:
        self._collect_until(record.time_us)
        if has_many_values(record.body):
            await self._rerun.take_long(record, self._run.parts.reader.points_of)
        else:
            self._rerun.take(record)
        progress = self._run.progress
        progress.records_done += 1
        progress.position_us = record.time_us
        if progress.records_done % _LOOK == 0:
            progress.records_skipped = self._rerun.skipped
            await self._run.breathe()

    def _collect_until(self, time_us: int) -> None:
        while self._collected_taken < len(self._collected):
            found = self._collected[self._collected_taken]
            if found.time_us >= time_us:
                return
            self._collected_taken += 1
            self._rerun.collect(found.values, found.time_us)

    async def catch_up(self) -> None:
        """Covers what is old enough to be complete, until little is left."""
        for _ in range(_PASSES):
            until_us = self._run.parts.clock() - _LAG_US
            if until_us - self._next_us < _NEAR_US:
                return
            await self.cover(until_us)

    async def cover(self, end_us: int) -> None:
        """Replays from where it is up to ``end_us``, a piece at a time."""
        count, size, last_us = 0, 0, self._next_us
        async for records in self._store.scan(self._series, self._next_us, end_us):
            for record in await self._run.parts.reader.read(records):
                is_much = count >= _PIECE or size >= _READ_BYTES or self._rerun.made >= self._pace.allowed
                if is_much and record.time_us > last_us:
                    await self._put(last_us, count)
                    count = size = 0
                await self._take(record)
                count, size, last_us = count + 1, size + len(record.body), record.time_us
        if end_us >= self._next_us:
            await self._put(end_us, count)

    async def _put(self, end_us: int, count: int) -> None:
        """Replaces the mosaic of the piece that has been replayed, and notes the position."""
        self._collect_until(end_us + 1)
        records = self._rerun.gather()
        self._mosaic += len(records)
        start_us, self._next_us = self._next_us, end_us + 1
        self._pieces.append((start_us, end_us, count))
        if not self._run.task.dry_run:
            await self._replace(start_us, end_us, records, Seen(self._series, count))
        self._run.progress.mosaic_after = self._mosaic
        await self._run.breathe()

    async def _replace(self, start_us: int, end_us: int, records: list[Record], given: Seen) -> None:
        if await self._find_series() != self._series:
            raise Disturbed
        self._run.on_replacing()
        began_s = time.perf_counter()
        if not await self._store.replace(self._subject.bound.series, start_us, end_us, records, given=given):
            raise Disturbed
        await asyncio.sleep(self._pace.note(time.perf_counter() - began_s))

    async def finish(self) -> None:
        """Replaces events and labels, and what is known of the object where the range reaches to now."""
        task = self._run.task
        stand = self._live.stand(self._subject)
        if not task.dry_run:
            await self._live.settled()
        span, outcome = Range(task.start_us, task.end_us), self._rerun.outcome()
        await self._replace_events(span, outcome)
        still_open = await self._replace_labels(span, outcome)
        if task.end_us is None and not task.dry_run:
            await self._renew(still_open, stand)
        self._tell()

    async def _replace_events(self, span: Range, outcome: RerunOutcome) -> None:
        task, parts, progress = self._run.task, self._run.parts, self._run.progress
        before = after = 0
        async for some in event_slices(parts.database, task.object_id, span, outcome):
            async with self._begin() as connection:
                replaced = await replace_events(
                    connection, task.object_id, some, dry_run=task.dry_run, quotas=parts.quotas
                )
                if not task.dry_run:
                    await self._check(connection, some.span)
            before, after = before + replaced.before, after + replaced.after
        progress.events_before, progress.events_after = before, after

    async def _replace_labels(self, span: Range, outcome: RerunOutcome) -> set[Key]:
        task, parts, progress = self._run.task, self._run.parts, self._run.progress
        before, after, still_open = 0, 0, set[Key]()
        divides, rules = not task.dry_run, self._subject.rules  # a part has to find those before it made
        for part in await label_parts(parts.database, task.object_id, rules, span, outcome, divides=divides):
            if task.dry_run:
                async with parts.database.reading() as connection:
                    replaced = await count_labels(connection, task.object_id, part)
            else:
                before += await self._delete_outdated(part)
                async with parts.database.writing() as connection:
                    replaced, are_open = await replace_labels(connection, task.object_id, part, parts.quotas)
                    await self._check(connection, part.span)
                still_open |= are_open
            before, after = before + replaced.before, after + replaced.after
            if part.span.end_us != span.end_us:
                before -= replaced.behind  # the next part finds them once more
        progress.labels_before, progress.labels_after = before, after
        return still_open

    async def _delete_outdated(self, part: LabelPart) -> int:
        """Deletes rows that the replay doesn't find, where there may be many; returns how many they were."""
        task, parts, count = self._run.task, self._run.parts, 0
        place: Place | None = (part.span.start_us, 0) if part.is_large else None
        while place is not None:
            async with parts.database.writing() as connection:
                deleted, place = await delete_outdated_labels(connection, task.object_id, part, place, parts.quotas)
                if deleted:
                    await self._check(connection, part.span)
            count += deleted
        return count

    def _begin(self) -> AbstractAsyncContextManager[AsyncConnection]:
        database = self._run.parts.database
        return database.reading() if self._run.task.dry_run else database.writing()

    async def _check(self, connection: AsyncConnection, span: Range) -> None:
        """Checks, after the rows of a part of the range were read, that every report behind them was seen."""
        if not self._store.is_whole:
            raise StoreUnavailable(say("reports_on_their_way"))
        series = await self._find_series()
        first = max(0, bisect_right(self._pieces, (span.start_us, LATEST_US, 0)) - 1)
        last = len(self._pieces)
        if span.end_us is not None:
            last = bisect_right(self._pieces, (span.end_us, LATEST_US, 0))
        seen = self._pieces[first:last]
        if await self._count(series, seen[0][0], seen[-1][1]) != sum(piece[2] for piece in seen):
            raise Disturbed
        if await collected_count(connection, self._run.task.object_id) != len(self._collected):
            raise Disturbed
        if not self._live.is_same(self._subject):
            raise Failed(reasons.CHANGED)

    async def _renew(self, still_open: Set[Key], stand: Stand) -> None:
        """What the object is known by from now on is what the replay found."""
        state, found = self._rerun.state()
        if self._live.stand(self._subject) != stand or not self._live.is_same(self._subject):
            raise Disturbed
        assert state is not None  # the object is mapped
        others = self._live.labels(self._subject.object_id).standings
        standings = {key: standing for key, standing in others.items() if key[0] not in self._subject.rules}
        for key, standing in found.standings.items():
            opened_us = standing.opened_us if key in still_open else None
            standings[key] = Standing(*key, standing.matched, opened_us)
        notes = self._live.adopt(self._subject.object_id, state, Labels(standings.values()))
        await self._store.append([], notes=notes)

    def _tell(self) -> None:
        progress = self._run.progress
        progress.records_skipped = self._rerun.skipped
        progress.records_total = progress.records_done
        progress.mosaic_after = self._mosaic
