"""The ingest pipeline: takes batches of publishes from the broker, and acknowledges them when they are stored.

One task writes: everything that has arrived is decoded into one group and committed with one ``append``; while a commit
is under way the next group is decoded. When the store is behind, reading from terminals pauses; nothing is dropped.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable, Sequence
from operator import attrgetter

from terrazzo.domain.answers import CommandAnswer
from terrazzo.domain.payload import PointLimits
from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.backlog import Backlog
from terrazzo.ingest.commit_group import CommitGroup, IngestStats, Recorder
from terrazzo.ingest.commit_pace import CommitPace
from terrazzo.ingest.commit_traces import CommitTraces
from terrazzo.ingest.decoders import PayloadDecoders
from terrazzo.ingest.decoding import DecodingQueue
from terrazzo.ingest.group_seams import GroupKeeper, GroupNotes
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ingest.opening import Opener
from terrazzo.ingest.rooms import Rooms
from terrazzo.ingest.seams import IngestGateway, Marks, MessageMapper, ReportStore
from terrazzo.ingest.terminal_series import MOST_SERIES, TerminalSeries
from terrazzo.ingest.turns import Lane, Turns
from terrazzo.listeners import Listeners
from terrazzo.ports.store import NO_NOTES, Notes, Record, RecordsRefused, StoreUnavailable
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us
from terrazzo_broker.hooks import Batch

_log = logging.getLogger(__name__)

_SLICE_S = 0.005  # how long decoding may hold the loop
_STORE_AWAY = Retry(first_s=0.1, most_s=5.0)
_SHARES = 4  # of the backlog, a company may have one part before each of its connections waits to be decoded
_MOST_FAULTS = 3  # then a group is withheld, so that others can go on
_PAYLOAD = attrgetter("payload")  # of an ``Inbound``
_PROMPT_US = 15_000  # from arrival to acknowledgement, a sync of the disk included


class IngestPipeline:
    """Between the broker's ``take`` and the store's ``append``.

    ``records`` tells of each committed group, rejects (``x/...``) included; ``answers`` of each committed answer to a
    command.

    Args:
        store: where records go.
        gate: pauses and resumes the broker's reading.
        tasks: runs the writer.
        clock_ahead_s: how far a terminal's ``Time`` may be ahead of ours.
        limits: of the backlog and of one commit.
        points: limits of a payload's points.
        mapper: maps messages to objects' records.
        marks: makes notes about objects' records.
        terminal_series: how many series the reports of one terminal may have.
        decoders: read payloads whose configuration names one of them.
        traces: makes traces of what was committed.
        keeper: keeps groups instead of the store.
    """

    def __init__(
        self,
        store: ReportStore,
        gate: IngestGateway,
        *,
        tasks: Tasks,
        clock_ahead_s: float = 300,
        limits: IngestLimits | None = None,
        points: PointLimits | None = None,
        mapper: MessageMapper | None = None,
        marks: Marks | None = None,
        terminal_series: int = MOST_SERIES,
        decoders: PayloadDecoders | None = None,
        traces: CommitTraces | None = None,
        keeper: GroupKeeper | None = None,
    ) -> None:
        self.stats = IngestStats()
        self._store = store
        self._gate = gate
        self._tasks = tasks
        self._limits = limits or IngestLimits()
        self._series = TerminalSeries(store, most=terminal_series)
        self._recorder = Recorder(
            self.stats, clock_ahead_s=clock_ahead_s, mapper=mapper, limits=points, series=self._series
        )
        self._mapper = mapper
        self._marks = marks
        self._traces = traces
        self._keeper = keeper
        self.noter: GroupNotes | None = None  # makes notes of where groups have come from
        if mapper is not None:
            mapper.wanted.listen(self._on_wanted)
        self._wake = asyncio.Event()
        self._pending = Turns(None if mapper is None else mapper.lane)  # bounded by the gate
        self._rooms = Rooms(self._pending, None if mapper is None else mapper.has_room_of, self._wake.set)
        self.taken = Backlog()
        self._share_bytes = self._limits.bytes // _SHARES
        self._opener = Opener(self._on_opened)
        self._decoding_queue = DecodingQueue(decoders or PayloadDecoders(), self._on_opened, points)
        self._pace = CommitPace(self._limits.group_bytes)
        self._group = CommitGroup()  # being decoded
        self._committing: CommitGroup | None = None  # not stored yet
        self._commit: asyncio.Task[None] | None = None
        self._paused = False
        self._failing = False  # the last append failed
        self._waited_us = 0  # what was committed last, at most
        self._draining = self._closing = False
        self._committed = asyncio.Event()  # a group has been answered for
        self._writer: Task | None = None
        self._series_reader: Task | None = None
        self._decoder: Task | None = None
        self._decoding: Arrival | None = None
        self.records: Listeners[Sequence[Record]] = Listeners("committed records")
        self.answers: Listeners[CommandAnswer] = Listeners("answers to commands")
        self._failure_log = SparseLog(_log)

    def start(self) -> None:
        """Starts the writer. A failure of it loses nothing that was taken."""
        self._writer = self._tasks.spawn("ingest writer", self._write, OnFailure.REPORT)
        self._series_reader = self._tasks.spawn("series of terminals", self._series.work, OnFailure.RESTART)
        self._decoder = self._tasks.spawn("payload decoders", self._decoding_queue.work, OnFailure.RESTART)

    @property
    def is_healthy(self) -> bool:
        """Whether it was started, and the store took the last group."""
        return self._writer is not None and not self._failing

    @property
    def is_behind(self) -> bool:
        """Whether the last commit took more than 15 ms from the arrival of what it stored, and more publishes wait."""
        return self._waited_us > _PROMPT_US and self.stats.backlog > 0

    async def drain(self, timeout_s: float) -> None:
        """Waits until everything taken so far is stored and acknowledged; from now on reading stays paused."""
        self._draining = True
        if not await self.is_idle(timeout_s):
            _log.warning("%d messages are not stored within %g s", self.stats.backlog, timeout_s)

    @property
    def backlog(self) -> int:
        """Messages that are taken and not yet stored."""
        return self.stats.backlog

    async def is_idle(self, timeout_s: float) -> bool:
        """Whether everything taken is stored and acknowledged within that time; the gate should be closed."""
        try:
            async with asyncio.timeout(timeout_s):
                while self.stats.backlog:
                    self._committed.clear()
                    await self._committed.wait()
        except TimeoutError:
            return False
        return True

    async def is_flushed(self, timeout_s: float) -> bool:
        """Whether all that is decoded by now is stored within that time; what waits for its turn may wait on."""
        groups = [group for group in (self._committing, self._group) if group is not None and not group.is_empty]
        try:
            async with asyncio.timeout(timeout_s):
                while any(group is self._committing or group is self._group for group in groups):
                    self._committed.clear()
                    await self._committed.wait()
        except TimeoutError:
            return False
        return True

    async def stop(self, timeout_s: float = 8.0) -> None:
        """Commits what was taken; what the store does not take in time stays unacknowledged."""
        self._draining = self._closing = True
        self._rooms.close()
        self._wake.set()
        if self._writer is None or self._series_reader is None or self._decoder is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self._writer.wait()
        except TimeoutError:
            _log.warning("stopped with %d messages not stored and not acknowledged", self.stats.backlog)
        await self._writer.stop()
        await self._series_reader.stop()
        await self._decoder.stop()
        self._opener.close()
        if self._commit is not None:
            self._commit.cancel()
            await asyncio.wait({self._commit})

    def take(self, batch: Batch) -> None:
        """Queues a batch; it is settled when it is stored."""
        messages, owner = batch.messages, batch.client.owner
        count = len(messages)
        size = len(messages[0].payload) if count == 1 else sum(map(len, map(_PAYLOAD, messages)))
        share = self.taken[owner]
        arrival = Arrival(batch, size, share)
        share.taken += count
        share.taken_bytes += size
        if share.taken_bytes - share.stored_bytes > self._share_bytes or not self._rooms.has_room_of(owner):
            arrival.hold()
        self._pending.add(arrival)
        stats = self.stats
        stats.batches += 1
        stats.backlog += count
        stats.backlog_bytes += size
        self._wake.set()
        if not self._paused and (stats.backlog >= self._limits.messages or stats.backlog_bytes >= self._limits.bytes):
            self._pause()

    async def _write(self) -> None:
        self._take_up()
        while await self._collect():
            self._end_commit()
            self._begin_commit(self._group)
            self._group = CommitGroup()
        self._end_commit()

    def _take_up(self) -> None:
        """Resumes after a failure: a commit under way goes on by itself, one that failed is tried again."""
        if self._group.faults >= _MOST_FAULTS:
            self._give_up(self._group)
            self._group = CommitGroup()
        group = self._committing
        if group is None or self._commit is not None:
            return
        if group.faults >= _MOST_FAULTS:
            self._committing = None
            self._give_up(group)
        else:
            self._begin_commit(group)

    def _end_commit(self) -> None:
        """Forgets the last commit, which is over; raises what it raised."""
        commit, self._commit = self._commit, None
        if commit is not None:
            commit.result()

    def _begin_commit(self, group: CommitGroup) -> None:
        self._committing = group
        self._rooms.on_commit(group, self._pace.expected_s(group.bytes), self.taken)
        self._commit = asyncio.create_task(self._store_group(group), name="ingest commit")
        self._commit.add_done_callback(lambda _: self._wake.set())

    async def _collect(self) -> bool:
        """Decodes until the commit under way is done; False when closing and nothing is left."""
        group = self._group
        while True:
            self._wake.clear()
            full = self._decode_slice(group)
            commit = self._commit
            idle = commit is None or commit.done()
            is_dirty = not group.records and self._mapper is not None and self._mapper.is_dirty
            if idle and (group.arrivals or full or is_dirty):
                self._seal(group)
                return True
            if idle and self._closing and not self._pending:
                return False
            if full and commit is not None:
                await asyncio.wait({commit})
            elif self._pending.head is not None and self._has_room:
                await asyncio.sleep(0)  # lets the broker read on
            else:
                await self._wake.wait()

    def _decode_slice(self, group: CommitGroup) -> bool:
        """Decodes for a few milliseconds; True when the group is full."""
        deadline_s = time.perf_counter() + _SLICE_S
        if not self._has_room:  # it changes with commits, not while messages are decoded
            self._pause()
            return False
        group.most = self._pace.allowed
        if not self._is_full(group) and self._decode_fresh(group, deadline_s):
            return False
        pending = self._pending
        while not self._is_full(group):
            lane = pending.head
            if lane is None:
                return False
            if not self._rooms.has_room_of(lane.company.owner):
                self._rooms.have_wait(lane)
                continue
            arrival = lane.arrivals[0]
            self._decoding, made = arrival, group.made
            if self._recorder.record_plain(arrival, group) or self._record(arrival, group, deadline_s):
                self._decoding = None
                group.measure()
                pending.finish(lane, group.made - made)
                if arrival.is_held:
                    arrival.release()
            elif arrival.waits or arrival.undecoded:
                self._have_opened(lane)
            elif arrival.unplanned:
                self._have_planned(lane, arrival)
            elif self._is_full(group):
                pending.end_turn(lane)
                return True
            if time.perf_counter() > deadline_s:
                pending.end_turn(lane)
                return False
        return True

    def _decode_fresh(self, group: CommitGroup, deadline_s: float) -> bool:
        """Decodes in the order of arrival what nothing waits before, the rest takes turns; True when time is over."""
        fresh, done, is_over, record_plain = self._pending.take_fresh(), 0, False, self._recorder.record_plain
        try:
            for arrival in fresh[: self._limits.group_messages - group.messages] if self._rooms.has_room(fresh) else ():
                self._decoding = arrival
                if not record_plain(arrival, group) and (
                    self._is_full(group) or not self._record(arrival, group, deadline_s)
                ):
                    break
                done += 1
                if arrival.is_held:
                    arrival.release()
                if (is_over := time.perf_counter() > deadline_s) or group.is_outgrown:
                    break
        finally:
            self._decoding = None
            group.measure()
            if done < len(fresh):
                self._pending.sort_in(fresh[done:])
                if fresh[done].next:
                    self._pending.end_turn(fresh[done].connection.lane)
        return is_over

    def _is_full(self, group: CommitGroup) -> bool:
        return group.messages >= self._limits.group_messages or group.size + group.made >= self._pace.allowed

    def _have_opened(self, lane: Lane) -> None:
        """Has the next payloads of a lane opened, or decoded, elsewhere: others have turns, and its peer isn't read."""
        arrival = lane.arrivals[0]
        self._pending.hold(lane)
        arrival.hold()
        (self._opener if arrival.waits else self._decoding_queue).submit(lane)

    def _have_planned(self, lane: Lane, arrival: Arrival) -> None:
        """Has a terminal's plans made elsewhere."""
        self._pending.hold(lane)
        arrival.hold()
        assert self._mapper is not None  # it makes plans
        self._mapper.when_ready(arrival.unplanned, lambda: self._on_opened(lane))

    def _on_opened(self, lane: Lane) -> None:
        if lane.arrivals:  # nothing of it was given up meanwhile
            arrival = lane.arrivals[0]
            arrival.waits, arrival.undecoded, arrival.unplanned = False, False, ""
        self._pending.release(lane)
        self._wake.set()

    def at_work(self) -> str:
        """Whose reports are decoded at this moment, for whoever looks on from another thread; empty for nobody's."""
        arrival = self._decoding
        return "" if arrival is None else f"reports of {arrival.batch.client.client_id}"

    def _record(self, arrival: Arrival, group: CommitGroup, deadline_s: float) -> bool:
        """Decodes an arrival for a while; True at its end, and where neither records nor rejects can be made of it."""
        self._decoding = arrival
        try:
            return self._recorder.record(arrival, group, deadline_s)
        except Exception:  # noqa: BLE001 - it must not keep others' messages from being stored
            self._failure_log.error("neither a record nor a reject can be made of a message", exc_info=True)
            self._withhold([arrival])
            return True
        finally:
            self._decoding = None

    async def _store_group(self, group: CommitGroup) -> None:
        """Stores a group, however long the store is away, then answers for it."""
        started_s = time.perf_counter()
        try:
            await self._append_all(group)
        except Exception:
            group.faults += 1
            raise
        took_s = self._pace.note(group.bytes, time.perf_counter() - started_s)
        self._rooms.on_committed(group, took_s, self.taken)
        self.stats.disk_rests = self._rooms.disk_turns.rests
        self._committing = None  # it is answered for, whatever fails from here on
        try:
            if self._mapper is not None:
                self._mapper.on_committed()
            if self._marks is not None:
                self._marks.on_committed()
        finally:
            self._answer(group, time.perf_counter() - started_s)

    async def _append_all(self, group: CommitGroup) -> None:
        records, notes, attempts = group.all_records(), group.notes, Attempts(_STORE_AWAY)
        while records or notes:
            left = await self._append(group, records, notes)
            if left is records:
                await asyncio.sleep(attempts.failed() or 0.0)
            else:
                records, notes = left, NO_NOTES

    def _answer(self, group: CommitGroup, seconds: float) -> None:
        self._waited_us = now_us() - group.arrivals[0].batch.arrived_us if group.arrivals else 0
        self.stats.count_commit(group, seconds, self._waited_us / 1e6)
        self.taken.on_stored(group.arrivals, time.perf_counter())
        group.settle() if self._traces is None else self._traces.settle(group, seconds)
        self._tell(group)
        self._committed.set()
        self._resume_if_drained()

    def _give_up(self, group: CommitGroup) -> None:
        """Withholds a group that failed too often, and all of the batches that it has only the beginnings of."""
        whole = {id(arrival) for arrival in group.arrivals}
        parts = {id(span.arrival): span.arrival for span in group.spans if id(span.arrival) not in whole}
        for arrival in parts.values():
            if self._pending.drop(arrival):
                arrival.release()
            else:
                self._group.drop(arrival)
        self._withhold([*parts.values(), *group.arrivals])

    def _withhold(self, arrivals: Iterable[Arrival]) -> None:
        """Acknowledges none of these, and ends their connections: the clients send again what is not acknowledged."""
        for arrival in arrivals:
            count, client = len(arrival.batch.messages), arrival.batch.client.client_id
            self.stats.withheld += count
            self.stats.backlog -= count
            self.stats.backlog_bytes -= arrival.size
            self.taken.give_back(arrival, time.perf_counter())
            self._failure_log.error("%d messages of %s are not acknowledged; it has to send them again", count, client)
            self._gate.kick(client)
        self._committed.set()
        self._resume_if_drained()

    async def _append(self, group: CommitGroup, records: list[Record], notes: Notes) -> list[Record]:
        """Tries to store once; returns what is left to store: nothing, all of it, or rejects of what was refused."""
        try:
            if self._keeper is not None:
                await self._keeper.keep(group)
            else:
                await (self._store.append(records, notes=notes) if notes else self._store.append(records))
        except RecordsRefused as error:
            self._failing = False
            self._failure_log.warning("%d records are kept as rejects: %s", len(error.records), error)
            self.stats.store_refused += len(error.records)
            return group.refuse(error.records, str(error))
        except StoreUnavailable as error:
            self._failure_log.warning("the store does not take %d records, retrying: %s", len(records), error)
        except Exception:  # noqa: BLE001 - whatever goes wrong there, acknowledged must mean stored
            _log.exception("the store failed on %d records, retrying", len(records))
        else:
            self._failing = False
            return []
        self.stats.store_failures += 1
        self._failing = True
        self._pause()
        return records

    def _tell(self, group: CommitGroup) -> None:
        self.records.tell(group.all_records())
        for answer in group.answers:
            self.answers.tell(answer)

    @property
    def _has_room(self) -> bool:
        return self._mapper is None or self._mapper.has_room

    def _seal(self, group: CommitGroup) -> None:
        """Completes a group; done again after a fault, it adds what is missing."""
        try:
            if self._mapper is not None:
                group.mosaic.extend(self._mapper.take_records())
                group.notes = {**group.notes, **self._mapper.seal()} if group.notes else self._mapper.seal()
            if self._marks is not None:
                group.notes = {**group.notes, **self._marks.on_sealed(group.mosaic)}
            if self.noter is not None:
                group.notes = {**group.notes, **self.noter.on_group(group)}
            group.noted = sum(len(note) for note in group.notes.values() if note)
        except Exception:
            group.faults += 1
            raise

    def _on_wanted(self) -> None:
        self._rooms.release()
        self._wake.set()
        self._resume_if_drained()

    def _pause(self) -> None:
        if not self._paused:
            self._paused = True
            self.stats.pauses += 1
            self._gate.pause_intake()

    def _resume_if_drained(self) -> None:
        stats, limits = self.stats, self._limits
        drained = stats.backlog <= limits.messages // 2 and stats.backlog_bytes <= limits.bytes // 2
        if self._paused and drained and self._has_room and not self._draining:
            self._paused = False
            self._gate.resume_intake()
