"""Accepts connections that need a handshake before MQTT, each set up in a task of its own."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

from ..limited_log import limited_logger
from ..stats import Stats
from ..tasks import OnFailure, PeerTasks, Tasks

log = limited_logger("terrazzo_broker.listeners")

BACKLOG = 1024
PENDING = 1024  # connections that one listener sets up at a time; the others wait in the backlog
_NO_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_PAUSE_S = 0.5  # before it is tried again when there is no room for one more socket

Receive = Callable[[socket.socket, tuple[str, int]], Awaitable[None]]
"""Takes an accepted socket and its peer's address and port."""


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
        self, name: str, sockets: Sequence[socket.socket], receive: Receive, tasks: Tasks, stats: Stats
    ) -> None:
        self._receive = receive
        self._sockets = sockets
        self._room = asyncio.Semaphore(PENDING)
        self._peers = PeerTasks(stats)
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
            await self._room.acquire()
            try:
                accepted, peer = await loop.sock_accept(listening)
            except OSError as error:
                self._room.release()
                await self._rest(error)
            except BaseException:
                self._room.release()
                raise
            else:
                self._peers.start(
                    f"set up {peer[0]}:{peer[1]}", partial(self._set_up, accepted, peer[:2]), accepted.close
                )

    async def _rest(self, error: OSError) -> None:
        log.warning("cannot accept connections: %s", error)
        if error.errno in _NO_RESOURCES:
            await asyncio.sleep(_PAUSE_S)

    async def _set_up(self, accepted: socket.socket, peer: tuple[str, int]) -> None:
        try:
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self._receive(accepted, peer)
        except OSError as error:
            accepted.close()
            log.info("%s:%d: gone before MQTT could start: %s", *peer, error)
        finally:
            self._room.release()


def _task_name(listener: str, listening: socket.socket) -> str:
    host, port = listening.getsockname()[:2]
    return f"broker accept {listener} {host}:{port}"
