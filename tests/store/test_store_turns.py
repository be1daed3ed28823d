"""Queries of a store: one company's long ones, and its many, leave room for the others'."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from open_stores import open_rocks, supervisor
from terrazzo.errors import Throttled
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.store import RecordsTooLarge
from terrazzo_adapters.influxdb import InfluxSettings, InfluxStore, queries
from terrazzo_adapters.keyvalue.readers import Readers
from waiting import until


async def test_a_query_waits_until_a_thread_begins_with_it(tmp_path: Path) -> None:
    store, gate, begun = await open_rocks(tmp_path), threading.Event(), []
    works = [Work("page", 1) for _ in range(3)]

    async def ask(work: Work) -> None:
        at_work.begin(work)

        def long(view: object) -> None:
            begun.append(work)
            gate.wait(30)

        await store._read(long)

    asking = [asyncio.create_task(ask(work)) for work in works]
    try:
        await until(lambda: len(begun) == 2)
        assert [work.waits is not None for work in works] == [False, False, True]
        gate.set()
        await asyncio.gather(*asking)
        assert [work.waits for work in works] == [None] * 3
    finally:
        gate.set()
        await store.close()


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


async def test_queries_that_wait_need_no_event_loop_between_them() -> None:
    readers, done = Readers("read", threads=3, of_company=2, waiting=100), threading.Event()
    found: list[int] = []

    def last() -> None:
        found.append(50)
        done.set()

    answers = [readers.ask(1, partial(found.append, number)) for number in range(50)]
    answers.append(readers.ask(1, last))
    assert done.wait(20), "as this is the loop, nothing else happens in it meanwhile"
    await asyncio.gather(*answers)
    assert sorted(found) == [*range(51)]
    readers.close()


async def test_who_asks_again_at_once_finds_the_thread_free(monkeypatch: pytest.MonkeyPatch) -> None:
    readers, loop = Readers("read", threads=3, of_company=2, waiting=100), asyncio.get_running_loop()
    tell, seen = loop.call_soon_threadsafe, []

    def told(*what: Any) -> asyncio.Handle:
        seen.append((len(readers._working), len(readers._idle)))
        return tell(*what)

    monkeypatch.setattr(loop, "call_soon_threadsafe", told)
    served = {await readers.ask(1, threading.get_ident) for _ in range(5)}
    assert seen == [(0, 1)] * 5
    assert len(served) == 1
    await asyncio.to_thread(readers.close)


async def test_companies_are_read_for_in_turn() -> None:
    readers, gate = Readers("read", threads=1, of_company=1, waiting=100), threading.Event()
    found: list[int] = []
    answers = [readers.ask(9, lambda: gate.wait(30))]
    answers += [readers.ask(company_id, partial(found.append, company_id)) for company_id in (1, 1, 1, 2, 2, 3)]
    gate.set()
    await asyncio.gather(*answers)
    assert found == [1, 2, 3, 1, 2, 1]
    readers.close()


async def test_a_query_that_fails_or_is_given_up_keeps_no_other_from_its_answer() -> None:
    readers, gate = Readers("read", threads=1, of_company=1, waiting=3), threading.Event()
    found: list[str] = []
    first = readers.ask(1, lambda: gate.wait(30))
    given_up = readers.ask(1, lambda: found.append("given up"))
    failing, last = readers.ask(1, lambda: 1 // 0), readers.ask(1, lambda: found.append("last"))
    await until(lambda: len(readers._waiting[1]) == 3)  # the thread has the first
    with pytest.raises(Throttled, match="3 of your company wait"):
        readers.ask(1, lambda: None)
    other = readers.ask(2, lambda: "other")
    given_up.cancel()
    gate.set()
    assert await first
    with pytest.raises(ZeroDivisionError):
        await failing
    await last
    assert (await other, found) == ("other", ["last"])
    readers.close()
    assert not readers._waiting
    assert not readers._working


async def test_what_waits_when_the_store_closes_is_answered() -> None:
    readers, gate = Readers("read", threads=3, of_company=2, waiting=100), threading.Event()
    answers = [readers.ask(1, lambda: gate.wait(30)) for _ in range(20)]
    closing = asyncio.create_task(asyncio.to_thread(readers.close))
    await asyncio.sleep(0)
    gate.set()
    await closing
    assert all(await asyncio.gather(*answers))


async def test_many_questions_of_a_company_to_influxdb_leave_room_for_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await InfluxStore.open(InfluxSettings(url="http://127.0.0.1:9"), spool=tmp_path, tasks=supervisor())
    monkeypatch.setattr(store._writer, "settle", settled)
    answered, begun = asyncio.Event(), []

    async def ask(company_id: int, *, computes: bool = False) -> int:
        at_work.begin(Work("page", company_id))

        async def question() -> int:
            begun.append(company_id)
            if company_id == 1:
                await answered.wait()
            return company_id

        return await (store._compute(lambda: company_id) if computes else store._ask(question()))

    of_one = [asyncio.create_task(ask(1)) for _ in range(50)]
    try:
        await until(lambda: len(begun) == 6)
        async with asyncio.timeout(20):
            for number in range(20):
                assert await asyncio.create_task(ask(2, computes=number % 2 == 1)) == 2
        assert begun.count(1) == 6, "six at a time"
    finally:
        answered.set()
        assert await asyncio.gather(*of_one) == [1] * 50
        await store.close()


async def settled() -> None:
    """The server is there."""


async def test_names_by_the_hundred_are_a_few_requests_at_a_time() -> None:
    asked: list[int] = []
    under_way = 0

    class Server:
        async def query_each(self, statements: list[str]) -> list[list[object]]:
            nonlocal under_way
            under_way += 1
            assert under_way == 1
            asked.append(len(statements))
            await asyncio.sleep(0)
            under_way -= 1
            return [[] for _ in statements]

        async def query(self, statement: str) -> list[object]:
            assert not asked, "the newest records come first"
            return []

    names = [f"K{number}" for number in range(100)]
    assert await queries.latest_each(Server(), "m/1", names, queries.LATEST_US) == {}  # type: ignore[arg-type]
    assert sum(asked) >= 100
    assert max(asked) <= 40


async def test_a_query_that_ends_with_stop_iteration_is_answered() -> None:
    """A future takes no such error: whoever asked would wait for ever, and those behind with them."""
    readers = Readers("read", threads=1, of_company=1, waiting=100)
    empty: Iterator[int] = iter(())
    asked = [readers.ask(1, lambda: next(empty)), readers.ask(1, lambda: 7)]
    async with asyncio.timeout(20):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await asked[0]
        assert await asked[1] == 7
    await asyncio.to_thread(readers.close)


async def test_what_a_query_had_read_goes_with_its_error(tmp_path: Path) -> None:
    """Pages that were refused for their size stayed, with 16 MiB each, until the garbage collector came by."""
    store, read = await open_rocks(tmp_path), weakref.WeakSet[Any]()

    def too_large(view: object) -> None:
        records = frozenset(range(3))  # in place of a list, which cannot be watched
        read.add(records)
        if records:
            raise RecordsTooLarge

    gc.disable()
    try:
        for _ in range(3):
            with pytest.raises(RecordsTooLarge) as caught:
                await store._read(too_large)
            assert caught.traceback[-1].name == "too_large", "where it was raised is still told"
            del caught
        assert not read
    finally:
        gc.enable()
        await store.close()
