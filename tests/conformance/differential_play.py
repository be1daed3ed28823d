"""Plays a sequence of steps to a broker, and tells what each client heard after each step."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from typing import Any

import conformance_wire as wire
from conformance_wire import PUBREL, Will
from differential_line import Event, Line
from differential_steps import MALFORMED, MALFORMED_FIRST, SHARED, TOPICS, Step

_CLOSES_S = 2.0
"""Within this time a broker closes a connection that is over; amqtt leaves some open."""
Heard = list[dict[str, list[Event]]]
"""Of each step: of each client that heard something, what."""


async def play(port: int, steps: Sequence[Step], *, quiet_s: float) -> Heard:
    """Plays ``steps``; after each, all clients have heard what followed from it, for at least ``quiet_s``."""
    player = Player(port)
    try:
        return [await player.step(step, quiet_s) for step in steps]
    finally:
        await player.leave()


class Player:
    """The clients of one sequence, whose names and topics no other has."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._name = uuid.uuid4().hex[:10]
        self._lines: dict[str, Line] = {}
        self._before: list[tuple[str, Line]] = []  # connections that another has taken the place of

    async def step(self, step: Step, quiet_s: float) -> dict[str, list[Event]]:
        """Does it; what each client heard. A connection that was taken over is told of as ``a before``."""
        await getattr(self, f"_{step.kind}")(step.who, **step.options)
        for _ in range(2):  # what the first answer was faster than comes before the second
            await asyncio.gather(*(line.settle() for line in self._lines.values()))
            await asyncio.sleep(quiet_s)
        heard = {}
        for name, line in (*self._lines.items(), *self._before):
            if events := line.taken():
                heard[name] = events
        self._before = []
        return heard

    async def leave(self) -> None:
        """Ends what is left, and has the broker forget the sessions and retained messages."""
        for line in self._lines.values():
            await line.cut()
        for who in list(self._lines):
            await self._connect(who, version=4, clean=True, acknowledges=True)
            for topic in TOPICS:
                self._lines[who].send(wire.publish(self._topic(topic), retain=True, version=4))
            await self._lines[who].settle()
            self._lines[who].send(wire.disconnect())
            await self._lines[who].end(_CLOSES_S)
            await self._lines[who].cut()

    def _topic(self, name: str) -> str:
        if name.startswith(SHARED):
            return SHARED + self._topic(name.removeprefix(SHARED))
        return f"{self._name}/{name}" if name else ""

    async def _open(self, who: str, version: int, *, acknowledges: bool, first: bytes) -> None:
        before = self._lines.get(who)
        line = self._lines[who] = Line(version, acknowledges=acknowledges)
        await line.start(self._port, f"{self._name}/")
        line.send(first)
        if before is not None and before.open:
            await before.end(_CLOSES_S)
            self._before.append((f"{who} before", before))
            if before.open:
                before.events.append(("still open",))
                await before.cut()

    async def _connect(
        self, who: str, *, version: int, acknowledges: bool, will: dict[str, Any] | None = None, **options: Any
    ) -> None:
        if will is not None:
            options["will"] = Will(**{**will, "topic": self._topic(will["topic"])})
        first = wire.connect(f"{self._name}{who}", version=version, **options)
        await self._open(who, version, acknowledges=acknowledges, first=first)

    async def _malformed_first(self, who: str, *, version: int, name: str) -> None:
        await self._open(who, version, acknowledges=True, first=MALFORMED_FIRST[name][1])

    async def _malformed(self, who: str, *, name: str) -> None:
        if line := self._lines.get(who):
            line.send(MALFORMED[name][1])

    async def _publish(self, who: str, *, topic: str, payload: bytes, releases: bool = True, **options: Any) -> None:
        if line := self._lines.get(who):
            if not releases and options["qos"] == 2:
                line.unreleased.add(options["packet_id"])
            else:
                line.unreleased.discard(options.get("packet_id", 0))
            line.send(wire.publish(self._topic(topic), payload, version=line.version, **_fitting(line, options)))

    async def _release(self, who: str, *, packet_id: int) -> None:
        line = self._lines.get(who)
        if line is not None and packet_id in line.unreleased:
            line.unreleased.discard(packet_id)
            line.send(wire.ack(PUBREL, packet_id))

    async def _subscribe(self, who: str, *, packet_id: int, filters: Sequence[tuple[str, int]], **options: Any) -> None:
        if line := self._lines.get(who):
            version = line.version
            wishes = [(self._topic(name), wish if version == 5 else wish & 3) for name, wish in filters]
            line.send(wire.subscribe(packet_id, *wishes, version=version, **_fitting(line, options)))

    async def _unsubscribe(self, who: str, *, packet_id: int, filters: Sequence[str]) -> None:
        if line := self._lines.get(who):
            line.send(wire.unsubscribe(packet_id, *map(self._topic, filters), version=line.version))

    async def _leave(self, who: str, *, reason: int | None = None, **options: Any) -> None:
        if line := self._lines.get(who):
            line.send(wire.disconnect(reason if line.version == 5 else None, **_fitting(line, options)))
            if not await line.end(_CLOSES_S):
                line.events.append(("still open",))
                await line.cut()

    async def _cut(self, who: str) -> None:
        if line := self._lines.get(who):
            await line.cut()

    async def _acknowledge(self, who: str) -> None:
        if line := self._lines.get(who):
            line.acknowledge()

    async def _wait(self, who: str, *, seconds: float) -> None:
        await asyncio.sleep(seconds)


def _fitting(line: Line, options: dict[str, Any]) -> dict[str, Any]:
    """Without properties where the version has none, as when steps were left out of a sequence."""
    return {name: value for name, value in options.items() if line.version == 5 or name not in wire.PROPERTIES}
