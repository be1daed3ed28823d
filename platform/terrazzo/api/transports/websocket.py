"""The gateway over WebSocket: one request a message, one answer a message, in order (section 1 "Transports")."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from aiohttp import WSCloseCode, WSMsgType, web

from terrazzo.api.kernel.dispatch import Gateway, bearer_token
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.services import ApiLimits
from terrazzo.api.transports.connection import connection_of
from terrazzo.api.transports.connection_limiter import ConnectionLimiter, Cut
from terrazzo.api.transports.conversation import Conversation
from terrazzo.api.transports.peers.client_address import client_address
from terrazzo.live.feed import Sink
from terrazzo.live.frames import Framing, as_message
from terrazzo.live.session import LiveSession
from terrazzo.live.socket_writer import SocketWriter

OpenSession = Callable[[Caller, Sink], LiveSession]
ReadCookie = Callable[[web.Request, Caller], None]

_HEARTBEAT_S = 30.0  # a peer that is silently gone is noticed within one and a half of it
_GOODBYE_S = 2.0  # to close all connections when the server stops


class SocketSink(SocketWriter):
    """Where the live frames of one WebSocket go: whole messages, many at once, beside aiohttp's own.

    Nothing is compressed, so that aiohttp keeps no state of its own.
    """

    framing: Framing = staticmethod(as_message)

    def __init__(self, socket: web.WebSocketResponse, transport: asyncio.Transport) -> None:
        super().__init__(transport)
        self._socket = socket

    @property
    def is_open(self) -> bool:
        """Whether the close frame has not been sent yet."""
        return not self._socket.closed and not self._transport.is_closing()


class GatewaySockets:
    """All open WebSockets.

    A connection is authenticated by the header or cookie of its upgrade, or by a request that carries
    ``Authorization``, as ``ping`` does. The check remains valid while the connection is open, though the token expires;
    a logout, another password, or deactivation of the user or the company ends it.
    """

    def __init__(
        self,
        gateway: Gateway,
        connection_limiter: ConnectionLimiter,
        *,
        limits: ApiLimits,
        open_session: OpenSession,
        read_cookie: ReadCookie,
    ) -> None:
        self._gateway = gateway
        self._connection_limiter = connection_limiter
        self._limits = limits
        self._open_session = open_session
        self._read_cookie = read_cookie
        self._open: set[web.WebSocketResponse] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Upgrades, and answers until either side closes. A message over the limit ends the connection with 1009."""
        socket = web.WebSocketResponse(
            heartbeat=_HEARTBEAT_S, max_msg_size=self._limits.body_bytes, compress=False, timeout=_GOODBYE_S
        )
        transport = request.transport
        if not socket.can_prepare(request) or transport is None:
            raise web.HTTPMethodNotAllowed(request.method, ["POST"])
        connection = connection_of(request)
        if connection is not None:
            connection.upgrade()
        await socket.prepare(request)
        self._open.add(socket)
        caller = Caller(client_address(request), bearer_token(request.headers.get("Authorization")))
        self._read_cookie(request, caller)
        caller.slot = None if connection is None else connection.slot
        caller.live = self._open_session(caller, SocketSink(socket, transport))
        await self._gateway.recognize(caller)
        try:
            await self._serve(socket, caller)
        except TimeoutError:
            self._connection_limiter.cut(Cut.UNREAD, caller.address, "the peer does not take its answers")
            transport.abort()
        except OSError:
            transport.abort()  # it is gone
        finally:
            caller.live.close()
            self._open.discard(socket)
            _let_go_of_frames(socket)
            if socket.close_code == WSCloseCode.MESSAGE_TOO_BIG:
                self._connection_limiter.cut(
                    Cut.TOO_LONG, caller.address, f"message over {self._limits.body_bytes} bytes"
                )
            asyncio.get_running_loop().call_later(_GOODBYE_S, transport.abort)  # if it can't send the rest
        return socket

    async def close(self, _app: web.Application) -> None:
        """Says that the server is going away."""
        goodbye = partial(web.WebSocketResponse.close, code=WSCloseCode.GOING_AWAY, message=b"server shutting down")
        async with asyncio.TaskGroup() as group:
            for socket in list(self._open):
                group.create_task(goodbye(socket), name="goodbye to a WebSocket")

    async def _serve(self, socket: web.WebSocketResponse, caller: Caller) -> None:
        async def send(body: bytes) -> None:
            async with asyncio.timeout(self._limits.request_timeout_s):
                await socket.send_frame(body, WSMsgType.TEXT)

        talk = Conversation(
            self._gateway,
            caller,
            send,
            most=self._limits.pipelined_requests,
            most_bytes=self._limits.body_bytes,
            on_full=self._connection_limiter.pause,
            among=self._connection_limiter.requests,
        )
        async with talk:
            async for message in socket:
                if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                    break
                await talk.take(message.data)
            if not socket.closed:
                await talk.finish()


def _let_go_of_frames(socket: web.WebSocketResponse) -> None:
    """Frees what the socket's last error holds of the calls that it was raised in, and they of the socket."""
    error: BaseException | None = socket.exception()
    while error is not None:
        error.__traceback__, error = None, error.__context__
