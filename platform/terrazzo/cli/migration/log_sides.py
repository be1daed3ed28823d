"""``NewLog`` and ``FormerLog``: a cluster's log as ``terrazzo migrate`` moves a platform into it, or out of it."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import msgspec

from terrazzo.backup.migration.marker import Unmovable
from terrazzo.cli.cluster.reading import ClusterStatus, open_log, read_status
from terrazzo.config.sections import Config
from terrazzo.ports.store import Notes, TimeSeriesStore
from terrazzo.ports.stream import LogState, LogUnavailable, LogUnusable, LogWentBack, RecordChanged, ReportLog
from terrazzo.replication.in_frame import decode_in_frame
from terrazzo.replication.in_position import IN_NOTE, read_in_position
from terrazzo.replication.members import LINEAGE
from terrazzo.replication.position import NOTE, JoinRefused, Lineage, Position, read_position

if TYPE_CHECKING:
    from terrazzo.runtime.stream import Stream

_NOTES = frozenset((NOTE, IN_NOTE))
_WAIT_S = 5.0  # for a frame that is there


class _Side:
    """What both have in common."""

    notes = _NOTES

    def __init__(self, config: Config) -> None:
        self._config = config

    @property
    def words(self) -> str:
        """Which log, without passwords."""
        return f"cluster {self._config.cluster.name}"

    @asynccontextmanager
    async def _opened(self) -> AsyncIterator[Stream]:
        stream = await open_log(self._config)
        try:
            yield stream
        except (LogUnavailable, LogUnusable, LogWentBack, JoinRefused) as error:
            raise Unmovable(f"stream.url: {error}") from None
        finally:
            await stream.close()


class NewLog(_Side):
    """``LogSide`` of a cluster that begins with what is moved: its log has no frame yet, and its stores say so."""

    async def check(self, migration_id: str) -> None:
        async with self._opened() as stream:
            await self._look(stream, migration_id)

    async def check_source(self, store: TimeSeriesStore) -> None:
        if await read_position(store) is not None:
            advice = "terrazzo cluster begin-anew on that folder takes its place in it away"
            raise Unmovable(f"data.dir: the time series of the source follow the log of a cluster; {advice}")

    async def places(self, migration_id: str) -> Notes:
        async with self._opened() as stream:
            log = await self._look(stream, migration_id)
        return {NOTE: Position(_lineage_of(migration_id), log.created, 0, 0).encode()}

    async def settle(self, migration_id: str) -> None:
        async with self._opened() as stream:
            log = await self._look(stream, migration_id)
            made = Lineage(_lineage_of(migration_id), log.created, is_seeded=True)
            try:
                await stream.records.put(LINEAGE, msgspec.json.encode(made), revision=0)
            except RecordChanged:
                await self._look(stream, migration_id)

    async def _look(self, stream: Stream, migration_id: str) -> LogState:
        """The log, if it is nobody's yet or this migration's."""
        log, found = await stream.log.state(), await stream.records.get(LINEAGE)
        lineage = None if found is None else msgspec.json.decode(found.value, type=Lineage)
        if lineage is not None and lineage.id != _lineage_of(migration_id):
            raise Unmovable(f"cluster.name of the target: there is a {self.words} already; name another one")
        reports = await stream.reports.state() if await stream.reports.is_there() else None
        if log.last or (reports is not None and reports.last):
            what = f"the log of the {self.words} has frames already"
            raise Unmovable(f"cluster.name of the target: {what}; name another one")
        return log


class FormerLog(_Side):
    """``LogSide`` of a cluster of which all nodes have ended: the one that led last becomes one process."""

    async def check(self, migration_id: str) -> None:
        found = await read_status(self._config)
        _refuse_serving(found)
        last, own = await self._led_last(), self._config.cluster.node
        if last != own:
            raise Unmovable(f"data.dir: {last or 'nobody'!r} was the last node that led, not {own!r}: move that one")

    async def check_source(self, store: TimeSeriesStore) -> None:
        async with self._opened() as stream:
            log, position = await stream.log.state(), await read_position(store)
            if position is None or position.created != log.created:
                raise Unmovable(f"data.dir: the time series of the source don't follow the log of the {self.words}")
            if position.sequence != log.last:
                what = f"its store has the log up to frame {position.sequence:,}, which ends at {log.last:,}"
                raise Unmovable(f"data.dir: {what}: start this node once more, until it leads, and end it in order")
            left = await _unstored(stream.reports, store)
        if left:
            what = f"{left:,} reports that fronts have acknowledged are not stored yet"
            raise Unmovable(f"data.dir: {what}: start this node once more, until they are, and end it in order")

    async def places(self, migration_id: str) -> Notes:
        return dict.fromkeys(_NOTES)

    async def settle(self, migration_id: str) -> None:
        """The log stays as it is: its cluster can be started again, for which nothing was changed."""

    async def _led_last(self) -> str:
        from terrazzo.replication.lease import KEY, decode_lease

        async with self._opened() as stream:
            found = await stream.records.get(KEY)
        return "" if found is None else decode_lease(found).node


def _refuse_serving(found: ClusterStatus) -> None:
    states = [(each.node, each.state) for each in found.nodes] + [(each.node, each.state) for each in found.fronts]
    serving = sorted({name for name, state in states if state not in ("ended", "away")})
    if serving:
        advice = "end fronts, then nodes that stand by, then the leader; one that was killed counts for some seconds"
        raise Unmovable(f"stream.url: {', '.join(serving)} of the cluster {found.cluster} are there: {advice}")


async def _unstored(log: ReportLog, store: TimeSeriesStore) -> int:
    """How many reports of fronts the log has and the store hasn't; what only says who was connected doesn't count."""
    if not await log.is_there():
        return 0
    state = await log.state()
    position = await read_in_position(store, state)
    count, read, writers = 0, position.sequence, dict(position.writers)
    reader = log.read(position.sequence, position.created)
    try:
        while read < state.last:
            for logged in await reader.next(_WAIT_S):
                read = logged.sequence
                count += _left_of(logged.body, position.begun.get(read), writers)
    finally:
        await reader.close()
    return count


def _left_of(body: bytes, stored: list[int] | None, writers: dict[str, tuple[int, int]]) -> int:
    epoch, number, frame = decode_in_frame(body)
    if (epoch, number) <= writers.get(frame.node, (0, 0)):
        return 0  # it was in the log before
    writers[frame.node] = epoch, number
    return sum(len(batch.payloads) for batch in frame.batches) - sum(stored or ())


def _lineage_of(migration_id: str) -> str:
    """The name of what a migration makes, the same whenever it goes on."""
    return hashlib.sha256(f"migration {migration_id}".encode()).hexdigest()[:32]
