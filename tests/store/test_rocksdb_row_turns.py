"""Long reads of rows: one of a company at a time, whatever others and its short questions do."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from open_stores import open_rocks
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo_adapters.rocksdb import reads
from waiting import until


class Gate:
    """Holds scans on their threads, and counts how many there are."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open, self.inside, self.begun = threading.Event(), 0, 0
        scan, lock = reads.scan, threading.Lock()

        def held(*given: Any, **more: Any) -> Any:
            with lock:
                self.inside += 1
                self.begun += 1
            try:
                assert self.open.wait(30)
                return scan(*given, **more)
            finally:
                with lock:
                    self.inside -= 1

        monkeypatch.setattr(reads, "scan", held)


async def as_company(number: int, work: Awaitable[Any]) -> Any:
    begun = at_work.begin(Work("export", number))
    try:
        return await work
    finally:
        at_work.end(begun)


async def rows(store: Any) -> list[Any]:
    return [piece async for piece in store.scan(["g/t/r"], 0, 1)]


async def test_one_of_a_company_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, store = Gate(monkeypatch), await open_rocks(tmp_path)
    try:
        first = [asyncio.create_task(as_company(1, rows(store))) for _ in range(4)]
        await until(lambda: gate.inside == 1)
        assert await as_company(1, store.latest(["g/t/r"], 1)) == []  # beside it: a short question
        assert gate.begun == 1
        second = asyncio.create_task(as_company(2, rows(store)))
        await until(lambda: gate.inside == 2)  # another company's
        first[1].cancel()  # who waits may go
        gate.open.set()
        assert await second == []
        assert [await each for each in (first[0], *first[2:])] == [[], [], []]
        assert gate.begun == 4
        del first, second
        gc.collect()  # the one that was cancelled is in a cycle
        assert not store._row_turns
    finally:
        gate.open.set()
        await store.close()


async def test_who_is_behind_another_long_read_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, store = Gate(monkeypatch), await open_rocks(tmp_path)
    works = [Work("export", 1), Work("export", 1)]

    async def read(work: Work) -> None:
        at_work.begin(work)
        await rows(store)

    try:
        reading = [asyncio.create_task(read(work)) for work in works]
        await until(lambda: gate.inside == 1)
        assert [work.waits is not None for work in works] == [False, True]
        gate.open.set()
        await asyncio.gather(*reading)
        assert [work.waits for work in works] == [None, None]
    finally:
        gate.open.set()
        await store.close()
