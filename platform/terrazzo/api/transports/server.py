"""The listener of a port of HTTP, and what its connections are held to before a request reaches the application."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import Any, cast

from aiohttp import web
from aiohttp.http import StreamWriter
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong

from terrazzo.api.kernel.envelope import BAD_PARAMETER, UNREAD, Failure
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.services import ApiLimits
from terrazzo.api.transports.connection_limiter import ConnectionLimiter, Cut
from terrazzo.api.transports.known_heads import HEAD_END, HEADS, KnownHead
from terrazzo.api.transports.quick_response import write_answer

HEAD_LINE_BYTES = 8_190  # the request line, and each header
HEAD_BYTES = 64 * 1024  # all of the head

_DRAIN_S = 3.0  # for requests under way when the server stops
_GOODBYE_S = 2.0  # for last words to arrive, and for what a refused peer is still sending
_JSON = "application/json"


class HttpServer:
    """Serves one application on one address.

    Args:
        port_name: what ``/metrics`` calls its connections.
    """

    def __init__(
        self, app: web.Application, connection_limiter: ConnectionLimiter, *, limits: ApiLimits, port_name: str
    ) -> None:
        self.connection_limiter = connection_limiter
        self.limits = limits
        self.port_name = port_name
        self.heads = app.get(HEADS)  # None: each is read
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_DRAIN_S)
        self._server: asyncio.Server | None = None

    @property
    def is_listening(self) -> bool:
        """Whether it accepts connections."""
        return self._server is not None and self._server.is_serving()

    async def start(self, host: str, port: int) -> int:
        """Listens; port 0 takes a free one. Returns the port.

        Raises:
            OSError: the address is taken or not ours.
        """
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._new_connection, host, port, backlog=1024)
        return int(self._server.sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stops accepting, lets requests under way finish, closes."""
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _new_connection(self) -> HttpConnection:
        return HttpConnection(self, self._runner.server)


