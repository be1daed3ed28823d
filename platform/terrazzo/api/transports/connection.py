"""A connection of a port of HTTP: admission, clocks, and the requests whose head is known; aiohttp reads all others."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from http import HTTPStatus
from typing import cast

from aiohttp import web

from terrazzo.api.kernel.envelope import BAD_PARAMETER, UNREAD, Answer, Failure
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.services import ApiLimits
from terrazzo.api.transports.connection_limiter import ConnectionLimiter, Cut
from terrazzo.api.transports.idle_clock import IdleClock
from terrazzo.api.transports.json_response import write_answer
from terrazzo.api.transports.known_heads import KnownHead, KnownHeads
from terrazzo.api.transports.request_bounds import RequestBounds

HEAD_BYTES = 64 * 1024  # all of a head
GOODBYE_S = 2.0  # for last words to arrive, and for what a refused peer is still sending


@dataclass(frozen=True, slots=True)
class Port:
    """What the connections of a port share.

    Args:
        name: what ``/metrics`` calls its connections.
        heads: None where each request is read by aiohttp.
    """

    name: str
    connection_limiter: ConnectionLimiter
    limits: ApiLimits
    heads: KnownHeads | None


class HttpConnection(asyncio.Protocol):
    """Stands before aiohttp's protocol and hands it what it receives, but for requests whose head is known.

    One too many is refused, and a head that takes too long or is too long ends the connection, as does idleness after
    ``limits.idle_timeout_s``. Bodies are timed by whoever reads them.

    Args:
        reader: aiohttp's protocol for this connection. It is given the transport itself.
        connections: of the port; this one is among them while it is open.
    """

    __slots__ = (
        "_address",
        "_answering",
        "_bounds",
        "_connections",
        "_head_timer",
        "_held",
        "_idle",
        "_is_closing",
        "_is_refused",
        "_port",
        "_reader",
        "_transport",
        "_writable",
    )

    def __init__(self, port: Port, reader: asyncio.Protocol, connections: set[HttpConnection]) -> None:
        self._port = port
        self._reader = reader
        self._connections = connections
        self._transport: asyncio.Transport | None = None  # where it was admitted and is open
        self._address = ""
        self._idle: IdleClock | None = None
        self._is_closing = False
        self._is_refused = False
        self._writable: asyncio.Event | None = None  # set: the peer takes what it is sent
        self._bounds = RequestBounds()
        self._head_timer: asyncio.TimerHandle | None = None
        # A request that aiohttp doesn't see, and what came after it:
        self._answering: asyncio.Task[None] | None = None
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admits the peer, or tells it that there are too many."""
        opened = cast(asyncio.Transport, transport)
        peer = opened.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        connection_limiter = self._port.connection_limiter
        if not connection_limiter.enter(self._port.name, self._address):
            _hang_up(opened, 503, f"connections: {connection_limiter.most} are open (limits.connections)")
            return
        self._transport = opened
        self._connections.add(self)
        self._idle = IdleClock(self._port.limits.idle_timeout_s, opened.close)
        self._reader.connection_made(opened)

    def data_received(self, data: bytes) -> None:
        """Answers a request whose head is known; hands all others to aiohttp."""
        if self._transport is None or self._is_refused:
            return
        if self._answering is not None:
            self._held += data
            self._transport.pause_reading()  # the rest waits in the socket
        elif self._bounds.is_at_rest and (known := self._find(data)) is not None:
            task = self._answer(*known)
            self._answering = asyncio.get_running_loop().create_task(task, name="request with a known head")
        else:
            self._hand_on(data)

    def _find(self, data: bytes) -> tuple[KnownHead, bytes] | None:
        heads = self._port.heads
        return None if heads is None or self._is_closing else heads.find(data)

    def _hand_on(self, data: bytes) -> None:
        bounds = self._bounds
        bounds.receive(data)
        if bounds.head_bytes > HEAD_BYTES:
            self._refuse_head(Cut.HEAD_TOO_LONG, 431, f"headers: longer than {HEAD_BYTES} bytes")
            return
        if not bounds.is_head_complete and self._head_timer is None:
            timeout_s = self._port.limits.request_timeout_s
            info = f"headers: not complete within {timeout_s} s (limits.request_timeout_s)"
            loop = asyncio.get_running_loop()
            self._head_timer = loop.call_later(timeout_s, self._refuse_head, Cut.HEAD_TIMEOUT, 408, info)
        self._reader.data_received(data)

    async def _answer(self, known: KnownHead, body: bytes) -> None:
        """Answers a request that aiohttp doesn't see; it goes on waiting for this connection's next one."""
        heads, idle = self._port.heads, self._idle
        assert heads is not None
        assert idle is not None
        idle.hold()
        try:
            await self.send(await heads.answer(body, Caller(self._address, known.token)))
        except ConnectionError:
            pass  # the peer is gone, and with it whoever would want to know
        finally:
            self._answering = None
            idle.restart()
            self._go_on()

    async def send(self, answer: Answer) -> None:
        """Writes a whole response, and waits for a peer that is slow to read.

        Raises:
            ConnectionResetError: the peer is gone.
        """
        transport = self._transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the peer is gone")
        write_answer(transport, answer)
        if self._writable is not None:
            await self._writable.wait()

    def _go_on(self) -> None:
        """What came early is next."""
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        if self._is_closing:
            transport.close()
        elif self._held:
            data, self._held = self._held, b""
            transport.resume_reading()
            self.data_received(data)

    # What happens to a request that aiohttp has read:

    def on_request(self) -> None:
        """The head is complete, and a handler has the request."""
        self._bounds.end_head()
        self._stop_head_timer()
        if self._idle is not None:
            self._idle.hold()

    def on_answered(self, request: web.BaseRequest, *, stays: bool) -> None:
        """The answer has been written, after which the connection stays or not."""
        if self._idle is not None:
            self._idle.restart()
        if stays:
            self._bounds.end_request(request.content_length or 0)

    def learn_head(self, request: web.BaseRequest, token: str | None) -> None:
        """The gateway has answered this request: with the same head it need not be read again."""
        if self._port.heads is not None and self._bounds.first_read:
            self._port.heads.learn(self._bounds.first_read, request, token)

    def count_late_body(self) -> None:
        """The application waited for the rest of a body in vain."""
        timeout_s = self._port.limits.request_timeout_s
        self._port.connection_limiter.cut(Cut.BODY_TIMEOUT, self._address, f"body: not complete within {timeout_s} s")

    # The connection's end:

    def close(self) -> asyncio.Task[None] | None:
        """No further request goes past aiohttp. Returns the one that is being answered, after which it closes."""
        self._is_closing = True
        return self._answering

    def _refuse_head(self, why: Cut, status: int, info: str) -> None:
        """What else comes is not read."""
        self._is_refused = True
        self._stop_head_timer()
        self._port.connection_limiter.cut(why, self._address, info)
        if self._transport is not None:
            _hang_up(self._transport, status, info)

    def connection_lost(self, exc: Exception | None) -> None:
        """Counts it out."""
        self._stop_head_timer()
        if self._transport is None:
            return
        self._transport = None
        if self._idle is not None:
            self._idle.stop()
        if self._writable is not None:
            self._writable.set()
        self._connections.discard(self)
        self._port.connection_limiter.leave(self._port.name)
        self._reader.connection_lost(exc)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    # What the loop says, and aiohttp wants to know:

    def eof_received(self) -> bool | None:
        """The peer says no more."""
        return self._reader.eof_received() if self._transport is not None else None

    def pause_writing(self) -> None:
        """The peer does not take what it is sent."""
        if self._transport is not None:
            self._writable = asyncio.Event()
            self._reader.pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        if self._writable is not None:
            self._writable.set()
            self._writable = None
            self._reader.resume_writing()


def connection_of(request: web.BaseRequest) -> HttpConnection | None:
    """The connection that a request came on; None when it is gone."""
    transport = request.transport
    protocol = None if transport is None else transport.get_protocol()
    return protocol if isinstance(protocol, HttpConnection) else None


def encode_refusal(status: int, info: str) -> bytes:
    """The body that a request gets which no handler has seen."""
    return UNREAD.failure(Failure(BAD_PARAMETER, info, status)).body


def _hang_up(transport: asyncio.Transport, status: int, info: str) -> None:
    """Last words, and this half is closed; the other a little later, so that the words arrive."""
    body = encode_refusal(status, info)
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    transport.write_eof()
    asyncio.get_running_loop().call_later(GOODBYE_S, transport.abort)
