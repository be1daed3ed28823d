"""Sets up accepted sockets: the PROXY header, the TLS handshake, and the deadline of both."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable

from ..admission import ListenerAdmission
from ..core import BrokerCore
from ..limited_log import limited_logger
from .certificates import Certificates
from .proxy_protocol import Address, ProxyError, read_source

log = limited_logger("terrazzo_broker.listeners")

Make = Callable[[str, int], asyncio.Protocol]  # the protocol of a peer with this address and port


class Handshakes:
    """Sets up the sockets of one listener for MQTT, each within the broker's ``connect_timeout_s``."""

    def __init__(
        self,
        core: BrokerCore,
        listener: ListenerAdmission,
        make: Make,
        *,
        certificates: Certificates | None,
        proxy_protocol: bool,
    ) -> None:
        self._core = core
        self._listener = listener
        self._make = make
        self._certificates = certificates
        self._proxy_protocol = proxy_protocol

    async def perform(self, sock: socket.socket, peer: Address) -> None:
        """Sets a socket up and connects it to its protocol, or closes it."""
        deadline_s = self._core.clock() + self._core.settings.connect_timeout_s
        try:
            source = await self._source(sock, peer)
        except ProxyError as error:
            self._core.stats.proxy_headers_refused += 1
            log.warning("%s:%d: refused on %s: %s", *peer, self._listener.name, error)
            sock.close()
            return
        has_room, connected = self._core.admission.enter(source[0]), False
        try:
            if has_room:
                connected = await self._connect(sock, source, deadline_s)
        finally:
            if not connected:  # else the protocol leaves when it has logged in or gone
                self._core.admission.leave(source[0])
                sock.close()

    async def _source(self, sock: socket.socket, peer: Address) -> Address:
        if not self._proxy_protocol:
            return peer
        timeout_s = self._core.settings.connect_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                return await read_source(sock) or peer
        except TimeoutError:
            raise ProxyError(f"no PROXY protocol v2 header within {timeout_s} s") from None

    async def _connect(self, sock: socket.socket, source: Address, deadline_s: float) -> bool:
        loop = asyncio.get_running_loop()
        if self._certificates is None:
            await loop.connect_accepted_socket(lambda: self._make(*source), sock)
            return True
        try:
            await loop.connect_accepted_socket(
                lambda: self._make(*source),
                sock,
                ssl=self._certificates.context,
                ssl_handshake_timeout=max(deadline_s - self._core.clock(), 0.001),
            )
        except OSError as error:  # SSLError among them
            self._core.stats.handshakes_failed += 1
            log.warning("%s:%d: TLS handshake failed: %s", *source, _reason(error))
            return False
        return True


def _reason(error: OSError) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    return (reason or str(error) or type(error).__name__).replace("_", " ").lower()