class HttpConnection(web.RequestHandler):
    """aiohttp's connection with a door: one too many is refused, and who dawdles over a head is shown out.

    Bodies are timed by whoever reads them. An idle connection ends after ``limits.idle_timeout_s``.
    """

    __slots__ = (
        "_address",
        "_answering",
        "_body_start",
        "_fed_bytes",
        "_head_bytes",
        "_head_tail",
        "_head_timer",
        "_held",
        "_is_admitted",
        "_is_at_rest",
        "_is_closing",
        "_is_head_complete",
        "_request_bytes",
        "_server",
    )

    def __init__(self, server: HttpServer, manager: Any) -> None:
        super().__init__(
            manager,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type] # as AppRunner itself gives it
            keepalive_timeout=float(server.limits.idle_timeout_s),
            lingering_time=_GOODBYE_S,
            max_line_size=HEAD_LINE_BYTES,
            max_field_size=HEAD_LINE_BYTES,
        )
        self._server = server
        self._address = ""
        self._is_admitted = False
        self._is_head_complete = False  # of the request that is arriving or being answered
        self._head_tail = b""
        self._head_timer: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        # Between requests, where the next byte to come is the first of a head:
        self._is_at_rest = True
        self._is_closing = False
        # Since then:
        self._request_bytes = b""  # what came, if it came at once
        self._fed_bytes = 0  # what aiohttp was given
        self._body_start = 0  # in that
        # A request that aiohttp doesn't see, and what came after it:
        self._answering: asyncio.Task[None] | None = None
        self._held = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admits the peer, or tells it that there are too many."""
        peer = transport.get_extra_info("peername")
        self._address = str(peer[0]) if peer else ""
        self._is_admitted = self._server.connection_limiter.enter(self._server.port_name, self._address)
        if self._is_admitted:
            super().connection_made(transport)
        else:
            most = self._server.connection_limiter.most
            self._hang_up(cast(asyncio.Transport, transport), 503, f"connections: {most} are open (limits.connections)")

    def data_received(self, data: bytes) -> None:
        """Answers a request whose head is known; leaves all others to aiohttp."""
        if not self._is_admitted:
            return
        if not data:  # aiohttp talks to itself
            super().data_received(data)
        elif self._answering is not None:
            self._hold(data)
        elif not self._is_at_rest:
            self._request_bytes = b""
            self._feed(data)
        elif (known := self._find(data)) is not None:
            task = self._answer(*known)
            self._answering = asyncio.get_running_loop().create_task(task, name="request with a known head")
        else:
            self._is_at_rest, self._fed_bytes, self._body_start = False, 0, 0
            self._request_bytes = data
            self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Starts the clock when a head has begun and is not complete."""
        self._fed_bytes += len(data)
        if self._is_head_complete or self.transport is None:
            return super().data_received(data)
        seen = self._head_tail + data
        end = seen.find(HEAD_END)
        self._is_head_complete = end >= 0
        if self._is_head_complete:
            self._body_start = self._fed_bytes - len(seen) + end + len(HEAD_END)
        else:
            self._head_tail = seen[-3:]
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                return self._refuse_head(Cut.HEAD_TOO_LONG, 431, f"headers: longer than {HEAD_BYTES} bytes")
            if self._head_timer is None:
                timeout_s = self._server.limits.request_timeout_s
                info = f"headers: not complete within {timeout_s} s (limits.request_timeout_s)"
                loop = asyncio.get_running_loop()
                self._head_timer = loop.call_later(timeout_s, self._refuse_head, Cut.HEAD_TIMEOUT, 408, info)
        return super().data_received(data)

    def _find(self, data: bytes) -> tuple[KnownHead, bytes] | None:
        heads = self._server.heads
        return None if heads is None or self._is_closing or self.transport is None else heads.find(data)

    def _hold(self, data: bytes) -> None:
        """Keeps what comes early, and has the rest wait in the socket."""
        self._held += data
        if self.transport is not None:
            self.transport.pause_reading()

    async def _answer(self, known: KnownHead, body: bytes) -> None:
        """Answers without aiohttp, which goes on waiting for this connection's next request."""
        heads = self._server.heads
        assert heads is not None
        try:
            answer = await heads.answer(body, Caller(self._address, known.token))
            transport = self.transport
            if transport is not None and not transport.is_closing():
                write_answer(transport, answer)
                if transport.get_write_buffer_size():
                    await StreamWriter(self, asyncio.get_running_loop()).drain()
        except ConnectionError:
            pass  # the peer is gone, and with it whoever would want to know
        finally:
            self._answering = None
            self._go_on()

    def _go_on(self) -> None:
        """The clock of idleness starts again, and what came early is next."""
        transport = self.transport
        if transport is None or transport.is_closing():
            return
        if self._is_closing:
            transport.close()
            return
        self._next_keepalive_close_time = asyncio.get_running_loop().time() + self.keepalive_timeout
        if self._held:
            data, self._held = self._held, b""
            transport.resume_reading()
            self.data_received(data)

    def _process_keepalive(self) -> None:
        """aiohttp's clock of idleness, which doesn't know of the request that is being answered."""
        if self._answering is not None:
            self._next_keepalive_close_time = asyncio.get_running_loop().time() + self.keepalive_timeout
        super()._process_keepalive()

    async def finish_response(
        self, request: web.BaseRequest, resp: web.StreamResponse, start_time: float | None
    ) -> tuple[web.StreamResponse, bool]:
        """Writes it; if all that came belonged to this request, the next byte begins another one."""
        outcome = await super().finish_response(request, resp, start_time)
        whole = self._body_start + (request.content_length or 0)
        self._is_at_rest = whole == self._fed_bytes and self._body_start > 0 and bool(resp.keep_alive)
        return outcome

    def learn_head(self, request: web.BaseRequest, token: str | None) -> None:
        """The gateway has answered this request: with the same head it need not be read again."""
        if self._server.heads is not None and self._request_bytes:
            self._server.heads.learn(self._request_bytes, request, token)

    def close(self) -> None:
        """No further request; one under way is answered."""
        self._is_closing = True
        super().close()

    async def shutdown(self, timeout: float | None = 15.0) -> None:
        """Lets a request under way finish."""
        if self._answering is not None:
            await asyncio.wait([self._answering], timeout=timeout)
        if self._answering is not None:
            self._answering.cancel()
        await super().shutdown(timeout)

    def connection_lost(self, exc: BaseException | None) -> None:
        """Counts it out."""
        self._stop_clock()
        if self._is_admitted:
            self._is_admitted = False
            self._server.connection_limiter.leave(self._server.port_name)
            super().connection_lost(exc)

    def on_request(self) -> None:
        """The head is complete, and the application has the request."""
        self._is_head_complete = True
        self._stop_clock()

    def count_late_body(self) -> None:
        """The application waited for the rest of a body in vain."""
        timeout_s = self._server.limits.request_timeout_s
        self._server.connection_limiter.cut(Cut.BODY_TIMEOUT, self._address, f"body: not complete within {timeout_s} s")

    def on_answered(self) -> None:
        """The next head may begin."""
        self._is_head_complete = False

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Says in an envelope what aiohttp could not read; what it did not expect it logs itself."""
        if not isinstance(exc, BadHttpMessage):
            return super().handle_error(request, status, exc, message)
        if isinstance(exc, LineTooLong):
            why, status, info = Cut.HEAD_TOO_LONG, 431, f"headers: a line is longer than {HEAD_LINE_BYTES} bytes"
        else:
            why, info = Cut.MALFORMED, f"request: {str(exc.message).splitlines()[0][:200]}"
        self._server.connection_limiter.cut(why, self._address, info)
        response = web.Response(body=_envelope(status, info), status=status, content_type=_JSON)
        response.force_close()
        return response

    def _refuse_head(self, why: Cut, status: int, info: str) -> None:
        self._stop_clock()
        self._server.connection_limiter.cut(why, self._address, info)
        if self.transport is not None:
            self._hang_up(self.transport, status, info)
            self.close()

    def _stop_clock(self) -> None:
        self._head_bytes, self._head_tail = 0, b""
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _hang_up(self, transport: asyncio.Transport, status: int, info: str) -> None:
        """Last words, and this half is closed; the other a little later, so that the words arrive."""
        body = _envelope(status, info)
        head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: {_JSON}\r\nConnection: close\r\n"
        transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        transport.write_eof()
        asyncio.get_running_loop().call_later(_GOODBYE_S, transport.abort)


def _envelope(status: int, info: str) -> bytes:
    return UNREAD.failure(Failure(BAD_PARAMETER, info, status)).body
