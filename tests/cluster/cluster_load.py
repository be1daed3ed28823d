"""Terminals that publish at QoS 1 through whichever front lets them in, send again what wasn't acknowledged, and take
commands; each keeps what it did and was told."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from cluster.cluster_evidence import Published, Report, Taken, points
from mqtt_bytes import field, frame, login, publish

WINDOW = 20  # publishes in flight
_LOGIN_S = 6.0
_SILENT_S = 8.0  # without a PUBACK while some are due: the terminal connects anew
_PAUSE_S = 0.2
_MOST_IDS = 60_000


class Moments:
    """Counts moments, over all terminals."""

    def __init__(self) -> None:
        self._numbers: Iterator[int] = itertools.count(1)

    def next(self) -> int:
        return next(self._numbers)


class Terminal:
    """One terminal of MQTT 3.1.1. ``acknowledged_s``: when it had its last PUBACK, by the loop's clock.

    Args:
        ports: of the fronts, tried in turn.
        per_second: how many publishes it begins, as long as they are acknowledged.
        taken: commands by value, of all terminals.
    """

    def __init__(
        self, uid: str, ports: Sequence[int], moments: Moments, *, per_second: float, taken: dict[str, Taken]
    ) -> None:
        self.uid = uid
        self.published: list[Published] = []
        self.acknowledged_s = 0.0
        self.longest_s = 0.0  # without a PUBACK, since somebody set it to 0
        self.connections = 0
        self.port = 0  # of the front that it is connected to
        self._ports = itertools.cycle(ports)
        self._moments = moments
        self._pause_s = 1 / per_second
        self._taken = taken
        self._due: list[int] = []  # numbers without a PUBACK, in their order
        self._next = 0
        self._in_flight: dict[int, Published] = {}  # by packet identifier
        self._ends_at: int | None = None  # the number before which it ends
        self._changed = asyncio.Event()
        self._moves = asyncio.Event()

    @property
    def acknowledged(self) -> int:
        """How many numbers were acknowledged."""
        return self._next - len(self._due)

    def move(self) -> None:
        """Ends its connection without a word, and connects to the next front."""
        self._moves.set()

    def end(self) -> None:
        """Begins no new number; ``is_done`` when all are acknowledged."""
        self._ends_at = self._next
        self._changed.set()

    @property
    def is_done(self) -> bool:
        """Whether it has ended, with all that it published acknowledged."""
        return self._ends_at is not None and not self._due

    async def run(self) -> None:
        """Connects again and again, until it is cancelled."""
        while True:
            with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
                await self._connect(next(self._ports))
            self.port = 0
            self._in_flight.clear()
            await asyncio.sleep(_PAUSE_S)  # as terminals do that were sent away

    async def _connect(self, port: int) -> None:
        async with asyncio.timeout(_LOGIN_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            async with asyncio.timeout(_LOGIN_S):
                writer.write(login(self.uid, f"u-{self.uid}", f"pin-{self.uid}"))
                if await reader.readexactly(4) != b"\x20\x02\0\0":
                    return
                writer.write(frame(0x82, b"\0\1", field(f"p2p/{self.uid}"), b"\1"))
            self.port = port
            self.connections += 1
            await self._exchange(reader, writer)
        finally:
            writer.transport.abort()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Reads and writes until one of both ends, no PUBACK comes, or it is to move."""
        self._moves.clear()
        work = (self._write(writer), self._read(reader, writer), self._watch(), self._moves.wait())
        tasks = [asyncio.create_task(each) for each in work]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self) -> None:
        clock = asyncio.get_running_loop().time
        began_s = clock()
        while True:
            await asyncio.sleep(_SILENT_S / 8)
            if not self._in_flight:
                began_s = clock()
            elif clock() - max(self.acknowledged_s, began_s) > _SILENT_S:
                return

    async def _write(self, writer: asyncio.StreamWriter) -> None:
        ids = itertools.cycle(range(1, _MOST_IDS))
        for number in list(self._due):  # again, in their order
            await self._publish(writer, number, next(ids))
        while True:
            if self._ends_at is not None and self._next >= self._ends_at:
                await asyncio.Event().wait()
            number, self._next = self._next, self._next + 1
            self._due.append(number)
            await self._publish(writer, number, next(ids))
            await asyncio.sleep(self._pause_s)

    async def _publish(self, writer: asyncio.StreamWriter, number: int, packet_id: int) -> None:
        while len(self._in_flight) >= WINDOW:
            self._changed.clear()
            await self._changed.wait()
        said = Published(Report(self.connections, number), self._moments.next())
        self.published.append(said)
        self._in_flight[packet_id] = said
        body = json.dumps({"n": number, "c": self.connections, **points(number)}).encode()
        writer.write(publish(f"g/{self.uid}/r", body, packet_id=packet_id))
        await writer.drain()

    async def _read(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            first, length = await reader.readexactly(2)
            shift = 7
            if length & 128:
                length &= 127
                while True:
                    (digit,) = await reader.readexactly(1)
                    length |= (digit & 127) << shift
                    shift += 7
                    if not digit & 128:
                        break
            rest = await reader.readexactly(length)
            if first == 0x40:
                self._on_puback(int.from_bytes(rest, "big"))
            elif first & 0xF0 == 0x30:
                self._on_command(rest, writer)

    def _on_puback(self, packet_id: int) -> None:
        said = self._in_flight.pop(packet_id)
        said.acknowledged = self._moments.next()
        self._due.remove(said.report.number)
        now_s = asyncio.get_running_loop().time()
        self.longest_s = max(self.longest_s, now_s - self.acknowledged_s)
        self.acknowledged_s = now_s
        self._changed.set()

    def _on_command(self, rest: bytes, writer: asyncio.StreamWriter) -> None:
        start = 2 + int.from_bytes(rest[:2], "big")
        taken = self._taken.setdefault(command_value(rest[start + 2 :]), Taken())
        taken.came.append(self._moments.next())
        writer.write(b"\x40\x02" + rest[start : start + 2])
        taken.acknowledged.append(self._moments.next())  # after it is written: nobody can know of it before


def command_value(payload: bytes) -> str:
    """The value of a command that a terminal got."""
    return next(word for word in json.dumps(json.loads(payload)).split('"') if word.startswith("k-"))


async def until(condition: Callable[[], bool], what: str, *, timeout_s: float) -> float:
    """Waits for a condition; how long it took.

    Raises:
        AssertionError: it didn't come, names it.
    """
    clock = asyncio.get_running_loop().time
    began_s = clock()
    while not condition():
        if clock() - began_s > timeout_s:
            raise AssertionError(f"not within {timeout_s:.0f} s: {what}")
        await asyncio.sleep(0.05)
    return clock() - began_s
