"""The listener for MQTT over WebSocket, plain or with TLS: HTTP, as far as the upgrade. [MQTT-6.0.0]"""

from __future__ import annotations

import asyncio
import socket

from aiohttp import hdrs, web

from ..admission.half_open import Peer
from ..core import BrokerCore
from ..limited_log import limited_logger
from ..log_text import visible
from ..peer_address import TrustedProxies
from ..refusals import Cause, Refusal
from ..tasks import Tasks
from ..web_origin import AllowedOrigins, is_of_host
from .accepted import admitted_connection
from .acceptor import Acceptor, bind
from .bounded_reading import BoundedReading
from .certificates import Certificates
from .handshake import Handshakes
from .proxy_protocol import Address
from .websocket_transport import WebSocketTransport

log = limited_logger("terrazzo_broker.websocket")
_http_log = limited_logger("terrazzo_broker.websocket.http")  # aiohttp's word on requests that are none

# The second is what some 3.1.1 clients ask for.
SUBPROTOCOLS = ("mqtt", "mqttv3.1")  # [MQTT-6.0.0-4] of both
_CLOSE_TIMEOUT_S = 5.0  # how long a peer may take to answer a close frame
_FINISH_TIMEOUT_S = 1.0
_SHOWN = 100  # characters of an origin in an answer

