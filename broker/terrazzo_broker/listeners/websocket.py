"""The listener for MQTT over WebSocket, plain or with TLS: HTTP, as far as the upgrade. [MQTT-6.0.0]"""

from __future__ import annotations

import asyncio
import socket
from typing import Any, NamedTuple

from aiohttp import hdrs, web

from ..admission import ListenerAdmission
from ..core import BrokerCore
from ..limited_log import limited_logger
from ..tasks import Tasks
from .accepted import admitted_connection
from .acceptor import PENDING, Acceptor, bind
from .certificates import Certificates
from .handshake import Handshakes
from .websocket_transport import WebSocketTransport

log = limited_logger("terrazzo_broker.websocket")
_http_log = limited_logger("terrazzo_broker.websocket.http")  # aiohttp's word on requests that are none

# The second is what some 3.1.1 clients ask for.
SUBPROTOCOLS = ("mqtt", "mqttv3.1")  # [MQTT-6.0.0-4] of both
_CLOSE_TIMEOUT_S = 5.0  # how long a peer may take to answer a close frame
_FINISH_TIMEOUT_S = 1.0


class _PendingUpgrade(NamedTuple):
    """An HTTP connection that hasn't upgraded to WebSocket yet; ``born_s`` in monotonic seconds."""

    address: str
    port: int
    born_s: float
    deadline: asyncio.TimerHandle


class WebSocketListener:
    """An ``OpenListener`` for HTTP: one path upgrades to WebSocket, all other requests are refused and closed."""

    def __init__(
        self,
        core: BrokerCore,
        tasks: Tasks,
        sockets: list[socket.socket],
        *,
        path: str,
        certificates: Certificates | None,
    ) -> None:
        self._core = core
        self._path = path
        self._admission = ListenerAdmission("ws" if certificates is None else "wss")
        self._pending_upgrades: dict[web.RequestHandler, _PendingUpgrade] = {}
        self._server = _Server(self, lingering_time=0, access_log=None, logger=_http_log)
        handshakes = Handshakes(
            core, self._admission, lambda address, port: self._server(), certificates=certificates, proxy_protocol=False
        )
        self._acceptor = Acceptor(self._admission.name, sockets, handshakes.perform, tasks, core.stats)

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return self._acceptor.is_serving()

    async def close(self) -> None:
        """Stops accepting, and closes connections that haven't upgraded."""
        await self._acceptor.close()
        for protocol in list(self._pending_upgrades):
            protocol.force_close()

    async def finish(self) -> None:
        """Ends the HTTP server."""
        await self._acceptor.finish()
        await self._server.shutdown(_FINISH_TIMEOUT_S)

    # Before the upgrade

    def on_http_connection(self, protocol: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Adds an HTTP connection, which ``Admission`` has counted as not logged in, and starts its deadline."""
        timeout_s = self._core.settings.connect_timeout_s
        address, port = transport.get_extra_info("peername")[:2]
        self._pending_upgrades[protocol] = _PendingUpgrade(
            address=address,
            port=port,
            born_s=self._core.clock(),
            deadline=asyncio.get_running_loop().call_later(timeout_s, self._give_up, transport),
        )
        if len(self._pending_upgrades) > PENDING:
            self._core.stats.limited_half_open += 1
            log.warning("%s: refused, %d connections there haven't upgraded", self._admission.name, PENDING)
            transport.abort()

    def _give_up(self, transport: asyncio.Transport) -> None:
        self._core.stats.connect_timeouts += 1
        log.warning("%s: no WebSocket within %s s", self._admission.name, self._core.settings.connect_timeout_s)
        transport.abort()

    def on_gone(self, protocol: web.RequestHandler) -> None:
        """Removes an HTTP connection that has ended; does nothing after an upgrade."""
        pending = self._pending_upgrades.pop(protocol, None)
        if pending is not None:
            pending.deadline.cancel()
            self._core.admission.leave(pending.address)

    # The upgrade

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answers a request: upgrades and serves MQTT until the connection ends, or refuses with a reason."""
        websocket = web.WebSocketResponse(
            protocols=SUBPROTOCOLS,
            timeout=_CLOSE_TIMEOUT_S,
            compress=False,
            max_msg_size=self._core.settings.packet_bytes + 1,  # aiohttp refuses what reaches it
        )
        refusal = self._refusal(request, websocket)
        below = request.transport
        if refusal is not None or below is None:
            return self._refuse(request, refusal or _refused(400, "the connection is gone"))
        await websocket.prepare(request)
        pending = self._pending_upgrades.pop(request.protocol, None)
        if pending is None:  # gone while it was answered
            return websocket
        pending.deadline.cancel()
        connection = admitted_connection(self._core, self._admission, pending.address, pending.port)
        connection.born_s = pending.born_s
        await WebSocketTransport(websocket, below).serve(connection)
        return websocket

    def _refusal(self, request: web.BaseRequest, websocket: web.WebSocketResponse) -> web.Response | None:
        if request.path != self._path:
            return _refused(404, f"MQTT over WebSocket is at {self._path}")
        if request.headers.get(hdrs.UPGRADE, "").strip().lower() != "websocket":
            return _refused(426, "only WebSocket is spoken here", {hdrs.UPGRADE: "websocket"})
        offered = request.headers.get(hdrs.SEC_WEBSOCKET_PROTOCOL, "").split(",")
        if not any(each.strip() in SUBPROTOCOLS for each in offered):  # [MQTT-6.0.0-3] of both
            return _refused(400, "offer the WebSocket subprotocol mqtt")
        if not websocket.can_prepare(request):
            return _refused(400, "not a WebSocket handshake of version 13")
        return None

    def _refuse(self, request: web.BaseRequest, refusal: web.Response) -> web.Response:
        self._core.stats.upgrades_refused += 1
        log.warning("%s: refused on %s: %s", request.remote, self._admission.name, refusal.text)
        return refusal


def _refused(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    response = web.Response(status=status, text=text + "\n", headers=headers)
    response.force_close()
    return response


class _Server(web.Server):
    """aiohttp's server, which tells the listener of connections and their end."""

    def __init__(self, listener: WebSocketListener, **options: Any) -> None:
        super().__init__(listener.answer, **options)
        self._listener = listener

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        self._listener.on_http_connection(handler, transport)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        super().connection_lost(handler, exc)
        self._listener.on_gone(handler)


def listen_websocket(
    core: BrokerCore, tasks: Tasks, host: str, port: int, *, path: str, certificates: Certificates | None
) -> tuple[WebSocketListener, int]:
    """Opens a listener; returns it and the port that it got.

    Raises:
        OSError: the address is taken or not ours.
    """
    sockets = bind(host, port)
    listener = WebSocketListener(core, tasks, sockets, path=path, certificates=certificates)
    return listener, int(sockets[0].getsockname()[1])
