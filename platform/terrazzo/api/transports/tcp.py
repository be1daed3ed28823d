"""The gateway over TCP: one request a line, one answer a line, in order (section 1 "Transports")."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from terrazzo.api.kernel.dispatch import Gateway
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.services import ApiLimits
from terrazzo.api.transports.bodies.reader import UNPROVEN_BYTES
from terrazzo.api.transports.connection_limiter import ConnectionLimiter, Cut
from terrazzo.api.transports.conversation import Conversation
from terrazzo.api.transports.lines import Lines, LineTooLong
from terrazzo.api.transports.peers.shares import ConnectionSlot, Full
from terrazzo.api.transports.refusals import encode_refusal
from terrazzo.live.feed import Sink
from terrazzo.live.frames import Framing, as_line
from terrazzo.live.session import LiveSession
from terrazzo.live.socket_writer import SocketWriter
from terrazzo.memory_shares import NOBODY
from terrazzo.ports import at_work
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog

_log = SparseLog(logging.getLogger(__name__))

PORT = "tcp"
OpenSession = Callable[[Caller, Sink], LiveSession]

_LINES_AHEAD = 64  # complete lines that wait; more are not read
_BYTES_AHEAD = 64 * 1024  # of them
_GOODBYE_S = 3.0  # for the last words
_DRAIN_S = 3.0  # for requests under way when the server stops
_KEEPALIVE = (("TCP_KEEPIDLE", 60), ("TCP_KEEPINTVL", 15), ("TCP_KEEPCNT", 4), ("TCP_USER_TIMEOUT", 60_000))


class TcpConnection(asyncio.Protocol):
    """One connection's bytes: lines in, lines out. Serves as the ``Sink`` of its live frames too."""

    framing: Framing = staticmethod(as_line)

    def __init__(self, server: TcpServer) -> None:
        self._server = server
        self._lines = Lines(min(UNPROVEN_BYTES, server.limits.body_bytes))
        self._changed = asyncio.Event()  # something arrived, or nothing more will
        self._sent = asyncio.Event()  # what was written is on its way
        self._sent.set()
        self._has_ended = False
        self._is_paused = False
        self._reads_ahead = False  # since a line was taken, which is worked on
        self._is_deaf = False  # what still arrives is of no interest
        self._lost = asyncio.Event()
        self._partial_since_s: float | None = None
        self._loop = asyncio.get_running_loop()
        self.address = ""
        self.slot: ConnectionSlot | None = None
        self._on_gone: Callable[[], None] | None = None
        self.on_lost: Callable[[], None] | None = None  # while requests are taken

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._socket_writer = SocketWriter(self.transport)
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        _keep_alive(self.transport)
        self._server.on_connected(self)

    def data_received(self, data: bytes) -> None:
        if self._is_deaf:
            return
        self._lines.feed(data)
        if not self._lines.is_partial:
            self._partial_since_s = None
        elif self._partial_since_s is None or b"\n" in data:
            self._partial_since_s = self._loop.time()
        if not self._is_paused and self._has_enough:
            self._is_paused = True
            self.transport.pause_reading()
        self._changed.set()

    @property
    def _has_enough(self) -> bool:
        lines = self._lines
        return len(lines) >= _LINES_AHEAD or lines.waiting_bytes >= _BYTES_AHEAD or lines.is_over

    def eof_received(self) -> bool:
        self._lines.end()
        self._partial_since_s = None
        self.end()
        return not self._is_deaf  # answers may still go out

    def connection_lost(self, error: Exception | None) -> None:
        self._lost.set()
        self._sent.set()
        self._server.unread.remove(self)
        self.end()
        if self.slot is not None and self.slot.reading is not None:
            at_work.end_of_lost(self.slot.reading)
        if self.on_lost is not None:
            self.on_lost()
        if self._on_gone is not None:
            self._on_gone()

    def pause_writing(self) -> None:
        self._sent.clear()
        self._server.unread.add(self)

    def resume_writing(self) -> None:
        self._sent.set()
        self._server.unread.remove(self)

    def kept(self) -> tuple[int, int, int]:
        """Whose lines wait or have begun, and the bytes of them."""
        size = self._lines.kept_bytes
        return NOBODY if self.slot is None else self.slot.company_id, size, int(size > 0)

    @property
    def unsent_transport(self) -> asyncio.Transport:
        """Where bytes wait for the peer."""
        return self.transport

    # What the server calls

    @property
    def is_open(self) -> bool:
        """Whether anything may be written: not after the last words."""
        return not self._is_deaf and not self.transport.is_closing()

    @property
    def has_room(self) -> bool:
        """Whether the peer takes what it is sent."""
        return self._socket_writer.has_room

    def write(self, data: bytes) -> None:
        """Sends whole lines, without waiting."""
        self._socket_writer.write(data)

    async def send(self, body: bytes) -> None:
        """Sends one answer.

        Raises:
            ConnectionError: the peer is gone.
            TimeoutError: it takes nothing.
        """
        if not self.is_open:
            raise ConnectionResetError("the peer is gone")
        self.transport.write(as_line(body))
        if not self._sent.is_set():
            async with asyncio.timeout(self._server.limits.request_timeout_s):
                await self._sent.wait()

    def end(self) -> None:
        """Nothing more is read: the peer has said so, or is gone, or the server stops."""
        self._has_ended = True
        self._changed.set()

    async def next_line(self) -> bytes | None:
        """The next line; None at the end.

        Raises:
            LineTooLong: it is over the limit.
            TimeoutError: nothing came for a long time, or the rest of a line not in time; ``is_partial`` tells which.
        """
        if self.is_proven:
            self._lines.most_bytes = self._server.limits.body_bytes
        while (line := self._lines.next()) is None:
            if self._has_ended:
                return None
            self._read_on()
            if self._reads_ahead:
                self._reads_ahead = False
                self._restart_line()
            self._changed.clear()
            async with asyncio.timeout_at(self._deadline_s()):
                await self._changed.wait()
        if self._is_paused and self.is_open and not self._has_enough:  # who isn't read is not known to be gone
            self._is_paused, self._reads_ahead = False, True
            self.transport.resume_reading()
        return None if self._lost.is_set() else line

    def hear_no_more(self, last_words: bytes) -> None:
        """Says why, closes this half and lets the other run dry: a peer that is still sending would lose the reason."""
        self._is_deaf = True
        self._loop.call_later(_GOODBYE_S, self.transport.abort)
        self.transport.write(last_words)
        self.transport.write_eof()

    def refuse(self, limiter: ConnectionLimiter, info: str) -> None:
        """Says why there is no place, if there is one for that."""
        self._is_deaf = True
        if limiter.begin_goodbye():
            self._on_gone = limiter.end_goodbye
            self.hear_no_more(_refusal(503, info))
        else:
            self.transport.abort()

    def give_way(self) -> None:
        """Ends at once, with a reason for a peer that reads."""
        self._is_deaf = True
        self.transport.write(_refusal(503, say("connection_gave_way")))
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    async def wait_lost(self) -> None:
        """Until the connection is gone."""
        await self._lost.wait()

    @property
    def is_proven(self) -> bool:
        """Whether a good token has come."""
        return self.slot is not None and self.slot.is_proven

    @property
    def is_partial(self) -> bool:
        """Whether a line has begun and is not complete."""
        return self._lines.is_partial

    def _read_on(self) -> None:
        if self._is_paused and self.is_open:
            self._is_paused = False
            self.transport.resume_reading()
            self._restart_line()

    def _restart_line(self) -> None:
        """That the rest of a line is not here was not the peer's fault so far."""
        if self._lines.is_partial:
            self._partial_since_s = self._loop.time()

    def _deadline_s(self) -> float:
        limits = self._server.limits
        if self._partial_since_s is not None:
            return self._partial_since_s + limits.request_timeout_s
        return self._loop.time() + limits.idle_timeout_s