_EARLY_BYTES = 64 << 10  # of packets that a client sends after its CONNECT without waiting for the CONNACK
_HEAD_TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


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
        proxies: TrustedProxies,
    ) -> None:
        self._core = core
        self._path = path
        self._proxies = proxies
        origins = core.settings.allowed_origins
        self._origins = None if origins is None else AllowedOrigins(origins)
        self._admission = core.admission.listener("ws" if certificates is None else "wss")
        self._pending_upgrades: set[BoundedReading] = set()
        self._server = web.Server(self.answer, lingering_time=0, access_log=None, logger=_http_log)
        handshakes = Handshakes(
            core, self._admission, self, certificates=certificates, proxies=proxies, may_forward=True
        )
        self._acceptor = Acceptor(self._admission.name, sockets, handshakes.perform, tasks, core)

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return self._acceptor.is_serving()

    async def close(self) -> None:
        """Stops accepting, and closes connections that haven't upgraded."""
        await self._acceptor.close()
        for pending in list(self._pending_upgrades):
            pending.transport.close()

    async def finish(self) -> None:
        """Ends the HTTP server."""
        await self._acceptor.finish()
        await self._server.shutdown(_FINISH_TIMEOUT_S)

    # Before the upgrade

    def make(self, peer: Peer, source: Address) -> asyncio.Protocol:
        """The protocol of an HTTP connection; what it sends before its login is bounded."""
        core = self._core
        return BoundedReading(self, peer, source, admission=core.admission, head_bytes=core.settings.connect_bytes)

    def discard(self, protocol: asyncio.Protocol) -> None:
        """Does nothing: nobody knows of it yet."""

    def new_handler(self) -> asyncio.Protocol:
        """aiohttp's protocol for a connection that has begun to speak."""
        return self._server()

    def on_connected(self, pending: BoundedReading) -> None:
        """Starts the deadline of what may come before the upgrade."""
        self._pending_upgrades.add(pending)
        pending.peer.give_way = pending.transport.abort
        left_s = max(0.0, pending.peer.born_s + self._core.settings.connect_timeout_s - self._core.clock())
        pending.deadline = asyncio.get_running_loop().call_later(left_s, self._give_up, pending)

    def _give_up(self, pending: BoundedReading) -> None:
        self._core.stats.connect_timeouts += 1
        self._tell(Cause.LOGIN_TIMEOUT, pending.source[0], "no upgrade to WebSocket")
        log.warning("%s:%d: no WebSocket on %s in time", *pending.source, self._admission.name)
        pending.transport.abort()

    def on_excess(self, pending: BoundedReading) -> None:
        """Refuses a request whose head is too large."""
        if pending.transport.is_closing():
            return
        self._core.stats.upgrades_refused += 1
        self._tell(Cause.UPGRADE_REFUSED, pending.source[0], "its request is too large")
        log.warning("%s:%d: refused on %s: its request is too large", *pending.source, self._admission.name)
        pending.transport.write(_HEAD_TOO_LARGE)
        pending.transport.close()

    def on_gone(self, pending: BoundedReading) -> None:
        """Removes an HTTP connection that has ended; does nothing after an upgrade."""
        if self._end_waiting(pending):
            self._core.admission.leave(pending.peer)

    def _end_waiting(self, pending: BoundedReading) -> bool:
        """Whether it has waited for an upgrade until now."""
        if pending not in self._pending_upgrades:
            return False
        self._pending_upgrades.remove(pending)
        if pending.deadline is not None:
            pending.deadline.cancel()
        return True

    def _pending_of(self, request: web.BaseRequest) -> BoundedReading | None:
        """The connection of a request that waits for its upgrade; None when it is gone."""
        protocol = None if request.transport is None else request.transport.get_protocol()
        if isinstance(protocol, BoundedReading) and protocol in self._pending_upgrades:
            return protocol
        return None

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
        if refusal is not None:
            return self._refuse(request, refusal)
        try:
            await websocket.prepare(request)
        except ConnectionError:  # gone before it was answered: nobody gets this
            return web.Response()
        pending = self._pending_of(request)
        if pending is None:  # gone while it was answered
            return websocket
        self._end_waiting(pending)
        connection = admitted_connection(self._core, self._admission, pending.peer, pending.source)
        pending.on_upgrade(self._core.settings.connect_bytes + _EARLY_BYTES)
        await WebSocketTransport(websocket, pending.transport).serve(connection)
        return websocket

    def _take_source(self, request: web.BaseRequest) -> bool:
        """Counts a connection under the address that a trusted proxy has named; False: there is no room for it."""
        pending = self._pending_of(request)
        if pending is None:
            return False
        peer = pending.source[0]
        client = self._proxies.client_of(peer, request.headers.getall(hdrs.X_FORWARDED_FOR, ()))
        if client == peer:
            return True
        pending.source = client, 0  # its port is not known
        return self._core.admission.move(pending.peer, client)

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
        if (origin := request.headers.get(hdrs.ORIGIN)) is not None and not self._may_ask(origin, request):
            return _refused(403, f"Origin: {visible(origin[:_SHOWN])} is another's page, and not allowed")
        if not self._take_source(request):
            return _refused(503, "too many connections from there haven't logged in")
        return None

    def _may_ask(self, origin: str, request: web.BaseRequest) -> bool:
        """Whether a page may: of the host that its request was sent to, as a trusted proxy says, or an allowed one."""
        if self._origins is None:
            return True
        host = request.headers.get(hdrs.HOST, "")
        if (request.remote or "") in self._proxies:
            host = request.headers.get(hdrs.X_FORWARDED_HOST, host).rpartition(",")[2].strip()
        return is_of_host(origin, host) or origin in self._origins

    def _refuse(self, request: web.BaseRequest, refusal: web.Response) -> web.Response:
        self._core.stats.upgrades_refused += 1
        pending = self._pending_of(request)
        source = pending.source[0] if pending is not None else request.remote
        self._tell(Cause.UPGRADE_REFUSED, source or "", (refusal.text or "").strip())
        log.warning("%s: refused on %s: %s", source, self._admission.name, refusal.text)
        return refusal

    def _tell(self, cause: Cause, address: str, detail: str) -> None:
        self._core.hooks.tell_refused(Refusal(cause, address, detail=detail))


def _refused(status: int, text: str, headers: dict[str, str] | None = None) -> web.Response:
    response = web.Response(status=status, text=text + "\n", headers=headers)
    response.force_close()
    return response


def listen_websocket(
    core: BrokerCore,
    tasks: Tasks,
    host: str,
    port: int,
    *,
    path: str,
    certificates: Certificates | None,
    proxies: TrustedProxies,
) -> tuple[WebSocketListener, int]:
    """Opens a listener; returns it and the port that it got.

    Raises:
        OSError: the address is taken or not ours.
    """
    sockets = bind(host, port)
    listener = WebSocketListener(core, tasks, sockets, path=path, certificates=certificates, proxies=proxies)
    return listener, int(sockets[0].getsockname()[1])
