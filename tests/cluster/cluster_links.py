"""``Link``: a TCP proxy in front of one server, whose directions can be cut one by one, and heal again."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from enum import Enum

_PIECE = 1 << 16


class Way(Enum):
    """Which direction of a link is cut."""

    TO_SERVER = "to the server"
    FROM_SERVER = "from the server"
    BOTH = "both"


class Link:
    """While a direction is cut what goes that way waits, as segments that a network doesn't carry are sent again by the
    kernels at both ends; new connections are accepted and say nothing."""

    def __init__(self, name: str, target: int) -> None:
        self.name = name
        self.port = 0
        self._target = target
        self._flows = {Way.TO_SERVER: asyncio.Event(), Way.FROM_SERVER: asyncio.Event()}
        for flow in self._flows.values():
            flow.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def open(self) -> Link:
        """Listens."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    def cut(self, way: Way) -> None:
        """Has a direction, or both, carry nothing."""
        for each, flow in self._flows.items():
            if way in (each, Way.BOTH):
                flow.clear()

    def heal(self, *, forgets: bool) -> None:
        """Carries again what waits; or, where a router on the way ``forgets`` connections, they are reset."""
        if forgets:
            self._reset()
        for flow in self._flows.values():
            flow.set()

    async def close(self) -> None:
        """Resets all connections, and listens no more."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        self._reset()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _reset(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        writers = [writer]
        try:
            await self._flows[Way.TO_SERVER].wait()
            far_reader, far = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(far)
            await self._carry((reader, far, Way.TO_SERVER), (far_reader, writer, Way.FROM_SERVER))
        except (OSError, asyncio.CancelledError):  # asyncio logs each stream's handler that ends as cancelled
            return
        finally:
            for each in writers:
                each.transport.abort()

    async def _carry(self, *directions: tuple[asyncio.StreamReader, asyncio.StreamWriter, Way]) -> None:
        both = [asyncio.create_task(self._pump(*each)) for each in directions]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await each

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, way: Way) -> None:
        flow = self._flows[way]
        while data := await source.read(_PIECE):
            await flow.wait()
            sink.write(data)
            await sink.drain()
        await flow.wait()
