"""Of all who compute on the loop one goes on in each of its turns; what others do comes in between."""

from __future__ import annotations

import asyncio
from time import perf_counter

from terrazzo.loop_pauses import LoopPauses, next_turn
from terrazzo.ports import at_work

JOBS = 8


async def _turns_of_loop(seen: list[int]) -> None:
    """Counts the turns of the loop."""
    while True:
        seen[0] += 1
        await asyncio.sleep(0)


async def test_one_goes_on_in_each_turn() -> None:
    turn, went_on = [0], []

    async def job() -> None:
        for _ in range(20):
            await next_turn()
            went_on.append(turn[0])

    counting = asyncio.create_task(_turns_of_loop(turn))
    await asyncio.gather(*(job() for _ in range(JOBS)))
    counting.cancel()
    assert len(went_on) == 20 * JOBS
    assert len(set(went_on)) == len(went_on)  # no two in one turn


async def test_each_goes_on_in_its_turn() -> None:
    order: list[int] = []

    async def job(number: int) -> None:
        for _ in range(5):
            await next_turn()
            order.append(number)

    await asyncio.gather(*(job(number) for number in range(JOBS)))
    assert order == list(range(JOBS)) * 5


async def test_companies_go_on_in_turn_however_many_tasks_one_has() -> None:
    order: list[int] = []

    async def job(company_id: int) -> None:
        begun = at_work.begin(at_work.Work("compute", company_id))
        for _ in range(3):
            await next_turn()
            order.append(company_id)
        at_work.end(begun)

    await asyncio.gather(*(job(company_id) for company_id in [1] * 50 + [2]))
    assert [number for number, company_id in enumerate(order) if company_id == 2][-1] <= 6, order[:20]
    assert order.count(1) == 150


async def test_who_is_cancelled_while_waiting_keeps_nobody_from_it() -> None:
    done = []

    async def job(number: int) -> None:
        await next_turn()
        done.append(number)

    jobs = [asyncio.create_task(job(number)) for number in range(JOBS)]
    await asyncio.sleep(0)
    for task in jobs[::2]:
        task.cancel()
    await asyncio.gather(*jobs, return_exceptions=True)
    assert done == [1, 3, 5, 7]
    jobs = [asyncio.create_task(job(number)) for number in range(2)]
    await asyncio.sleep(0)
    for task in jobs:
        task.cancel()  # all of them: the next one begins anew
    await asyncio.gather(*jobs, return_exceptions=True)
    await asyncio.wait_for(job(9), 10)
    assert done[-1] == 9


async def test_what_needs_some_turns_waits_for_one_stretch_in_each() -> None:
    """A report needs five turns from its arrival to its acknowledgement: with eight jobs it was forty stretches."""

    async def compute() -> None:
        pauses = LoopPauses()
        while True:
            until_s = perf_counter() + 0.001
            while perf_counter() < until_s:
                pass
            stretches[0] += 1
            await pauses.pause()

    stretches = [0]
    jobs = [asyncio.create_task(compute()) for _ in range(JOBS)]
    await asyncio.sleep(0.1)
    stretches[0] = 0
    for _ in range(5):
        await asyncio.sleep(0)
    for task in jobs:
        task.cancel()
    assert stretches[0] <= 5 * 8  # of 1 ms each, six of which are a stretch; it was 5 * 8 * 6
