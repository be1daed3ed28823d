"""All connections of a broker, before and after their CONNECT: counts, pauses, flushes and ends them."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Collection, Iterator
from typing import Protocol, SupportsInt

from mqtt5 import DisconnectReasonCode

from .admission.half_open import Peer
from .admission.limits import Admission
from .connection_state import ConnectionState, ReadHold
from .delivery.connection_port import SessionConnection
from .limited_log import limited_logger
from .refusals import Cause
from .stats import Stats

log = limited_logger("terrazzo_broker.faults")


class CollectedOutput(Protocol):
    """A connection with output that waits to be flushed."""

    dirty: bool  # it will be flushed at the end of this turn of the loop
    transport: asyncio.Transport

    def flush(self) -> None:
        """Writes everything collected, unless the peer doesn't read or a commit has to come first."""


class NetworkConnection(SessionConnection, Protocol):
    """One connection, as the broker needs it from the accepting of its socket on; times in monotonic seconds."""

    state: ConnectionState
    transport: asyncio.Transport
    address: str
    peer: Peer | None  # from its opening on
    partial: bytearray | None  # of packets that haven't all arrived, or wait to be handled
    keep_alive_s: int
    seen_s: float
    holds: int
    due: Due | None  # when it is looked at next; None before its opening and after its end

    @property
    def born_s(self) -> float:
        """When it was accepted, until it has logged in."""

    @property
    def unsent_bytes(self) -> int:
        """Bytes that wait for its peer to read."""

    def tell_refused(self, cause: Cause, reason: SupportsInt = 0, detail: str = "", times: int = 1) -> None:
        """Tells the embedding program of a refusal, or of the end of the connection."""

    def give_way(self) -> None:
        """Ends a connection that hasn't logged in at once, to make room for another one."""

    def give_up(self) -> None:
        """Ends a connection that hasn't logged in in time."""


class Due(set[NetworkConnection]):
    """Those that are looked at in one tick of the clock."""

    __slots__ = ("tick",)

    def __init__(self, tick: int) -> None:
        super().__init__()
        self.tick = tick


LAST_BYTES_S = 5.0  # how long a closed connection may take to read what was written to it
_TICKS_A_SECOND = 2
_NEVER = sys.maxsize


def longest_silence_s(connection: NetworkConnection) -> float:
    """For how long a client with a keep-alive may send nothing. [MQTT-3.1.2-22]; [MQTT-3.1.2-24] of 3.1.1"""
    return connection.keep_alive_s * 1.5


def _owner(connection: NetworkConnection) -> str:
    client = connection.client
    return "" if client is None else client.owner


