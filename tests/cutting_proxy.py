"""A TCP proxy that cuts connections: one after its first piece of bytes, the next after its second, and so on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress


class CuttingProxy:
    """Cuts the first ``cuts`` connections, each after 1 to ``steps`` pieces (what one read gives, in either direction);
    later ones go through. ``port`` is where it listens, 0: anywhere. At its end all that are left are cut.
    ``cut_after``: how many were cut, by how many pieces."""

    def __init__(self, target: int, *, cuts: int, steps: int, port: int = 0) -> None:
        self.port = port
        self.made = 0
        self.cut_after: Counter[int] = Counter()
        self._target, self._cuts, self._steps = target, cuts, steps
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def cut(self) -> int:
        """How many were cut."""
        return self.cut_after.total()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[CuttingProxy]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", self.port, backlog=2_000)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.made += 1
        left = 1 + self.made % self._steps if self.made <= self._cuts else 0
        writers = [writer]
        try:
            target_reader, target = await asyncio.open_connection("127.0.0.1", self._target)
            writers.append(target)
            await self._pass_on(reader, writer, target_reader, target, pieces=left)
        except (OSError, asyncio.CancelledError):  # asyncio logs each stream's handler that ends as cancelled
            return
        finally:
            for each in writers:
                each.transport.abort()

    async def _pass_on(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        target_reader: asyncio.StreamReader,
        target: asyncio.StreamWriter,
        *,
        pieces: int,
    ) -> None:
        done = 0

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            nonlocal done
            while data := await source.read(65_536):
                sink.write(data)
                await sink.drain()
                done += 1
                if done == pieces:
                    self.cut_after[pieces] += 1
                    return

        both = [asyncio.create_task(pump(reader, target)), asyncio.create_task(pump(target_reader, writer))]
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in both:
                each.cancel()
                with suppress(asyncio.CancelledError, OSError):
                    await each