class TcpServer:
    """Serves the gateway on one address."""

    def __init__(
        self, gateway: Gateway, connection_limiter: ConnectionLimiter, *, limits: ApiLimits, open_session: OpenSession
    ) -> None:
        self.limits = limits
        self.unread = connection_limiter.unread
        self._gateway = gateway
        self._connection_limiter = connection_limiter
        self._open_session = open_session
        self._server: asyncio.Server | None = None
        self._serving: dict[TcpConnection, asyncio.Task[None]] = {}

    @property
    def is_listening(self) -> bool:
        """Whether it accepts connections."""
        return self._server is not None and self._server.is_serving()

    async def start(self, host: str, port: int) -> int:
        """Listens; port 0 takes a free one. Returns the port.

        Raises:
            OSError: the address is taken or not ours.
        """
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: TcpConnection(self), host, port, backlog=1024)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stops accepting and reading, answers what was read, closes."""
        if self._server is None:
            return
        self._server.close()
        for channel in list(self._serving):
            channel.end()
        tasks = list(self._serving.values())
        if tasks:
            await asyncio.wait(tasks, timeout=_DRAIN_S)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def on_connected(self, channel: TcpConnection) -> None:
        """A peer has connected; who is one too many is told so."""
        limiter = self._connection_limiter
        place = limiter.enter(PORT, channel.address, give_way=channel.give_way, is_idle=lambda: True)
        if isinstance(place, Full):
            channel.refuse(limiter, limiter.why(place))
            return
        channel.slot = place
        limiter.requests[channel] = None
        name = f"TCP connection of {channel.address}"
        self._serving[channel] = asyncio.create_task(self._serve(channel), name=name)

    async def _serve(self, channel: TcpConnection) -> None:
        """Serves one connection to its end; whatever goes wrong ends this connection alone."""
        try:
            await self._converse(channel)
        except TimeoutError:
            self._connection_limiter.cut(Cut.UNREAD, channel.address, "the peer does not take its answers")
            channel.transport.abort()
        except OSError:
            channel.transport.abort()  # it is gone
        except Exception:  # noqa: BLE001 - a fault of ours: the log has it, and the peer isn't left waiting
            _log.error("TCP connection of %s failed and is ended", channel.address, exc_info=True)
            channel.transport.abort()
        finally:
            channel.transport.close()
            asyncio.get_running_loop().call_later(_GOODBYE_S, channel.transport.abort)  # if it can't send the rest
            del self._serving[channel]
            self._connection_limiter.requests.pop(channel, None)
            if channel.slot is not None:
                self._connection_limiter.leave(PORT, channel.slot)

    async def _converse(self, channel: TcpConnection) -> None:
        caller = Caller(channel.address, slot=channel.slot)
        caller.live = self._open_session(caller, channel)
        talk = Conversation(
            self._gateway,
            caller,
            channel.send,
            most=self.limits.pipelined_requests,
            most_bytes=self.limits.body_bytes,
            on_full=self._connection_limiter.pause,
            among=self._connection_limiter.requests,
        )
        try:
            async with talk:
                channel.on_lost = talk.end_lost
                await self._answer(channel, caller.live, talk)
        finally:
            channel.on_lost = None
            caller.live.close()

    async def _answer(self, channel: TcpConnection, live: LiveSession, talk: Conversation) -> None:
        """Answers line by line until there is a reason to close, which is said where there is something to say."""
        while True:
            try:
                line = await channel.next_line()
            except TimeoutError:
                if live and not channel.is_partial:
                    continue  # it is here to be told, not to ask
                why, info = self._lateness(channel)
                break
            except LineTooLong:
                why, info = Cut.TOO_LONG, self._length(channel)
                break
            if line is None:
                await talk.finish()
                return
            await talk.take(line)
        await talk.finish()
        self._connection_limiter.cut(why, channel.address, info)
        channel.hear_no_more(_refusal(413 if why is Cut.TOO_LONG else 408, info))
        await channel.wait_lost()

    def _length(self, channel: TcpConnection) -> str:
        if channel.is_proven or self.limits.body_bytes <= UNPROVEN_BYTES:
            return say("body_too_long", most=self.limits.body_bytes, key="limits.body_bytes")
        return say("line_needs_token", most=UNPROVEN_BYTES)

    def _lateness(self, channel: TcpConnection) -> tuple[Cut, str]:
        if channel.is_partial:
            return Cut.BODY_TIMEOUT, say("line_late", seconds=self.limits.request_timeout_s)
        return Cut.IDLE, say("connection_idle", seconds=self.limits.idle_timeout_s)


def _refusal(status: int, info: str) -> bytes:
    return as_line(encode_refusal(status, info))


def _keep_alive(transport: asyncio.Transport) -> None:
    """A peer that is silently gone is noticed within two minutes."""
    connection = transport.get_extra_info("socket")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        option = getattr(socket, name, None)  # not every system has all of them
        if option is not None:
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, option, value)
