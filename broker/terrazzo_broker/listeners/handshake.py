"""Sets up accepted sockets: the PROXY header of trusted peers, the TLS handshake, and the deadline of both."""

from __future__ import annotations

import asyncio
import socket
import ssl
from typing import Protocol

from ..admission.half_open import Peer
from ..admission.limits import ListenerAdmission
from ..core import BrokerCore
from ..limited_log import limited_logger
from ..peer_address import TrustedProxies
from ..refusals import Cause, Refusal
from .certificates import Certificates
from .proxy_protocol import Address, ProxyError, read_source, starts_with_header

log = limited_logger("terrazzo_broker.listeners")


class Protocols(Protocol):
    """Makes the protocols of sockets that are set up."""

    def make(self, peer: Peer, source: Address) -> asyncio.Protocol:
        """The protocol of a peer with this address and port."""

    def discard(self, protocol: asyncio.Protocol) -> None:
        """Told that a protocol got no connection."""


class Handshakes:
    """Sets up the sockets of one listener for MQTT, each within the broker's ``connect_timeout_s``.

    ``proxies`` have to start with a PROXY header; with ``may_forward`` they may, as HTTP has a header of its own.
    """

    def __init__(
        self,
        core: BrokerCore,
        listener: ListenerAdmission,
        protocols: Protocols,
        *,
        certificates: Certificates | None,
        proxies: TrustedProxies,
        may_forward: bool = False,
    ) -> None:
        self._core = core
        self._listener = listener
        self._protocols = protocols
        self._certificates = certificates
        self._proxies = proxies
        self._may_forward = may_forward

    async def perform(self, sock: socket.socket, address: Address, peer: Peer) -> bool:
        """Sets a socket up and connects it to its protocol; False: it is to be closed."""
        try:
            source = await self._source(sock, address)
        except ProxyError as error:
            self._core.stats.proxy_headers_refused += 1
            self._tell(Cause.PROXY_HEADER, address, str(error))
            log.warning("%s:%d: refused on %s: %s", *address, self._listener.name, error)
            return False
        if not self._core.admission.move(peer, source[0]):
            return False
        protocol, connected = self._protocols.make(peer, source), False
        try:
            connected = await self._connect(sock, source, protocol, self._left_s(peer))
        finally:
            if not connected:
                self._protocols.discard(protocol)
        return connected

    def _left_s(self, peer: Peer) -> float:
        return max(peer.born_s + self._core.settings.connect_timeout_s - self._core.clock(), 0.001)

    async def _source(self, sock: socket.socket, address: Address) -> Address:
        if address[0] not in self._proxies:
            return address
        timeout_s = self._core.settings.connect_timeout_s
        try:
            async with asyncio.timeout(timeout_s):
                if self._may_forward and not await starts_with_header(sock):
                    return address
                return await read_source(sock) or address
        except TimeoutError:
            raise ProxyError(f"no PROXY protocol header within {timeout_s} s") from None

    async def _connect(self, sock: socket.socket, source: Address, protocol: asyncio.Protocol, left_s: float) -> bool:
        loop = asyncio.get_running_loop()
        if self._certificates is None:
            await loop.connect_accepted_socket(lambda: protocol, sock)
            return True
        try:
            await loop.connect_accepted_socket(
                lambda: protocol, sock, ssl=self._certificates.context, ssl_handshake_timeout=left_s
            )
        except OSError as error:  # SSLError among them
            self._core.stats.handshakes_failed += 1
            self._tell(_cause(error), source, _reason(error))
            log.warning("%s:%d: TLS handshake failed: %s", *source, _reason(error))
            return False
        return True

    def _tell(self, cause: Cause, address: Address, detail: str) -> None:
        self._core.hooks.tell_refused(Refusal(cause, address[0], detail=detail))


_UNVERIFIED = {
    9: Cause.CERTIFICATE_NOT_YET_VALID,
    10: Cause.CERTIFICATE_EXPIRED,
    **dict.fromkeys((2, 18, 19, 20, 21), Cause.CERTIFICATE_AUTHORITY),
}
"""What is wrong with a client's certificate, by OpenSSL's number of it (``X509_V_ERR_...``)."""


def _cause(error: OSError) -> Cause:
    if not isinstance(error, ssl.SSLCertVerificationError):
        return Cause.TLS_FAILED
    return _UNVERIFIED.get(error.verify_code, Cause.CERTIFICATE_UNUSABLE)


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"client certificate: {error.verify_message}"
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    text = (reason or str(error) or type(error).__name__).replace("_", " ").lower()
    if reason == "WRONG_VERSION_NUMBER":
        return f"{text} (no TLS at all, or a PROXY protocol header of a peer that is no trusted proxy)"
    return text
