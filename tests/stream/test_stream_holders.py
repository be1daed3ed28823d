"""A client id is one front's: who takes it over has the earlier connection ended first, or its front declared dead."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from terrazzo.embedded.shared_logins import take_over
from terrazzo.replication.front_lease import FRONT_PREFIX, FrontLease, decode_front
from terrazzo.replication.holders import Holder, Holders, HolderSilent
from terrazzo.sparse_log import SparseLog
from terrazzo_adapters.jetstream import Connection, JetStreamRecords
from terrazzo_broker.hooks import Refuse

LEASE_S = 0.5


@pytest.fixture
async def fronts(connection: Connection) -> JetStreamRecords:
    opened = JetStreamRecords(connection)
    await opened.open()
    return opened


@pytest.fixture
async def clients(connection: Connection) -> JetStreamRecords:
    opened = JetStreamRecords(connection, "clients", most_bytes=1 << 20)
    await opened.open()
    return opened


class Fronts:
    """Fronts that have a lease, and answer each other."""

    def __init__(self, clients: JetStreamRecords, fronts: JetStreamRecords) -> None:
        self._clients, self._records = clients, fronts
        self.all: dict[str, Holders] = {}
        self.ended: list[tuple[str, str]] = []
        self.silent: set[str] = set()

    async def add(self, node: str, now_us: int) -> Holders:
        clock: Callable[[], float] = asyncio.get_running_loop().time
        lease = FrontLease(self._records, node=node, run=node, lease_s=LEASE_S, clock=clock)
        await lease.claim(now_us)
        made = Holders(
            self._clients,
            self._records,
            self.end,
            own=Holder(node, lease.epoch),
            lease_s=LEASE_S,
            clock=clock,
        )
        self.all[node] = made
        return made

    async def end(self, node: str, uid: str, timeout_s: float) -> bool:
        if node in self.silent:
            return False
        self.ended.append((node, uid))
        self.all[node].let_go(uid)
        return True

    async def is_free(self, node: str) -> bool:
        found = await self._records.get(FRONT_PREFIX + node)
        return found is not None and decode_front(found.value).is_free


@pytest.fixture
async def both(clients: JetStreamRecords, fronts: JetStreamRecords) -> Fronts:
    made = Fronts(clients, fronts)
    await made.add("f1", 1)
    await made.add("f2", 2)
    return made


async def test_the_earlier_front_ends_its_connection_first(both: Fronts) -> None:
    first, second = both.all["f1"], both.all["f2"]
    for uid in ("t 1", "t.*>"):
        await first.take(uid)
        await first.take(uid)
        assert first.holds(uid)
        assert not second.holds(uid)
        await second.take(uid)
        assert (first.holds(uid), second.holds(uid)) == (False, True)
    assert both.ended == [("f1", "t 1"), ("f1", "t.*>")]


async def test_of_many_that_take_at_once_one_has_it(both: Fronts) -> None:
    holders = list(both.all.values())
    await asyncio.gather(*(each.take("t") for each in holders for _ in range(3)))
    assert sum(each.holds("t") for each in holders) == 1


async def test_a_silent_front_is_dead_after_its_lease_and_not_before(both: Fronts, fronts: JetStreamRecords) -> None:
    first, second = both.all["f1"], both.all["f2"]
    await first.take("t")
    both.silent.add("f1")

    async def live() -> None:
        while True:
            found = await fronts.get(FRONT_PREFIX + "f1")
            assert found is not None
            await fronts.put(FRONT_PREFIX + "f1", found.value, revision=found.revision)
            await asyncio.sleep(LEASE_S / 5)

    living = asyncio.create_task(live())
    with pytest.raises(HolderSilent, match="front f1 doesn't answer"):
        await second.take("t")
    assert not second.holds("t")
    assert not await both.is_free("f1")
    living.cancel()
    await asyncio.wait({living})
    await second.take("t")
    assert second.holds("t")
    assert await both.is_free("f1"), "it can't acknowledge anything any more"


async def test_a_later_start_has_what_an_earlier_one_had(both: Fronts) -> None:
    await both.all["f1"].take("t")
    again = await both.add("f1", 10)
    await again.take("t")
    await both.all["f2"].take("t")
    assert both.ended == [("f1", "t")], "the start that is there is asked"


async def test_no_room_for_one_more_is_said_with_the_key_that_gives_it(
    connection: Connection, fronts: JetStreamRecords, caplog: pytest.LogCaptureFixture
) -> None:
    few = JetStreamRecords(connection, "clients", most_bytes=1_000, room="stream.in_gib")
    await few.open()
    both = Fronts(few, fronts)
    first, second = await both.add("f1", 1), await both.add("f2", 2)
    refused: list[str] = []
    for number in range(10):
        refusal = await take_over(first, f"t{number}", SparseLog(logging.getLogger("here")))
        if isinstance(refusal, Refuse):
            refused.append(f"t{number}")
            assert (int(refusal.reason), refusal.message.partition(" to note")[0]) == (0x88, "there is no room")
    assert refused, "1,000 bytes are few"
    assert "t0" not in refused
    assert not first.holds(refused[0])
    assert "-clients is full: maximum bytes exceeded: give it more (stream.in_gib)" in caplog.text
    assert await take_over(second, "t0", SparseLog(logging.getLogger("here"))) is None, "one that is known goes on"
