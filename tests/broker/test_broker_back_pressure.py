"""Back pressure: publishers wait for a subscriber that is behind, within bounds of time, bytes and owners."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from raw_client import RawClient, connect_4, publish_4, subscribe_4, until
from terrazzo_broker import Accept
from terrazzo_broker.connection_state import ReadHold
from terrazzo_broker.delivery.back_pressure import (
    BUDGET_S,
    LEAST_TAKEN_BYTES,
    MOST_HOLD_S,
    READ_BYTES,
    SMALL_READ_BYTES,
    STALL_LOOKS,
    TICK_S,
    BackPressure,
)
from terrazzo_broker.hooks import Client
from terrazzo_broker.stats import MOST_RANKED, Ranking, Stats

Dial = Callable[..., Awaitable[RawClient]]
QUEUED_BYTES = 8 << 20
LARGE = SMALL_READ_BYTES


def client_of(owner: str) -> Client:
    return Client("c", None, 4, "", 0, "tcp", 0, 0, owner=owner)


@dataclass(eq=False)
class Publisher:
    client: Client | None = field(default_factory=lambda: client_of("a"))
    is_held: bool = False
    fed: Subscriber | None = None

    def feeds(self, subscriber: object) -> bool:
        return subscriber is self.fed

    def hold(self, why: int) -> None:
        assert (why, self.is_held) == (ReadHold.SUBSCRIBER, False)
        self.is_held = True

    def release(self, why: int) -> None:
        assert why == ReadHold.SUBSCRIBER
        self.is_held = False


@dataclass(eq=False)
class Subscriber:
    client: Client | None = field(default_factory=lambda: client_of("a"))
    out_bytes: int = QUEUED_BYTES // 2
    taken_bytes: int = 0
    is_closed: bool = False


class Clockwork:
    """Time that passes when it is told to, and what was to be called."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.due: list[tuple[float, Callable[[], None]]] = []
        self.stats = Stats()
        self.pressure = BackPressure(QUEUED_BYTES, self.stats, lambda: self.now_s, self._call_later)

    def _call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        self.due.append((self.now_s + delay_s, call))

    def pass_time(self, seconds: float, *, each_tick: Callable[[], object] = lambda: None) -> None:
        """Lets time pass; ``each_tick`` is called before each look."""
        until_s = self.now_s + seconds
        while self.due and self.due[0][0] <= until_s + 1e-9:
            self.now_s, call = self.due.pop(0)
            each_tick()
            call()
        self.now_s = until_s

    def read(self, publisher: Publisher, *fed: Subscriber, size: int = LARGE) -> None:
        """A read of a publisher that has brought these subscribers beyond the mark."""
        self.pressure.fed.update(fed)
        self.pressure.settle(publisher, size)


def test_a_publisher_waits_until_there_is_room() -> None:
    clock, publisher, subscriber = Clockwork(), Publisher(), Subscriber()
    clock.read(publisher, subscriber)
    assert publisher.is_held
    assert clock.stats.publishers_slowed == 1
    clock.pressure.on_taken(subscriber)
    assert publisher.is_held, "still above the low mark"
    subscriber.out_bytes = QUEUED_BYTES // 8
    clock.pressure.on_taken(subscriber)
    assert not publisher.is_held


def test_those_that_wait_are_let_in_as_there_is_room_and_in_turn() -> None:
    clock, subscriber = Clockwork(), Subscriber()
    publishers = [Publisher() for _ in range(20)]
    for each in publishers:
        clock.read(each, subscriber)
    subscriber.out_bytes = 0
    clock.pressure.on_taken(subscriber)
    room = QUEUED_BYTES // 4 // READ_BYTES
    assert [each.is_held for each in publishers] == [False] * room + [True] * (20 - room)
    subscriber.out_bytes = QUEUED_BYTES // 8
    clock.pressure.on_taken(subscriber)
    assert sum(each.is_held for each in publishers) == 20 - room - room // 2


def test_those_that_would_bring_much_in_the_same_turn_wait_with_the_first() -> None:
    clock, subscriber, first = Clockwork(), Subscriber(), Publisher()
    feeding, other, stranger = Publisher(fed=subscriber), Publisher(), Publisher(client_of("b"), fed=subscriber)
    for each in (first, feeding, other, stranger):
        clock.pressure.note_large(each)
    clock.read(first, subscriber)
    assert [each.is_held for each in (first, feeding, other, stranger)] == [True, True, False, False]


