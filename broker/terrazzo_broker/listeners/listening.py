"""The listeners of a broker: opening them, their certificates, closing them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .certificates import Certificates, TlsFiles
from .listener import Listener
from .tcp import listen_received, listen_tcp
from .unix import listen_unix

if TYPE_CHECKING:
    from ..broker import Broker


class Listening(ABC):
    """The part of a broker that accepts connections; each ``listen_*`` may be called several times."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._certificates: list[Certificates] = []

    @abstractmethod
    def on_listening(self) -> None:
        """The first listener has been opened."""

    async def listen_tcp(self, host: str, port: int, *, proxy_protocol: bool = False) -> int:
        """Accepts connections on ``host:port`` (port 0: any free one); the port bound.

        ``proxy_protocol``: each connection starts with a PROXY protocol v2 header, which names the client's address.

        Raises:
            OSError: the address is taken or not ours.
        """
        if not proxy_protocol:
            return self._add(*await listen_tcp(self._broker, host, port))
        return self._add(*listen_received(self._broker, host, port, certificates=None, proxy_protocol=True))

    async def listen_tls(
        self,
        host: str,
        port: int,
        *,
        cert: str | Path,
        key: str | Path,
        client_ca: str | Path | None = None,
        proxy_protocol: bool = False,
    ) -> int:
        """Accepts TLS 1.2 and 1.3; with ``client_ca``, clients may show a certificate that it has signed.

        Raises:
            OSError: the address is taken or not ours.
            CertificateError: a file can't be used; the message starts with ``tls_cert``, ``tls_key`` or
                ``tls_client_ca``.
        """
        certificates = Certificates(TlsFiles(cert=cert, key=key, client_ca=client_ca), protocol="mqtt")
        listening = listen_received(self._broker, host, port, certificates=certificates, proxy_protocol=proxy_protocol)
        return self._add(*listening, certificates)

    async def listen_websocket(self, host: str, port: int, *, path: str = "/mqtt", tls: TlsFiles | None = None) -> int:
        """Accepts MQTT over WebSocket, or over secure WebSocket with ``tls``.

        Raises:
            OSError, CertificateError: as ``listen_tls``.
        """
        from .websocket import listen_websocket  # aiohttp takes 10 MB and 150 ms: only for who asks for it

        certificates = None if tls is None else Certificates(tls, protocol="http/1.1")
        return self._add(
            *listen_websocket(self._broker, host, port, path=path, certificates=certificates), certificates
        )

    async def listen_unix(self, path: str | Path) -> None:
        """Accepts connections on a Unix socket, mode 0660; a file that a dead process has left is replaced.

        Raises:
            OSError: something else is there, or somebody listens on it.
        """
        self._add(await listen_unix(self._broker, path))

    def reload_certificates(self) -> None:
        """Reads all TLS files again, for connections still to come; those that stand are left alone.

        Raises:
            CertificateError: a file can't be used; then nothing has changed.
        """
        contexts = [each.read() for each in self._certificates]
        for certificates, context in zip(self._certificates, contexts, strict=True):
            certificates.context = context

    @property
    def is_listening(self) -> bool:
        """Whether connections are accepted."""
        return any(each.is_serving() for each in self._listeners)

    def stop_listening(self) -> None:
        """Accepts no more; the connections that stand are left alone."""
        for listener in self._listeners:
            listener.close()

    async def finish_listening(self) -> None:
        """The connections are gone: ends what else the listeners have."""
        for listener in self._listeners:
            await listener.finish()

    @property
    def _broker(self) -> Broker:
        return cast("Broker", self)

    def _add(self, listener: Listener, port: int = 0, certificates: Certificates | None = None) -> int:
        if not self._listeners:
            self.on_listening()
        self._listeners.append(listener)
        if certificates is not None:
            self._certificates.append(certificates)
        return port
