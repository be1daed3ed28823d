"""A request that reads for longer than ``limits.reading_s`` is ended, and answered with that limit's name."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import Rig, open_rig

from own_platform import Ports, store_through
from terrazzo.api.kernel.reading_time import ReadingTime
from terrazzo.company_turns import CompanyTurns
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work
from terrazzo.ports.store import TimeSeriesStore
from waiting import until

TIMES = {"start_time": "2026-01-01 00:00:00", "end_time": "2026-02-01 00:00:00"}
PAGE = {"action": "get_grid_list", "terminal_id": "g1", "topic": ["r"], **TIMES}
SAID = "it took longer than 1 s (limits.reading_s), ask for less"


class SilentStore:
    """Never answers who asks for a page, and counts whose question ended."""

    def __init__(self, store: TimeSeriesStore) -> None:
        self._store = store
        self.ended = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def page(self, *_: Any, **__: Any) -> Any:
        try:
            await asyncio.Event().wait()
        finally:
            self.ended += 1


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    limits = {"reading_s": 1}
    async with open_rig(tmp_path, ports=Ports(open_store=store_through(SilentStore)), limits=limits) as opened:
        await opened.add_terminal("g1")
        yield opened


async def ask(rig: Rig) -> tuple[int, dict[str, Any]]:
    return await rig.post(json.dumps(PAGE).encode(), token=rig.tokens["viewer"])


async def overdue(rig: Rig) -> float:
    async with rig.http.get("/metrics") as response:
        text = await response.text()
    (line,) = (each for each in text.splitlines() if each.startswith("terrazzo_api_overdue_total "))
    return float(line.split()[1])


async def test_over_http_it_is_told_why(rig: Rig) -> None:
    status, answer = await ask(rig)
    assert (status, answer["code"], answer["info"]) == (503, 500, SAID)
    assert answer["reason"]["code"] == "reading_took_too_long"
    assert answer["reason"]["parameters"] == {"limit": "1 s (limits.reading_s)"}
    assert rig.platform.store.ended == 1  # type: ignore[attr-defined]
    assert await overdue(rig) == 1
    assert (await rig.ask("ping", "viewer"))["code"] == 200


async def test_those_behind_it_on_a_connection_are_answered_then(rig: Rig) -> None:
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    async with rig.http.ws_connect("/apiproxy/api", headers=headers) as socket:
        await socket.send_json({**PAGE, "actionid": "long"})
        await socket.send_json({"action": "ping", "actionid": "short"})
        answers = [await socket.receive_json(timeout=20) for _ in range(2)]
        assert [(each["actionid"], each["code"]) for each in answers] == [("long", 500), ("short", 200)]


async def test_a_path_of_a_component_has_the_same_limit(rig: Rig) -> None:
    path = "/grid/api/v1/grid/getListByDuration"
    status, answer = await rig.get(path, "viewer", terminal_id="g1", topic="r", **TIMES)
    assert (status, answer["info"]) == (503, SAID)


async def test_what_changes_something_is_never_ended(rig: Rig) -> None:
    database, gate, entered = rig.platform.metadata.database, asyncio.Event(), asyncio.Event()
    config = await rig.add_config()

    async def hold() -> None:
        async with database.writing():
            entered.set()
            await gate.wait()

    holding = asyncio.create_task(hold())
    await entered.wait()
    waiting = asyncio.create_task(rig.ask("register_terminal", uid="late", config_id=config))
    assert (await ask(rig))[0] == 503  # which began after it
    assert not waiting.done()
    gate.set()
    await holding
    assert (await waiting)["code"] == 200


class TestLooks:
    """By a clock of the test's own."""

    @staticmethod
    async def _read(work: Work) -> str:
        begun = at_work.begin(work)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "overdue" if work.is_overdue else "ended"
        finally:
            at_work.end(begun)
        return "answered"

    async def test_one_that_began_later_has_its_time(self) -> None:
        now_s = 0.0
        looks = ReadingTime(60, clock=lambda: now_s)
        first = asyncio.create_task(self._read(Work("first", may_end=True)))
        change = asyncio.create_task(self._read(Work("change")))
        await until(lambda: len(at_work.under_way()) >= 2)
        await looks.look()
        second = asyncio.create_task(self._read(Work("second", may_end=True)))
        await asyncio.sleep(0)
        now_s = 59.0
        await looks.look()
        assert not first.cancelling()
        now_s = 60.0
        await looks.look()
        assert await first == "overdue"
        assert not second.cancelling()
        assert not change.cancelling()
        now_s = 118.9
        await looks.look()
        assert not second.cancelling()
        now_s = 119.0
        await looks.look()
        assert await second == "overdue"
        change.cancel()
        assert await change == "ended"

    async def test_what_a_request_does_on_the_way_does_not_begin_its_time_anew(self) -> None:
        now_s = 0.0
        looks = ReadingTime(10, clock=lambda: now_s)
        request = Work("request", may_end=True)

        async def within() -> str:
            begun = at_work.begin(request)
            try:
                return await self._read(Work("a part of it"))
            except asyncio.CancelledError:
                return "not ended by the part"
            finally:
                at_work.end(begun)

        task = asyncio.create_task(within())
        await until(lambda: request in at_work.under_way())
        await looks.look()
        now_s = 10.0
        await looks.look()
        await task
        assert request.is_overdue

    async def test_the_wait_for_the_companys_turn_does_not_count(self) -> None:
        now, turns = [0.0], CompanyTurns("exports", at_once=4, of_company=1, waiting=4)
        looks = ReadingTime(60, clock=lambda: now[0])

        async def look(*times_s: float) -> None:
            for now[0] in times_s:
                await looks.look()

        async def export(work: Work) -> str:
            begun = at_work.begin(work)
            try:
                async with turns.turn(7):
                    return await self._read(Work("a piece of it"))
            except asyncio.CancelledError:
                return "ended while it waited"
            finally:
                at_work.end(begun)

        works = [Work(name, 7, may_end=True) for name in ("first", "second", "third")]
        first, second, third = (asyncio.create_task(export(work)) for work in works)
        await until(lambda: works[2].waits)
        await look(0.0, 59.0, 60.0)
        await first
        await until(lambda: not works[1].waits)
        await look(61.0, 100.0, 119.9)
        assert [work.is_overdue for work in works] == [True, False, False]
        await look(120.0)
        await second
        await until(lambda: not works[2].waits)
        assert [work.is_overdue for work in works] == [True, True, False], "it has worked for no second yet"
        third.cancel()
        await third