def test_nobody_waits_longer_than_a_second() -> None:
    clock, publisher, subscriber = Clockwork(), Publisher(), Subscriber()
    clock.read(publisher, subscriber)

    def take() -> None:
        subscriber.taken_bytes += LEAST_TAKEN_BYTES

    clock.pass_time(MOST_HOLD_S - TICK_S, each_tick=take)
    assert publisher.is_held
    clock.pass_time(2 * TICK_S, each_tick=take)
    assert not publisher.is_held


@pytest.mark.parametrize("taken", [0, LEAST_TAKEN_BYTES // 10])
def test_one_that_takes_nothing_or_a_trickle_holds_nobody_up(taken: int) -> None:
    clock, publisher, subscriber = Clockwork(), Publisher(), Subscriber()
    clock.read(publisher, subscriber)

    def trickle() -> None:
        subscriber.taken_bytes += taken

    clock.pass_time((STALL_LOOKS + 1) * TICK_S, each_tick=trickle)
    assert not publisher.is_held
    for _ in range(100):
        clock.read(publisher, subscriber)
        assert not publisher.is_held
        clock.pass_time(TICK_S, each_tick=trickle)
    subscriber.taken_bytes += LEAST_TAKEN_BYTES  # it takes again
    clock.pass_time(TICK_S)
    clock.read(publisher, subscriber)
    assert publisher.is_held


def test_a_subscriber_has_a_budget_of_others_time() -> None:
    """One that reads slowly for ever: ten seconds, and a tenth of the time from then on."""
    clock, publisher, subscriber = Clockwork(), Publisher(), Subscriber()
    held_s = 0.0

    def step() -> None:
        nonlocal held_s
        subscriber.taken_bytes += LEAST_TAKEN_BYTES
        held_s += TICK_S * publisher.is_held

    for _ in range(4000):
        if not publisher.is_held:
            clock.read(publisher, subscriber)
        clock.pass_time(TICK_S, each_tick=step)
    assert BUDGET_S <= held_s <= BUDGET_S + 0.1 * 4000 * TICK_S + MOST_HOLD_S


def test_owners_are_apart() -> None:
    clock, subscriber = Clockwork(), Subscriber(client_of("a"))
    other = Publisher(client_of("b"))
    clock.read(other, subscriber)
    assert not other.is_held
    own = Subscriber(client_of("b"))
    clock.read(other, subscriber, own)
    assert other.is_held, "for its own"


def test_who_publishes_little_does_not_wait() -> None:
    clock, publisher, subscriber = Clockwork(), Publisher(), Subscriber()
    clock.read(publisher, subscriber, size=SMALL_READ_BYTES - 1)
    assert not publisher.is_held
    assert not clock.pressure.fed


def test_it_ends_with_the_subscriber() -> None:
    clock, publisher, subscriber = Clockwork(), Publisher(), Subscriber()
    clock.read(publisher, subscriber)
    subscriber.is_closed = True
    clock.pass_time(TICK_S)
    assert not publisher.is_held
    assert clock.pressure.is_idle
    assert not clock.due


def test_nothing_is_kept_of_one_that_has_caught_up() -> None:
    clock, publisher, subscriber = Clockwork(), Publisher(), Subscriber()
    clock.read(publisher, subscriber)
    subscriber.out_bytes = 0
    clock.pass_time(30, each_tick=lambda: None)
    assert clock.pressure.is_idle
    assert not clock.due


def test_a_ranking_is_bounded_and_finds_the_most() -> None:
    ranking = Ranking()
    for number in range(10 * MOST_RANKED):
        ranking.add(f"one of many {number}", 1)
        ranking.add("the most", 2)
    assert ranking.top(1) == [("the most", 20 * MOST_RANKED)]
    assert len(ranking.top(10 * MOST_RANKED)) == MOST_RANKED


# On real sockets

SETTINGS = {"queued_bytes": 4 << 20}
PACKET = publish_4("t", bytes(1000))


async def flood(client: RawClient, count: int) -> None:
    """Publishes as fast as the broker takes it."""
    for _ in range(count // 100):
        client.writer.write(PACKET * 100)
        await client.writer.drain()


async def count_until(reader: asyncio.StreamReader, total: int) -> int:
    """How many of the messages come, as far as they do."""
    got = bytearray()
    try:
        while len(got) < total * len(PACKET):
            got += await asyncio.wait_for(reader.read(1 << 16), 2)
            await asyncio.sleep(0)
    except TimeoutError:
        pass
    return len(got) // len(PACKET)


async def subscriber_of(dial: Dial, running: Any, name: str = "subscriber") -> RawClient:
    client = await dial(None, version=4, port=running.port)
    client.send(connect_4(name), subscribe_4(1, ("t", 0)))
    assert [await client.receive() for _ in range(2)] == [(0x20, b"\0\0"), (0x90, b"\0\1\0")]
    return client


async def publisher_of(dial: Dial, running: Any, name: str, **options: Any) -> RawClient:
    client = await dial(None, version=4, port=running.port)
    assert await client.connect(name, **options) == (0x20, b"\0\0")
    return client


async def told_slowest(client: RawClient) -> Any:
    """The next message about the slowest subscribers."""
    return json.loads((await client.receive())[1].partition(b"slowest")[2])


async def test_a_subscriber_that_reads_gets_everything(start: Any, dial: Dial) -> None:
    running = await start(**SETTINGS)
    subscriber = await subscriber_of(dial, running)
    publishers = [await publisher_of(dial, running, f"p{number}") for number in range(4)]
    counting = asyncio.create_task(count_until(subscriber.reader, 4 * 10_000))
    await asyncio.gather(*(flood(each, 10_000) for each in publishers))
    assert await counting == 40_000
    assert running.broker.stats.dropped == {}
    assert running.broker.stats.publishers_slowed > 0


async def test_of_a_subscriber_that_does_not_read_it_is_dropped_and_counted(start: Any, dial: Dial) -> None:
    running = await start(queued_bytes=1 << 20, sys_interval_s=0.05)
    stalled, reading = await subscriber_of(dial, running, "stalled"), await subscriber_of(dial, running, "reading")
    stalled.writer.transport.pause_reading()
    publisher = await publisher_of(dial, running, "p")
    counting = asyncio.create_task(count_until(reading.reader, 40_000))
    await asyncio.wait_for(flood(publisher, 40_000), 20)
    assert await counting == 40_000, "nobody else loses anything"
    dropped = running.broker.stats.dropped["slow consumer"]
    assert dropped > 0
    assert running.broker.client("stalled").messages_dropped == dropped
    assert running.broker.client("reading").messages_dropped == 0
    publisher.send(subscribe_4(1, ("$SYS/broker/messages/dropped/slowest", 0)))
    await publisher.receive()
    async with asyncio.timeout(5):  # the first may be one of the time before
        while await told_slowest(publisher) != {"stalled": dropped}:
            pass


async def test_a_client_that_hears_itself_comes_through(start: Any, dial: Dial) -> None:
    """It publishes without reading until it can't: nothing waits for it then."""
    running = await start(**SETTINGS)
    client = await subscriber_of(dial, running, "echo")
    client.writer.transport.pause_reading()
    await asyncio.wait_for(flood(client, 20_000), 20)
    client.writer.transport.resume_reading()
    client.send(b"\xc0\x00")
    tail = b""
    while not tail.endswith(b"\xd0\x00"):
        tail = (tail + await asyncio.wait_for(client.reader.read(1 << 16), 10))[-2:]


async def test_a_publisher_of_another_owner_is_not_slowed(start: Any, dial: Dial) -> None:
    running = await start(**SETTINGS)

    async def verdict(request: Any) -> Accept:
        return Accept(owner=request.client_id[0])

    running.hooks.verdict = verdict
    subscriber, publisher = await subscriber_of(dial, running, "a1"), await publisher_of(dial, running, "b1")
    counting = asyncio.create_task(count_until(subscriber.reader, 20_000))
    await flood(publisher, 20_000)
    await counting
    assert running.broker.stats.publishers_slowed == 0
    assert running.broker.stats.dropped_for.top(1) == [], "names of owners' clients are nobody else's"


@pytest.mark.parametrize("version", [4, 5])
async def test_it_counts_for_each_way_to_a_subscriber(start: Any, dial: Dial, version: int) -> None:
    """Messages that are encoded anew, for another version or with aliases, bring a subscriber behind, too."""
    running = await start(queued_bytes=1 << 20)
    client = await dial(None, version=version, port=running.port)
    await client.connect("s", **({"topic_alias_max": 5} if version == 5 else {}))
    await client.subscribe(("t", 0))
    publisher = await publisher_of(dial, running, "p")
    client.writer.transport.pause_reading()
    flooding = asyncio.create_task(flood(publisher, 60_000))
    await until(lambda: running.broker.stats.publishers_slowed > 0)
    client.writer.transport.abort()
    await asyncio.wait_for(flooding, 20)
