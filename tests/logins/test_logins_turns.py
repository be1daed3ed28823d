"""Turns for costly checks: an address has its share, lines are bounded, and nobody's place gets lost."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from terrazzo.errors import Throttled, Unavailable
from terrazzo.logins.turns import WAITING, WAITING_OF_ADDRESS, CheckTurns

FLOOD, HOME = "10.9.9.9", "10.0.0.1"


class Checks:
    """Checks that end when a test says so; ``running``: by address."""

    def __init__(self) -> None:
        self.turns = CheckTurns(2)
        self.running: Counter[str] = Counter()
        self.order: list[str] = []
        self.go = asyncio.Event()

    async def check(self, address: str, *, is_known: bool = False) -> None:
        async with self.turns.turn(address, is_known=is_known):
            self.running[address] += 1
            self.order.append(address)
            try:
                await self.go.wait()
            finally:
                self.running[address] -= 1

    def start(self, address: str, *, is_known: bool = False) -> asyncio.Task[None]:
        return asyncio.create_task(self.check(address, is_known=is_known))


async def turn_of_the_loop() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_one_address_has_one_slot_and_its_line_has_an_end() -> None:
    checks = Checks()
    flood = [checks.start(FLOOD) for _ in range(100)]
    await turn_of_the_loop()
    assert checks.running == {FLOOD: 1}
    honest = checks.start(HOME, is_known=True)
    await turn_of_the_loop()
    assert checks.running[HOME] == 1, "at once"
    checks.go.set()
    results = await asyncio.gather(*flood, honest, return_exceptions=True)
    assert sum(isinstance(result, Throttled) for result in results) == 100 - 1 - WAITING_OF_ADDRESS
    assert checks.turns.refused == 100 - 1 - WAITING_OF_ADDRESS


async def test_addresses_of_one_ipv6_network_are_one() -> None:
    checks = Checks()
    flood = [checks.start(f"2001:db8::{number}") for number in range(10)]
    await turn_of_the_loop()
    assert sum(checks.running.values()) == 1
    checks.go.set()
    await asyncio.gather(*flood)


async def test_all_together_are_bounded_and_those_who_are_known_have_a_line_of_their_own() -> None:
    checks = Checks()
    flood = [checks.start(f"10.8.{number // 250}.{number % 250}") for number in range(1_000)]
    await turn_of_the_loop()
    honest = checks.start(HOME, is_known=True)
    await turn_of_the_loop()
    checks.go.set()
    results = await asyncio.gather(*flood, return_exceptions=True)
    await honest
    assert sum(isinstance(result, Unavailable) for result in results) == 1_000 - 1 - WAITING
    assert checks.order.index(HOME) == 1, "at once: strangers leave a slot"


async def test_strangers_addresses_have_their_turns_one_after_the_other() -> None:
    checks = Checks()
    started = [checks.start(FLOOD) for _ in range(10)]
    started += [checks.start("10.9.9.8") for _ in range(10)]
    await turn_of_the_loop()
    honest = checks.start(HOME)
    await turn_of_the_loop()
    checks.go.set()
    await asyncio.gather(*started, honest)
    assert checks.order.index(HOME) <= 4


async def test_one_slot_serves_everybody() -> None:
    checks = Checks()
    checks.turns = CheckTurns(1)
    started = [checks.start(address) for address in (FLOOD, FLOOD, HOME)]
    checks.go.set()
    await asyncio.gather(*started)
    assert Counter(checks.order) == {FLOOD: 2, HOME: 1}


@pytest.mark.parametrize("seed", range(20))
async def test_no_place_gets_lost_whoever_gives_up(seed: int) -> None:
    chance, turns, running = random.Random(seed), CheckTurns(2), Counter[str]()

    async def check(address: str) -> None:
        async with turns.turn(address, is_known=chance.random() < 0.3):
            running[address] += 1
            assert sum(running.values()) <= 2
            assert running[address] == 1
            try:
                for _ in range(chance.randrange(4)):
                    await asyncio.sleep(0)
            finally:
                running[address] -= 1

    tasks = []
    for _ in range(300):
        tasks.append(asyncio.create_task(check(f"10.0.0.{chance.randrange(6)}")))
        if chance.random() < 0.5:
            chance.choice(tasks).cancel()
        for _ in range(chance.randrange(3)):
            await asyncio.sleep(0)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(result is None or isinstance(result, asyncio.CancelledError | Throttled) for result in results)
    assert (turns._free, turns._running, turns._of_strangers) == (2, {}, 0)
    assert (turns._known.count, turns._strangers.count) == (0, 0)
    assert not turns._known.by_share
    assert not turns._strangers.by_share
