"""Long reports of MessagePack as live frames: JSON is made of them elsewhere, and each feed keeps its order."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC

import msgspec
from test_live_feed import ACTOR, NAMES, read, subscribe

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.decoders import POINTS, PayloadDecoders, ToDecode
from terrazzo.ingest.long_reports import json_of_long
from terrazzo.live.feed import Subscription
from terrazzo.live.hub import LiveHub, LiveLimits
from terrazzo.live.long_frames import LongFrames
from terrazzo.live.selector import Selector
from terrazzo.live.sources import RecordSource
from terrazzo.ports import at_work
from terrazzo.ports.store import Record
from turns_of_loop import longest_turn

MANY = {f"p{number}": number for number in range(75_000)}
LONG = msgspec.msgpack.encode(MANY)
SMALL = msgspec.msgpack.encode({"a": 1})


class Stand:
    """A hub with terminals ``a`` of company 1 and ``b`` of company 2; JSON is made of long reports when it is told."""

    def __init__(self, frames: int = 100) -> None:
        registry = Registry()
        for number, uid in enumerate("ab", 1):
            registry.put_terminal(Terminal(**NAMES, id=number, uid=uid, company_id=number))
        self.hub = LiveHub(registry, started_us=1_000, limits=LiveLimits(frames=frames))
        self.gate = asyncio.Event()
        self.made: list[int] = []
        self.long = LongFrames(self.hub, self.json_of)
        self.source = RecordSource(self.hub, registry, zone=UTC, long=self.long)

    async def json_of(self, body: bytes) -> bytes:
        self.made.append(at_work.company_id())
        await self.gate.wait()
        if body == LONG + SMALL:
            raise ValueError("no MessagePack")
        return msgspec.json.encode(msgspec.msgpack.decode(body))

    def tell(self, uid: str, *bodies: bytes) -> None:
        self.source.on_records([Record(f"g/{uid}/r", 1, body) for body in bodies])

    def reader(self, company_id: int) -> Subscription:
        actor = msgspec.structs.replace(ACTOR, company_id=company_id)
        return subscribe(self.hub, Selector(frozenset({"grid"}), company_id), actor=actor)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[None]:
        task = asyncio.create_task(self.long.work(), name="long frames")
        try:
            yield
        finally:
            task.cancel()


async def until_made(stand: Stand) -> None:
    stand.gate.set()
    for _ in range(20):
        await asyncio.sleep(0)


async def test_those_behind_a_long_report_wait_for_it_and_other_feeds_do_not() -> None:
    stand = Stand()
    one, other = stand.reader(1), stand.reader(2)
    async with stand.working():
        stand.tell("a", SMALL, LONG, SMALL)
        stand.tell("b", SMALL)
        await asyncio.sleep(0)
        assert [frame["data"]["payload"] for frame in read(one)] == [{"a": 1}]
        assert [frame["data"]["payload"] for frame in read(other)] == [{"a": 1}]
        assert not one.is_behind
        await until_made(stand)
        frames = read(one)
    assert [frame["data"]["payload"] for frame in frames] == [MANY, {"a": 1}]
    assert [frame["data"]["terminal_id"] for frame in frames] == ["a", "a"]


async def test_companies_take_turns_and_what_is_gone_is_not_made() -> None:
    stand = Stand(frames=2)
    stand.reader(1)
    stand.reader(2)
    async with stand.working():
        stand.tell("a", *[LONG] * 6)
        stand.tell("b", LONG)
        await until_made(stand)
    assert stand.made == [2, 1, 1]


async def test_one_that_can_not_be_made_is_told_without_its_payload() -> None:
    stand = Stand()
    one = stand.reader(1)
    async with stand.working():
        stand.tell("a", LONG + SMALL, SMALL)
        await until_made(stand)
    assert [frame["data"]["payload"] for frame in read(one)] == [None, {"a": 1}]


async def test_a_megabyte_holds_nobody_up() -> None:
    stand, decoders = Stand(), PayloadDecoders()
    stand.long._json_of = lambda body: json_of_long(decoders, body)
    await decoders.decode([ToDecode(POINTS, ("1024", "20000", "4096", "0", "0"), b"{}")])
    one, told = stand.reader(1), asyncio.Event()
    stand.hub.attach(type("Sender", (), {"mark": lambda _, feed: told.set() if one.is_behind else None})())
    async with stand.working(), longest_turn() as longest:
        stand.tell("a", LONG)
        await told.wait()
        data = one.take(lambda frame: frame, stand.hub.stats)
    await decoders.close()
    assert longest.cpu_s < 0.015
    assert json.loads(data)["data"]["payload"] == MANY
