"""Costly work by company and in turn."""

from __future__ import annotations

import asyncio

import pytest

from terrazzo.company_turns import CompanyTurns
from terrazzo.errors import Throttled


class Works:
    """Pieces of work that last until they are told to end, and who is at work."""

    def __init__(self, turns: CompanyTurns) -> None:
        self.turns = turns
        self.order: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def add(self, *names: str) -> None:
        for name in names:
            self._ends[name] = asyncio.Event()
            self.tasks[name] = asyncio.create_task(self._work(name))
            await self.settle()

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await self.settle()

    @staticmethod
    async def settle() -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def _work(self, name: str) -> None:
        async with self.turns.turn(int(name[1:].partition(".")[0])):
            self.order.append(name)
            await self._ends[name].wait()


@pytest.fixture
def works() -> Works:
    return Works(CompanyTurns("imports", at_once=2, waiting=3))


async def test_one_of_a_company_at_a_time_and_so_many_of_all(works: Works):
    await works.add("c1.a", "c1.b", "c2.a", "c3.a")
    assert works.order == ["c1.a", "c2.a"]
    await works.end("c2.a")
    assert works.order[2:] == ["c3.a"], "a company at work waits for its own"
    await works.end("c1.a")
    assert works.order[3:] == ["c1.b"]


async def test_companies_take_turns_however_many_one_has_waiting(works: Works):
    await works.add("c1.a", "c2.a", "c1.b", "c1.c", "c3.a", "c4.a")
    for name in ("c1.a", "c2.a", "c1.b", "c3.a"):
        await works.end(name)
    assert works.order == ["c1.a", "c2.a", "c1.b", "c3.a", "c4.a", "c1.c"]


async def test_too_many_of_a_company_are_refused_and_of_others_not(works: Works):
    await works.add("c1.a", "c1.b", "c1.c", "c1.d")
    with pytest.raises(Throttled, match=r"imports: 3 of your company wait already"):
        async with works.turns.turn(1):
            pass
    await works.add("c2.a")
    assert works.order == ["c1.a", "c2.a"]
    assert works.turns.refused == 1


async def test_who_gives_up_waiting_leaves_no_trace(works: Works):
    await works.add("c1.a", "c1.b", "c1.c")
    works.tasks["c1.b"].cancel()
    await works.settle()
    await works.end("c1.a")
    assert works.order == ["c1.a", "c1.c"]


async def test_who_is_cancelled_at_the_moment_of_being_let_in_gives_the_turn_on(works: Works):
    await works.add("c1.a", "c1.b", "c1.c")
    works._ends["c1.a"].set()
    while not works.tasks["c1.a"].done():  # noqa: ASYNC110 - c1.b is let in by then, and has not run
        await asyncio.sleep(0)
    assert works.order == ["c1.a"]
    works.tasks["c1.b"].cancel()
    await works.settle()
    assert works.order == ["c1.a", "c1.c"]


@pytest.mark.parametrize("others", [0, 1])
async def test_who_is_cancelled_and_has_not_run_since_is_passed_over(others: int) -> None:
    turns = CompanyTurns("database", at_once=1, waiting=3)
    assert turns.begin(1)
    waiting = [asyncio.create_task(turns.wait(1)) for _ in range(1 + others)]
    await Works.settle()
    waiting[0].cancel()
    turns.end(1)
    await Works.settle()
    assert waiting[0].cancelled()
    for each in waiting[1:]:
        assert each.done()
        each.result()
        turns.end(1)
    assert turns.begin(1), "its turn is not lost"


async def test_work_that_fails_ends_its_turn(works: Works):
    for _ in range(3):
        with pytest.raises(RuntimeError, match="planted"):
            async with works.turns.turn(1):
                raise RuntimeError("planted")
