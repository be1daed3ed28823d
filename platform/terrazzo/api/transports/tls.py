"""HTTPS and WSS: accepts connections, and shakes hands with the certificate that is in force when it begins.

Who shakes hands has a place among the connections of its address, and gives it up as one that says nothing.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from terrazzo.api.transports.connection import HttpConnection
from terrazzo.api.transports.connection_limiter import ConnectionLimiter, Cut
from terrazzo.ports.tasks import OnFailure, Tasks
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.listeners.certificates import Certificates

_NO_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_S = 0.5  # before it is tried again when there is no room for one more socket

_log = SparseLog(logging.getLogger(__name__))


class TlsParts(NamedTuple):
    """What a port of HTTPS needs beside one of HTTP.

    Attributes:
        certificates: their context is that of handshakes still to come.
        tasks: run what accepts; it is restarted if it fails.
    """

    certificates: Certificates
    tasks: Tasks


class TlsAcceptor:
    """Accepts on a port of HTTPS until it is closed.

    Args:
        name: of the port.
        sockets: that listen; it closes them.
        new_connection: makes the protocol of a connection.
        timeout_s: seconds for a handshake.
    """

    def __init__(
        self,
        name: str,
        sockets: Sequence[socket.socket],
        tls: TlsParts,
        *,
        connection_limiter: ConnectionLimiter,
        new_connection: Callable[[], HttpConnection],
        timeout_s: float,
    ) -> None:
        self._sockets = sockets
        self._certificates = tls.certificates
        self._connection_limiter = connection_limiter
        self._new_connection = new_connection
        self._timeout_s = timeout_s
        self._handshakes: set[asyncio.Task[None]] = set()
        self._accepting = [
            tls.tasks.spawn(_task_name(name, each), partial(self._accept, each), OnFailure.REPORT) for each in sockets
        ]

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return any(task.is_running for task in self._accepting)

    async def close(self) -> None:
        """Stops accepting, and gives up handshakes that are under way."""
        for task in self._accepting:
            await task.stop()
        for each in self._sockets:
            each.close()
        handshakes = list(self._handshakes)
        for handshake in handshakes:
            handshake.cancel()
        await asyncio.gather(*handshakes, return_exceptions=True)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as error:
                _log.warning("cannot accept connections: %s", error)
                if error.errno in _NO_RESOURCES:
                    await asyncio.sleep(_PAUSE_S)
            else:
                self._admit(accepted, str(address[0]))
                await asyncio.sleep(0)  # many that come at once don't keep the others waiting

    def _admit(self, accepted: socket.socket, address: str) -> None:
        """Begins a handshake, or closes the socket at once where there is no place."""
        connection = self._new_connection()
        handshake = asyncio.get_running_loop().create_task(
            self._shake_hands(accepted, connection, address), name=f"TLS handshake of {address}"
        )
        if not connection.begin_handshake(address, handshake.cancel):
            handshake.cancel()
        self._handshakes.add(handshake)
        handshake.add_done_callback(partial(self._on_done, accepted, connection))

    def _on_done(self, accepted: socket.socket, connection: HttpConnection, handshake: asyncio.Task[None]) -> None:
        self._handshakes.discard(handshake)
        if not connection.is_connected:
            accepted.close()
        connection.end_handshake()
        if not handshake.cancelled() and (error := handshake.exception()) is not None:
            _log.error("TLS handshake: %s", repr(error))

    async def _shake_hands(self, accepted: socket.socket, connection: HttpConnection, address: str) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection, accepted, ssl=self._certificates.context, ssl_handshake_timeout=self._timeout_s
            )
        except OSError as error:  # SSLError among them, and the end of the time for it
            self._connection_limiter.cut(Cut.TLS, address, f"TLS handshake failed: {_reason(error)}")


def _reason(error: OSError) -> str:
    reason = error.reason if isinstance(error, ssl.SSLError) else None
    text = (reason or str(error) or type(error).__name__).replace("_", " ").lower()
    return f"{text}: this port speaks HTTPS alone" if reason == "HTTP_REQUEST" else text


def _task_name(port: str, listening: socket.socket) -> str:
    host, number = listening.getsockname()[:2]
    return f"{port} accept {host}:{number}"