class Connections:
    """The open connections of one broker. ``admission`` counts their sockets, and those that haven't logged in."""

    def __init__(self, stats: Stats, admission: Admission, *, connect_timeout_s: float) -> None:
        self._stats = stats
        self._admission = admission
        self._connect_timeout_s = connect_timeout_s
        self._due: dict[int, Due] = {}  # by tick; there are no empty ones
        self._never = Due(_NEVER)
        self._count = 0
        self._dirty: list[CollectedOutput] = []
        self._is_reading = False  # whoever reads sees to it that what is collected meanwhile is flushed
        self._loop: asyncio.AbstractEventLoop | None = None  # asked for once: the answer is a call of the system
        self.unread: dict[NetworkConnection, None] = {}  # whose peers don't take what they are sent
        self.is_paused = False  # nothing is read from those who have logged in, or do so later
        self.held_owners: frozenset[str] = frozenset()  # the same for the clients of these
        self._is_closing = False
        self._drained = asyncio.Event()  # closing, and none is left

    def __iter__(self) -> Iterator[NetworkConnection]:
        return iter([*self._never, *(connection for due in self._due.values() for connection in due)])

    # Coming and going

    def on_opened(self, connection: NetworkConnection) -> None:
        """Adds an accepted connection, counted before or not; aborts it where there is no room."""
        self._schedule(connection, int((connection.born_s + self._connect_timeout_s) * _TICKS_A_SECOND) + 1)
        self._count += 1
        self._stats.accepted += 1
        self._stats.connections += 1
        if connection.peer is None:
            connection.peer = self._admission.enter(connection.address)
        if connection.peer is not None:
            connection.peer.give_way = connection.give_way
        if self._is_closing or connection.peer is None:
            connection.transport.abort()

    def on_logged_in(self, connection: NetworkConnection) -> None:
        """Counts a connection no longer among those that haven't logged in; its silence counts from now on. While
        nothing is read, neither is what comes after its login."""
        if self.is_paused:
            connection.hold(ReadHold.INTAKE)
        if self.held_owners and _owner(connection) in self.held_owners:
            connection.hold(ReadHold.OWNER)
        if connection.peer is not None:
            connection.peer = self._admission.on_logged_in(connection.peer)
        if connection.keep_alive_s:
            self.look_at(connection, connection.seen_s + longest_silence_s(connection))

    def on_closing(self, connection: NetworkConnection, now_s: float) -> None:
        """From here on the sweep gives it a few seconds to take its last bytes, if there are any."""
        connection.seen_s, transport = now_s, connection.transport
        is_gone = transport.is_closing() and transport.can_write_eof() and not transport.get_write_buffer_size()
        if not is_gone:  # TLS says goodbye, too
            self.look_at(connection, now_s + LAST_BYTES_S)

    def on_closed(self, connection: NetworkConnection) -> None:
        """Removes a connection whose socket is closed."""
        if connection.due is not None:
            self._unschedule(connection, connection.due)
            connection.due = None
            self._count -= 1
        self.unread.pop(connection, None)
        self._stats.connections -= 1
        if connection.peer is not None:
            self._admission.leave(connection.peer)
        if self._is_closing and not self._count:
            self._drained.set()

    # Looking at those that are silent

    def look_at(self, connection: NetworkConnection, due_s: float) -> None:
        """Has the sweep look at a connection then, in monotonic seconds, or earlier where it is to anyway."""
        tick, before = int(due_s * _TICKS_A_SECOND) + 1, connection.due
        if before is not None and tick < before.tick:
            self._unschedule(connection, before)
            self._schedule(connection, tick)

    def take_due(self, now_s: float) -> list[NetworkConnection]:
        """Those whose time has come; each has to be looked at, and is not looked at again by itself."""
        now_tick = now_s * _TICKS_A_SECOND
        due = [each for tick in [tick for tick in self._due if tick <= now_tick] for each in self._due.pop(tick)]
        for connection in due:
            connection.due = self._never
        self._never.update(due)
        return due

    def _schedule(self, connection: NetworkConnection, tick: int) -> None:
        due = self._due.get(tick)
        if due is None:
            due = self._due[tick] = Due(tick)
        due.add(connection)
        connection.due = due

    def _unschedule(self, connection: NetworkConnection, due: Due) -> None:
        due.discard(connection)
        if not due and due is not self._never:
            del self._due[due.tick]

    # Reading

    def pause(self) -> None:
        """Stops reading from all who have logged in, now or later; others are told what becomes of their login."""
        self.is_paused = True
        for connection in self:
            if connection.state is ConnectionState.OPEN:
                connection.hold(ReadHold.INTAKE)

    def resume(self) -> None:
        """Reads from all connections again."""
        self.is_paused = False
        for connection in self:
            connection.release(ReadHold.INTAKE)

    def hold_owners(self, owners: Collection[str]) -> None:
        """Reads nothing from these owners' clients that have logged in, or do so later, and from all others'."""
        before, self.held_owners = self.held_owners, frozenset(owners)
        changed = before ^ self.held_owners
        if not changed:
            return
        for connection in self:
            if (owner := _owner(connection)) not in changed:
                continue
            if owner not in self.held_owners:
                connection.release(ReadHold.OWNER)
            elif connection.state is ConnectionState.OPEN:
                connection.hold(ReadHold.OWNER)

    # Writing

    def flush_soon(self, connection: CollectedOutput) -> None:
        """Writes what the connection has collected at the end of this turn of the loop."""
        if not self._is_reading and not self._dirty:
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._flush_all)
        self._dirty.append(connection)

    def begin_reading(self) -> None:
        """Has output collected until ``end_reading``, as many connections may be read meanwhile."""
        self._is_reading = True

    def end_reading(self) -> None:
        """Writes what has been collected."""
        self._is_reading = False
        if self._dirty:
            self._flush_all()

    def _flush_all(self) -> None:
        dirty, self._dirty = self._dirty, []
        for connection in dirty:
            connection.dirty = False
            try:
                connection.flush()
            except Exception:  # a fault of ours ends this connection alone; the others are written to
                self._stats.internal_errors += 1
                log.exception("%s: internal error", connection)
                connection.transport.abort()

    # The end

    def refuse_more(self) -> None:
        """Has connections that are accepted from now on aborted at once."""
        self._is_closing = True

    async def close(self, timeout_s: float) -> None:
        """Disconnects all clients (v5: 0x8B), flushes, closes; aborts what is left after ``timeout_s``."""
        for connection in self:
            connection.close("server shutting down", reason=DisconnectReasonCode.SERVER_SHUTTING_DOWN)
        if self._count:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._drained.wait(), timeout_s)
        for connection in self:
            connection.transport.abort()
