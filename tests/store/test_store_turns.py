"""Queries of the embedded store: one company's long ones leave a thread to the others."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

from open_stores import open_rocks
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from waiting import until


async def test_long_queries_of_a_company_leave_a_thread_to_the_others(tmp_path: Path) -> None:
    store, gate, begun = await open_rocks(tmp_path), threading.Event(), []

    async def ask(company_id: int) -> int:
        at_work.begin(Work("page", company_id))

        def long(view: object) -> int:
            begun.append(company_id)
            gate.wait(30)
            return company_id

        return await store._read(long)

    long = [asyncio.create_task(ask(1)) for _ in range(20)]
    try:
        await until(lambda: len(begun) == 2)

        async def other() -> list[str]:
            at_work.begin(Work("series", 2))
            return await store.series("g/")

        async with asyncio.timeout(20):
            for _ in range(5):
                assert await asyncio.create_task(other()) == []
        assert begun == [1, 1], "two at a time"
    finally:
        gate.set()
        assert await asyncio.gather(*long) == [1] * 20
        await store.close()
