"""The thread on which requests compute: one piece of work at a time, companies in turn."""

from __future__ import annotations

import asyncio
import threading

import pytest

from terrazzo.compute_thread import ComputeThread
from terrazzo.errors import Throttled
from terrazzo.ports import at_work


async def run_for(company_id: int, thread: ComputeThread, order: list[int]) -> None:
    begun = at_work.begin(at_work.Work("compute", company_id))
    try:
        await thread.run(order.append, company_id)
    finally:
        at_work.end(begun)


async def test_companies_compute_in_turn_however_many_pieces_one_has() -> None:
    thread, order, go_on = ComputeThread(), [], threading.Event()
    held = asyncio.create_task(thread.run(go_on.wait, 30))
    await asyncio.sleep(0)
    pieces = [asyncio.create_task(run_for(company_id, thread, order)) for company_id in [1] * 50 + [2]]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(held, *pieces)
    assert order.index(2) <= 1, order
    assert len(order) == 51


async def test_one_at_a_time() -> None:
    thread, now, most = ComputeThread(), [0], [0]

    def work() -> None:
        now[0] += 1
        most[0] = max(most[0], now[0])
        now[0] -= 1

    await asyncio.gather(*(thread.run(work) for _ in range(50)))
    assert most == [1]


async def test_too_many_pieces_of_a_company_are_refused_and_anothers_not() -> None:
    thread, order, go_on = ComputeThread(), [], threading.Event()
    held = asyncio.create_task(thread.run(go_on.wait, 30))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(run_for(1, thread, order)) for _ in range(1_000)]
    await asyncio.sleep(0)
    with pytest.raises(Throttled, match="computing"):
        await run_for(1, thread, order)
    other = asyncio.create_task(run_for(2, thread, order))
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(held, other, *waiting)
    assert order.index(2) <= 1
    assert thread.turns.refused == 1
