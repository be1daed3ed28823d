"""The listeners of a broker: opens and closes them, and reloads their certificates."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from ..core import BrokerCore
from ..peer_address import EVERYBODY, TrustedProxies
from ..tasks import Tasks
from .certificates import Certificates, TlsFiles
from .listener import OpenListener
from .tcp import listen_tcp, listen_with_handshake
from .unix import listen_unix


class ListenerSet:
    """All listeners of one broker. Its methods raise as those of ``Broker`` with the same names."""

    def __init__(self, core: BrokerCore, tasks: Tasks) -> None:
        self._core = core
        self._tasks = tasks
        self._proxies = TrustedProxies(core.settings.trusted_proxies)
        self._listeners: list[OpenListener] = []
        self._certificates: list[Certificates] = []
        self._authorities: Sequence[bytes] = ()

    async def listen_tcp(self, host: str, port: int, *, proxy_protocol: bool) -> int:
        """Listens on plain TCP; returns the port bound."""
        proxies = EVERYBODY if proxy_protocol else self._proxies
        if not proxies:
            return self._add(*await listen_tcp(self._core, host, port))
        return self._add(
            *listen_with_handshake(self._core, self._tasks, host, port, certificates=None, proxies=proxies)
        )

    def listen_tls(self, host: str, port: int, files: TlsFiles, *, proxy_protocol: bool) -> int:
        """Listens on TCP with TLS; returns the port bound."""
        certificates = Certificates(files, protocol="mqtt", authorities=self._authorities)
        proxies = EVERYBODY if proxy_protocol else self._proxies
        opened = listen_with_handshake(self._core, self._tasks, host, port, certificates=certificates, proxies=proxies)
        return self._add(*opened, certificates)

    def listen_websocket(self, host: str, port: int, *, path: str, tls: TlsFiles | None) -> int:
        """Listens on WebSocket, with TLS if there are files for it; returns the port bound."""
        from .websocket import listen_websocket  # aiohttp takes 10 MB and 150 ms: only for who asks for it

        certificates = None
        if tls is not None:
            certificates = Certificates(tls, protocol="http/1.1", authorities=self._authorities)
        opened = listen_websocket(
            self._core, self._tasks, host, port, path=path, certificates=certificates, proxies=self._proxies
        )
        return self._add(*opened, certificates)

    async def listen_unix(self, path: str | Path) -> None:
        """Listens on a Unix socket."""
        self._add(await listen_unix(self._core, path))

    def _add(self, listener: OpenListener, port: int = 0, certificates: Certificates | None = None) -> int:
        self._listeners.append(listener)
        if certificates is not None:
            self._certificates.append(certificates)
        return port

    def reload_certificates(self) -> None:
        """Reads all TLS files again; if one of them can't be used, nothing has changed."""
        contexts = [each.read() for each in self._certificates]
        for certificates, context in zip(self._certificates, contexts, strict=True):
            certificates.context = context

    async def trust_authorities(self, authorities: Sequence[bytes]) -> None:
        """Trusts these (DER) in certificates of clients, for new connections, besides those of the files."""
        self._authorities = authorities
        before = [each.context for each in self._certificates]
        for each in self._certificates:
            each.authorities = authorities
        contexts = await asyncio.to_thread(lambda: [each.read() for each in self._certificates])
        for certificates, old, context in zip(self._certificates, before, contexts, strict=False):
            if certificates.context is old:  # else the files were read again meanwhile, with the authorities
                certificates.context = context

    @property
    def is_serving(self) -> bool:
        """Whether connections are accepted."""
        return any(each.is_serving() for each in self._listeners)

    async def close(self) -> None:
        """Stops accepting; open connections are left alone."""
        for listener in self._listeners:
            await listener.close()

    async def finish(self) -> None:
        """Ends what else the listeners have; called when the connections are closed."""
        for listener in self._listeners:
            await listener.finish()
