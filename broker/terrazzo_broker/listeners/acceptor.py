"""Accepts connections that need a handshake before MQTT, each set up in a task of its own."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from ..admission.half_open import Peer
from ..core import BrokerCore
from ..limited_log import limited_logger
from ..tasks import OnFailure, PeerTasks, Tasks

log = limited_logger("terrazzo_broker.listeners")

BACKLOG = 1024
NO_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
PAUSE_S = 0.5  # before it is tried again when there is no room for one more socket

Receive = Callable[[socket.socket, tuple[str, int], Peer], Awaitable[bool]]
"""Sets up an accepted socket with its peer's address and port; whether a protocol has it now."""


def bind(host: str, port: int) -> list[socket.socket]:
    """Listening sockets on all addresses of ``host``, the same port on each (0: any free one).

    Raises:
        OSError: an address is taken or not ours.
    """
    wanted = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, *_, address in dict.fromkeys(wanted):
            bound = sockets[0].getsockname()[1] if sockets else port
            sockets.append(_listen(family, (address[0], bound, *address[2:])))
    except OSError:
        for each in sockets:
            each.close()
        raise
    return sockets


def _listen(family: int, address: tuple[Any, ...]) -> socket.socket:
    try:
        listening = socket.create_server(address, family=family, backlog=BACKLOG)
    except OSError as error:
        raise OSError(error.errno, f"cannot listen on {address[0]}:{address[1]}: {error.strerror}") from error
    listening.setblocking(False)
    return listening


class Acceptor:
    """An ``OpenListener``: hands each accepted socket to ``receive``, which owns it from then on.

    ``name`` is the listener's. The task that accepts on a socket is restarted if it fails.
    """

    def __init__(
        self, name: str, sockets: Sequence[socket.socket], receive: Receive, tasks: Tasks, core: BrokerCore
    ) -> None:
        self._receive = receive
        self._sockets = sockets
        self._admission = core.admission
        self._peers = PeerTasks(core.stats)
        self._accepting = [
            tasks.spawn(_task_name(name, each), partial(self._accept, each), OnFailure.REPORT) for each in sockets
        ]

    def is_serving(self) -> bool:
        """Whether it accepts connections."""
        return any(each.is_running for each in self._accepting)

    async def close(self) -> None:
        """Stops accepting, and cancels connections that are being set up."""
        self._peers.cancel()
        for task in self._accepting:
            await task.stop()
        for each in self._sockets:
            each.close()

    async def finish(self) -> None:
        """Waits for the end of what ``close`` has cancelled."""
        await self._peers.finish()

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, address = await loop.sock_accept(listening)
            except OSError as error:
                await self._rest(error)
            else:
                self._admit(accepted, address[:2])
                await asyncio.sleep(0)  # many that come at once don't keep the others waiting

    def _admit(self, accepted: socket.socket, address: tuple[str, int]) -> None:
        """Starts to set up a socket, or closes it at once where there is no room."""
        peer = self._admission.enter(address[0])
        if peer is None:
            return accepted.close()
        task = self._peers.start(
            f"set up {address[0]}:{address[1]}", partial(self._set_up, accepted, address, peer), accepted.close
        )
        peer.give_way = task.cancel
        return task.add_done_callback(lambda _: self._on_set_up(accepted, peer))

    def _on_set_up(self, accepted: socket.socket, peer: Peer) -> None:
        if not peer.is_served:
            accepted.close()
            self._admission.leave(peer)

    async def _rest(self, error: OSError) -> None:
        log.warning("cannot accept connections: %s", error)
        if error.errno in NO_RESOURCES:
            await asyncio.sleep(PAUSE_S)

    async def _set_up(self, accepted: socket.socket, address: tuple[str, int], peer: Peer) -> None:
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.is_served = await self._receive(accepted, address, peer)
        except OSError as error:
            log.info("%s:%d: gone before MQTT could start: %s", *address, error)


def _task_name(listener: str, listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"broker accept {listener} {host}:{port}"
