"""Terminals that come back after a restart of their platform: each tries until it is in; refusals are counted."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

_KEEP_ALIVE_S = 600
_ANSWER_S = 60.0  # for how long a terminal waits for its CONNACK


@dataclass
class Fleet:
    """``count`` terminals ``T000000``… from ``addresses`` of 127/8, with user names and pins as uids are.

    ``retry_s``: what each waits between two tries, give or take a half, as firmware does.
    """

    port: int
    count: int
    addresses: int
    retry_s: float = 1.0
    connected: set[int] = field(default_factory=set)
    refused: dict[int, int] = field(default_factory=dict)  # CONNACKs with a refusal, by terminal
    cut: dict[int, int] = field(default_factory=dict)  # connections that were taken and then ended, by terminal
    reached_s: list[float] = field(default_factory=list)  # when each was in
    _tasks: list[asyncio.Task[None]] = field(default_factory=list)

    def start(self) -> None:
        """Lets them go, each with a connection that it keeps."""
        self._tasks = [
            asyncio.create_task(self._live(number), name=f"terminal {number}") for number in range(self.count)
        ]

    def forget(self) -> None:
        """Counts from now on."""
        self.refused.clear()
        self.cut.clear()
        self.reached_s.clear()

    async def all_in(self, timeout_s: float) -> bool:
        """Whether all are connected in time."""
        return await _until(lambda: len(self.connected) == self.count, timeout_s)

    async def all_out(self, timeout_s: float) -> bool:
        """Whether all have noticed in time that their platform has gone."""
        return await _until(lambda: not self.connected, timeout_s)

    def refusals(self) -> dict[int, int]:
        """How often each was turned away, by a CONNACK or by the end of a connection that was taken."""
        return {each: self.refused.get(each, 0) + self.cut.get(each, 0) for each in self.refused.keys() | self.cut}

    async def stop(self) -> None:
        """Ends them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _live(self, number: int) -> None:
        while True:
            with contextlib.suppress(OSError, EOFError, TimeoutError):
                await self._connect(number)
            self.connected.discard(number)
            await asyncio.sleep(self.retry_s * random.uniform(0.5, 1.5))

    async def _connect(self, number: int) -> None:
        share = number % self.addresses
        address = f"127.1.{share // 250}.{share % 250 + 1}"
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        try:
            writer.write(login(f"T{number:06}"))
            await self._stay(number, reader)
        finally:
            writer.transport.abort()

    async def _stay(self, number: int, reader: asyncio.StreamReader) -> None:
        try:
            async with asyncio.timeout(_ANSWER_S):
                answer = await reader.readexactly(4)
        except (OSError, EOFError):
            self.cut[number] = self.cut.get(number, 0) + 1
            raise
        if answer[3]:
            self.refused[number] = self.refused.get(number, 0) + 1
            return
        self.connected.add(number)
        self.reached_s.append(time.monotonic())
        await reader.read()  # until it ends


def login(name: str) -> bytes:
    """A CONNECT of MQTT 3.1.1 [MQTT-3.1]; client id, user name and password are the same."""
    texts = (len(name).to_bytes(2, "big") + name.encode()) * 3
    head = b"\x00\x04MQTT\x04\xc2" + _KEEP_ALIVE_S.to_bytes(2, "big")
    return bytes((0x10, len(head) + len(texts))) + head + texts


async def _until(condition: Callable[[], bool], timeout_s: float) -> bool:
    ends_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > ends_s:
            return False
        await asyncio.sleep(0.02)
    return True
