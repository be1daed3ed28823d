"""The listener on plain TCP whose sockets the broker looks at by itself (``Poller``)."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from ..admission.limits import ListenerAdmission
from ..core import BrokerCore
from ..limited_log import limited_logger
from .accepted import new_connection
from .acceptor import NO_RESOURCES, PAUSE_S
from .poller import Poller

log = limited_logger("terrazzo_broker.listeners")

_AT_ONCE = 16  # accepted in one turn of the loop: many that come at once don't keep the others waiting


class PolledListener:
    """An ``OpenListener``: accepts on ``sockets``, which it owns, and reads what it has accepted."""

    def __init__(self, core: BrokerCore, admission: ListenerAdmission, sockets: Sequence[socket.socket]) -> None:
        self._core = core
        self._admission = admission
        self._sockets = sockets
        self._loop = asyncio.get_running_loop()
        self._poller = Poller(core.connections)
        self._is_serving = True
        self._address = ""  # the last one: many connections from one share its text
        for each in sockets:
            self._accept_from(each)

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return self._is_serving

    async def close(self) -> None:
        """Stops accepting; open connections are closed by the broker."""
        if self._is_serving:
            self._is_serving = False
            for each in self._sockets:
                self._loop.remove_reader(each)
                each.close()

    async def finish(self) -> None:
        """Ends the connections that are left."""
        self._poller.close()

    def _accept_from(self, listening: socket.socket) -> None:
        if self._is_serving:
            self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return None
            except OSError as error:
                return self._rest(listening, error)
            self._open(accepted, address)
        return None

    def _rest(self, listening: socket.socket, error: OSError) -> None:
        """Tries it again after a while where there is no room for one more socket."""
        log.warning("cannot accept connections: %s", error)
        if error.errno in NO_RESOURCES:
            self._loop.remove_reader(listening)
            self._loop.call_later(PAUSE_S, self._accept_from, listening)

    def _open(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        try:
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        except OSError as error:
            log.info("%s:%d: gone before MQTT could start: %s", *address[:2], error)
            return accepted.close()
        if address[0] != self._address:
            self._address = address[0]
        connection = new_connection(self._core, self._admission)
        connection.address, connection.port = self._address, address[1]
        return self._poller.open(accepted.detach(), connection)
