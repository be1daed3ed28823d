"""The transport of a plain TCP socket that the broker looks at by itself."""

from __future__ import annotations

import asyncio
import os
import select
import socket
from collections.abc import Sequence
from enum import Enum
from typing import Any, Protocol

HIGH_BYTES = 64 << 10  # with more of them waiting, the protocol is to write no more until all are taken
_MOST_PIECES = 64  # written in one call of the system
_READABLE, _WRITABLE = select.EPOLLIN, select.EPOLLOUT


class SocketPoller(Protocol):
    """What looks at the sockets of transports, as a transport needs it."""

    def watch(self, descriptor: int, before: int, now: int) -> None:
        """Looks for other events than before; 0: for none."""

    def end_soon(self, transport: PolledTransport, descriptor: int, error: Exception | None) -> None:
        """Has ``transport.tell_end`` called in a later turn of the loop, and the descriptor closed then."""


class _Phase(Enum):
    OPEN = "open"
    CLOSING = "what waits is still written"
    ENDED = "its protocol is told in the next turn of the loop"


_OPEN, _CLOSING, _ENDED = _Phase  # looked up once, not with each write
_write = os.write


class _Unsent:
    """What the peer's system hasn't taken."""

    __slots__ = ("ends", "is_told", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[memoryview] = []
        self.size = 0
        self.is_told = False  # the protocol is, that it is to write no more
        self.ends = False  # the half of the connection ends behind it

    def add(self, data: memoryview) -> None:
        self.pieces.append(data)
        self.size += len(data)

    def take(self, count: int) -> None:
        """Takes off what has been written."""
        self.size -= count
        done = 0
        for piece in self.pieces:
            if len(piece) > count:
                break
            count -= len(piece)
            done += 1
        del self.pieces[:done]
        if count:
            self.pieces[0] = self.pieces[0][count:]


class PolledTransport:
    """What a protocol needs of ``asyncio.Transport``, over a descriptor that is its own from now on.

    It is small, as each client has one, and is used on the loop's thread. As uvloop's transports do it, the protocol is
    told to write no more with over 64 KiB waiting, and to go on when all has been taken.
    """

    __slots__ = ("_phase", "_poller", "_unsent", "_watched", "descriptor", "is_reading", "protocol")

    def __init__(self, poller: SocketPoller, descriptor: int, protocol: asyncio.Protocol) -> None:
        self._poller = poller
        self.descriptor = descriptor  # -1: none any more
        self.protocol: asyncio.Protocol = protocol
        self.is_reading = True
        self._phase: _Phase = _OPEN
        self._watched = 0  # the events that the poller looks for
        self._unsent: _Unsent | None = None

    def start(self) -> None:
        """Reads from now on, unless the protocol has paused it before."""
        if self.is_reading:
            self._watch(_READABLE)

    def _watch(self, events: int) -> None:
        if events != self._watched:
            self._poller.watch(self.descriptor, self._watched, events)
            self._watched = events

    # Reading

    def pause_reading(self) -> None:
        """Reads no more. That the socket isn't looked at any more is told to the system when it has something."""
        self.is_reading = False

    def resume_reading(self) -> None:
        """Reads again."""
        if self._phase is _OPEN:
            self.is_reading = True
            self._watch(self._watched | _READABLE)

    def rest(self) -> None:
        """Called when there is something to read, and it isn't read."""
        if self._watched & _READABLE:
            self._watch(self._watched & ~_READABLE)
        else:
            self.fail(None)  # nothing but the connection's end is told without being asked for

    def on_end_of_input(self) -> None:
        """Called when the peer has ended its half."""
        self.protocol.eof_received()
        self.close()

    # Writing

    def write(self, data: bytes) -> None:
        """Writes what the socket takes now; the rest waits."""
        if self._unsent is not None:
            return self._add(self._unsent, data)
        try:
            sent = _write(self.descriptor, data)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            return self.fail(error)
        if sent == len(data):
            return None
        rest = _Unsent()
        rest.add(memoryview(data)[sent:])
        return self._keep(rest)

    def writelines(self, pieces: Sequence[bytes]) -> None:
        """Writes what the socket takes now, without joining it; the rest waits."""
        if self._unsent is not None:
            for piece in pieces:
                self._add(self._unsent, piece)
            return None
        rest = _Unsent()
        for piece in pieces:
            rest.add(memoryview(piece))
        try:
            rest.take(os.writev(self.descriptor, rest.pieces[:_MOST_PIECES]))
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            return self.fail(error)
        return self._keep(rest) if rest.size else None

    def _add(self, unsent: _Unsent, data: bytes) -> None:
        if self._phase is _OPEN:
            unsent.add(memoryview(data))
            self._hold_writer(unsent)

    def _keep(self, rest: _Unsent) -> None:
        self._unsent = rest
        self._watch(self._watched | _WRITABLE)
        self._hold_writer(rest)

    def _hold_writer(self, unsent: _Unsent) -> None:
        if unsent.size > HIGH_BYTES and not unsent.is_told:
            unsent.is_told = True
            self.protocol.pause_writing()

    def send_more(self) -> None:
        """Writes what waits, as the socket has room again."""
        unsent = self._unsent
        if unsent is None:
            return self._watch(self._watched & ~_WRITABLE)
        try:
            sent = os.writev(self.descriptor, unsent.pieces[:_MOST_PIECES])
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:
            return self.fail(error)
        unsent.take(sent)
        return None if unsent.size else self._on_sent(unsent)

    def _on_sent(self, unsent: _Unsent) -> None:
        self._unsent = None
        self._watch(self._watched & ~_WRITABLE)
        if unsent.ends:
            try:
                self._end_output()
            except OSError as error:
                return self.fail(error)
        if self._phase is _CLOSING:
            return self._end_soon(None)
        return self.protocol.resume_writing() if unsent.is_told else None

    def get_write_buffer_size(self) -> int:
        """Bytes that wait."""
        return 0 if self._unsent is None else self._unsent.size

    def can_write_eof(self) -> bool:
        """Whether its half of the connection can be ended: always."""
        return True

    def write_eof(self) -> None:
        """Ends its half of the connection behind what waits.

        Raises:
            OSError: the peer is gone.
        """
        if self._unsent is not None:
            self._unsent.ends = True
        elif self._phase is not _ENDED:
            self._end_output()

    def _end_output(self) -> None:
        borrowed = socket.socket(fileno=self.descriptor)
        try:
            borrowed.shutdown(socket.SHUT_WR)
        finally:
            borrowed.detach()

    # The end

    def is_closing(self) -> bool:
        """Whether it is closed, or will be once what waits is written."""
        return self._phase is not _OPEN

    def close(self) -> None:
        """Reads no more, writes what waits, and ends."""
        if self._phase is not _OPEN:
            return
        self._phase, self.is_reading = _CLOSING, False
        self._watch(self._watched & ~_READABLE)
        if self._unsent is None:
            self._end_soon(None)

    def abort(self) -> None:
        """Ends; what waits is lost."""
        self.fail(None)

    def fail(self, error: Exception | None) -> None:
        """Ends because of an error."""
        if self._phase is not _ENDED:
            self.is_reading, self._unsent = False, None
            self._watch(0)
            self._end_soon(error)

    def _end_soon(self, error: Exception | None) -> None:
        self._phase, descriptor, self.descriptor = _ENDED, self.descriptor, -1
        self._poller.end_soon(self, descriptor, error)

    def tell_end(self, error: Exception | None) -> None:
        """Tells the protocol. Called once."""
        protocol, self.protocol = self.protocol, _NOBODY  # it refers to this
        protocol.connection_lost(error)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """``default``: whoever accepts the socket tells its protocol the peer's address."""
        return default


_NOBODY = asyncio.Protocol()
