"""The listener of a port of HTTP."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence
from weakref import WeakMethod

from aiohttp import web
from aiohttp.http_exceptions import BadHttpMessage, LineTooLong
from aiohttp.http_websocket import WebSocketReader

from terrazzo.api.kernel.services import ApiLimits
from terrazzo.api.transports.connection import HttpConnection
from terrazzo.api.transports.connection_limiter import ConnectionLimiter, Cut
from terrazzo.api.transports.known_heads import HEADS
from terrazzo.api.transports.peers.client_address import PROXIES
from terrazzo.api.transports.port import Port
from terrazzo.api.transports.refusals import GOODBYE_S, encode_refusal
from terrazzo.api.transports.tls import TlsAcceptor, TlsParts
from terrazzo.reasons import say
from terrazzo_broker.listeners.acceptor import bind

HEALTHY = "http"  # the port that has ``/healthz``
HEAD_LINE_BYTES = 8_190  # the request line, and each header

_DRAIN_S = 3.0  # for requests under way when the server stops
_NEVER_S = 10 * 365 * 86_400.0  # HttpConnection ends idle connections, aiohttp needn't


class HttpServer:
    """Serves one application on one address.

    Args:
        port_name: what ``/metrics`` calls its connections.
        tls: of HTTPS; None: plain HTTP.
    """

    def __init__(
        self,
        app: web.Application,
        connection_limiter: ConnectionLimiter,
        *,
        limits: ApiLimits,
        port_name: str,
        tls: TlsParts | None = None,
    ) -> None:
        self._port = Port(port_name, port_name == HEALTHY, connection_limiter, limits, app.get(HEADS), app[PROXIES])
        self._tls = tls
        self._acceptor: TlsAcceptor | None = None
        self._connections: set[HttpConnection] = set()
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=_DRAIN_S)
        self._server: asyncio.Server | None = None

    @property
    def is_listening(self) -> bool:
        """Whether it accepts connections."""
        if self._acceptor is not None:
            return self._acceptor.is_serving()
        return self._server is not None and self._server.is_serving()

    @property
    def requests_read(self) -> int:
        """How many requests aiohttp has read since the start; those whose head was known are not among them."""
        server = self._runner.server
        return 0 if server is None else server.requests_count

    async def start(self, host: str, port: int) -> int:
        """Listens; port 0 takes a free one. Returns the port.

        Raises:
            OSError: the address is taken or not ours.
        """
        await self._runner.setup()
        if self._tls is not None:
            return self._start_tls(self._tls, bind(host, port))
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._new_connection, host, port, backlog=1024)
        return int(self._server.sockets[0].getsockname()[1])

    def _start_tls(self, tls: TlsParts, sockets: Sequence[socket.socket]) -> int:
        self._acceptor = TlsAcceptor(
            self._port.name,
            sockets,
            tls,
            connection_limiter=self._port.connection_limiter,
            new_connection=self._new_connection,
            timeout_s=self._port.limits.request_timeout_s,
        )
        return int(sockets[0].getsockname()[1])

    async def stop(self) -> None:
        """Stops accepting, lets requests under way finish, closes."""
        if self._acceptor is not None:
            await self._acceptor.close()
        if self._server is not None:
            self._server.close()
        under_way = [task for connection in self._connections if (task := connection.close()) is not None]
        if under_way:
            _, late = await asyncio.wait(under_way, timeout=_DRAIN_S)
            for task in late:
                task.cancel()
        await self._runner.cleanup()

    def _new_connection(self) -> HttpConnection:
        return HttpConnection(self._port, self._new_reader, self._connections)

    def _new_reader(self) -> _RequestReader:
        server = self._runner.server
        assert server is not None
        return _RequestReader(server, self._port.connection_limiter)


class _RequestReader(web.RequestHandler):
    """aiohttp's protocol, which says in an envelope what it could not read."""

    __slots__ = ("_connection_limiter",)

    def __init__(self, server: web.Server, connection_limiter: ConnectionLimiter) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type] # as AppRunner itself gives it
            keepalive_timeout=_NEVER_S,
            lingering_time=GOODBYE_S,
            auto_decompress=False,  # BodyReader does, when it is known for whom, and not in the event loop
            max_line_size=HEAD_LINE_BYTES,
            max_field_size=HEAD_LINE_BYTES,
        )
        self._connection_limiter = connection_limiter

    def set_parser(self, parser: WebSocketReader, data_received_cb: Callable[[], None] | None = None) -> None:
        """A WebSocket takes over. It refers to this protocol, which therefore must not keep it when it is closed."""
        super().set_parser(parser, None if data_received_cb is None else _while_it_lives(data_received_cb))

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """The response to what is not HTTP; what aiohttp did not expect it logs itself."""
        if not isinstance(exc, BadHttpMessage):
            return super().handle_error(request, status, exc, message)
        exc.__traceback__ = None  # whose frames refer to the error: they would keep each other, and the connection
        if isinstance(exc, LineTooLong):
            why, status, info = Cut.HEAD_TOO_LONG, 431, say("header_too_long", most=HEAD_LINE_BYTES)
        else:
            why, info = Cut.MALFORMED, say("request_malformed", why=str(exc.message).splitlines()[0][:200])
        self._connection_limiter.cut(why, request.remote or "", info)
        response = web.Response(body=encode_refusal(status, info), status=status, content_type="application/json")
        response.force_close()
        return response


def _while_it_lives(method: Callable[[], None]) -> Callable[[], None]:
    """Calls a method of an object that this does not keep."""
    found = WeakMethod(method)

    def call() -> None:
        if (alive := found()) is not None:
            alive()

    return call
