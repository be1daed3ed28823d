"""The gateway over WebSocket: one request a message, one answer a message, in order (section 1 "Transports")."""

from __future__ import annotations

from aiohttp import WSCloseCode, WSMsgType, web

from terrazzo.api.dispatch import Gateway, bearer_token
from terrazzo.api.operation import Caller

_HEARTBEAT_S = 30.0  # a peer that is silently gone is noticed within one and a half of it


class GatewaySockets:
    """All open WebSockets.

    A connection is authenticated by the header of its upgrade or by a request that carries ``Authorization``, as
    ``ping`` does; the token is checked at every request, so that it ends when it expires or is revoked.
    """

    def __init__(self, gateway: Gateway, *, message_bytes: int) -> None:
        self._gateway = gateway
        self._message_bytes = message_bytes
        self._open: set[web.WebSocketResponse] = set()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Upgrades, and answers until either side closes. A message over the limit ends the connection with 1009."""
        socket = web.WebSocketResponse(heartbeat=_HEARTBEAT_S, max_msg_size=self._message_bytes, compress=False)
        if not socket.can_prepare(request):
            raise web.HTTPMethodNotAllowed(request.method, ["POST"])
        await socket.prepare(request)
        self._open.add(socket)
        try:
            await self._serve(socket, Caller(request.remote or "", bearer_token(request.headers.get("Authorization"))))
        finally:
            self._open.discard(socket)
        return socket

    async def close(self, _app: web.Application) -> None:
        """Says that the server is going away."""
        for socket in list(self._open):
            await socket.close(code=WSCloseCode.GOING_AWAY, message=b"server shutting down")

    async def _serve(self, socket: web.WebSocketResponse, caller: Caller) -> None:
        async for message in socket:
            if message.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return
            answer = await self._gateway.answer(message.data, caller)
            if socket.closed:
                return
            await socket.send_str(answer.body.decode())
