"""Group commit: stores the changes of many connections at once, and releases their answers afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
from mqtt5 import DisconnectReasonCode

from ..connection_state import ReadHold
from ..delivery.connection_port import Origin
from ..limited_log import limited_logger
from ..refusals import Cause
from ..scheduling.turns import Steps, Turns
from ..stats import Stats
from ..storage import StorageError
from . import keys
from .changes import CommitBatch, UncommittedChanges
from .database import StateDatabase

log = limited_logger("terrazzo_broker.persistence")

LAZY_S = 0.05  # the longest delay of a commit that no answer waits for
RETRY_S = 1.0  # after a failure
GROUP_BYTES = 8 << 20  # with more than this uncommitted, whoever adds to it isn't read


class _Group(msgspec.Struct, frozen=True):
    """A commit under way, the withheld output of each connection that waits for it, and the work that follows it."""

    batch: CommitBatch
    withheld: list[tuple[Origin, list[bytes]]]
    written: asyncio.Future[None]
    then: list[Steps[None]]


class GroupCommit:
    """Runs one commit at a time, its sync on a thread; changes made meanwhile belong to the next one.

    ``on_health`` is called when ``is_failing`` changes. ``now_us``: the clock, UTC microseconds.
    """

    def __init__(self, database: StateDatabase, *, now_us: Callable[[], int]) -> None:
        self.changes = UncommittedChanges()
        self.stats = Stats()
        self.turns = Turns(self.stats)
        self.is_failing = False
        self.on_health: Callable[[], None] = lambda: None
        self._database = database
        self._now_us = now_us
        self._waiting: dict[Origin, None] = {}
        self._unread: set[Origin] = set()
        self._then: list[Steps[None]] = []
        self._group: _Group | None = None
        self._next: asyncio.Handle | None = None  # the start of the next commit
        self._is_urgent = False  # that it is to start at once
        self._is_closed = False
        self._thread = ThreadPoolExecutor(1, "broker storage")

    # What sessions ask for

    def wait(self, connection: Origin | None) -> None:
        """Commits the last changes as soon as possible; until then the connection's further output is withheld."""
        if connection is not None and connection not in self._waiting:
            self._waiting[connection] = None
            connection.withhold()
        self._hold(connection)
        self._start(at_once=True)

    def _hold(self, connection: Origin | None) -> None:
        """Doesn't read who adds to changes that are large already."""
        if connection is not None and self.changes.size > GROUP_BYTES and connection not in self._unread:
            self._unread.add(connection)
            connection.hold(ReadHold.STORAGE)

    def later(self, connection: Origin | None = None) -> None:
        """Commits the last changes within ``LAZY_S``; no answer waits for that."""
        self._hold(connection)
        self._start(at_once=False)

    def then(self, steps: Steps[None]) -> None:
        """Has work done after the commit of the last changes, when a commit of them succeeds."""
        self._then.append(steps)

    def read(self, key: bytes) -> bytes | None:
        """A record as the next commit leaves it; None: there is none.

        Raises:
            StorageError: it can't be read.
        """
        is_changed, value = self.changes.find(key)
        if is_changed:
            return value
        if self._group is not None and key in self._group.batch.values:
            return self._group.batch.values[key]
        return self._database.get(key)

    # Commits

    def _start(self, *, at_once: bool) -> None:
        if self._group is not None or self._is_closed or self.is_failing or (self._next and self._is_urgent):
            return
        if self._next is None or at_once:
            self._schedule(0 if at_once else LAZY_S)

    def _schedule(self, delay_s: float) -> None:
        if self._next is not None:
            self._next.cancel()
        loop = asyncio.get_running_loop()
        self._is_urgent = not delay_s
        self._next = loop.call_later(delay_s, self._begin) if delay_s else loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._next = None
        withheld = [(connection, connection.take_withheld()) for connection in self._waiting]
        self._waiting.clear()
        if not self.changes and not self.is_failing:  # everything has gone again already
            return self._let_go(withheld)
        batch = CommitBatch({}, [])
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        try:
            self.changes.put(keys.ALIVE, self._now_us().to_bytes(8, "big"))
            batch = self.changes.take()
            written = self._write(batch)
        except Exception as error:  # noqa: BLE001 - a fault of ours is answered like one of the disk, and tried again
            written.set_exception(error)
        self._group = _Group(batch, withheld, written, self._then)
        self._then = []
        written.add_done_callback(self._end)
        return None

    def _write(self, batch: CommitBatch) -> asyncio.Future[None]:
        """Writes on the loop, as rocksdict holds the GIL meanwhile and waits for no disk; logs and syncs on a thread.

        Raises:
            StorageError: as ``StateDatabase.write``.
        """
        loop = asyncio.get_running_loop()
        if self._database.write(batch.values, batch.ranges):
            return loop.run_in_executor(self._thread, self._database.sync)
        return loop.run_in_executor(self._thread, self._database.commit, batch.values, batch.ranges)

    def _end(self, written: asyncio.Future[None]) -> None:
        group, self._group = self._group, None
        assert group is not None
        error = written.exception()
        if error is None:
            self._succeed(group)
        else:
            self._fail(group, error)
        for connection in self._unread:
            connection.release(ReadHold.STORAGE)
        self._unread.clear()
        if not self._is_closed and not self.is_failing and (self._waiting or self.changes):
            self._start(at_once=bool(self._waiting))

    def _succeed(self, group: _Group) -> None:
        self.stats.storage_commits += 1
        if self.is_failing:
            self.is_failing = False
            self.on_health()
            log.warning("the storage takes writes again")
        self._let_go(group.withheld)
        if group.then:
            self.turns.start("", _one_after_the_other(group.then))

    def _let_go(self, withheld: list[tuple[Origin, list[bytes]]]) -> None:
        for connection, packets in withheld:
            try:
                connection.let_go(packets, more=connection in self._waiting)
            except Exception:  # a fault of ours ends this connection alone; the others are answered
                self.stats.internal_errors += 1
                log.exception("internal error after a commit")
                connection.tell_refused(Cause.INTERNAL_ERROR, DisconnectReasonCode.UNSPECIFIED_ERROR)
                connection.close("internal error", reason=DisconnectReasonCode.UNSPECIFIED_ERROR)

    def _fail(self, group: _Group, error: BaseException) -> None:
        """Closes the waiting connections unanswered, as nothing is stored; the clients come back and try again."""
        self.stats.storage_failures += 1
        self.changes.put_back(group.batch)
        self._then = group.then + self._then
        if not self.is_failing:
            self.is_failing = True
            self.on_health()
        trace = None if isinstance(error, StorageError) else error
        log.error("%s; persistent sessions are refused until it takes writes again", error, exc_info=trace)
        waiting = [connection for connection, _ in group.withheld] + list(self._waiting)
        self._waiting.clear()
        for connection in waiting:
            connection.tell_refused(Cause.STORAGE_UNAVAILABLE, DisconnectReasonCode.QUOTA_EXCEEDED)
            connection.close("messages can't be stored", reason=DisconnectReasonCode.QUOTA_EXCEEDED)
        if not self._is_closed:
            self._schedule(RETRY_S)

    async def checkpoint(self, path: Path) -> None:
        """Makes a copy of the database in ``path``, between two commits.

        Raises:
            StorageError: it could not be made.
        """
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.checkpoint, path)

    async def close(self) -> None:
        """Commits all changes and closes the database."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._next is not None:
            self._next.cancel()
            self._next = None
        if self._group is not None:
            await asyncio.wait([self._group.written])
        if self.changes:
            self._begin()
            assert self._group is not None
            await asyncio.wait([self._group.written])
        if self.changes:
            log.error("the last changes are lost: the storage takes no writes")
        await asyncio.get_running_loop().run_in_executor(self._thread, self._database.close)
        self._thread.shutdown()


def _one_after_the_other(works: list[Steps[None]]) -> Steps[None]:
    for steps in works:
        yield from steps
