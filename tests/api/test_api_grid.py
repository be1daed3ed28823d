"""The grid queries and the forms of their parameters."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig

from terrazzo.ports.store import Record
from terrazzo.times import format_spaced, parse_time

START = parse_time("2026-03-01T00:00:00Z")
SECOND = 1_000_000
ALWAYS = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}


pytestmark = pytest.mark.asyncio(loop_scope="module")


def at(seconds: float) -> str:
    return format_spaced(START + int(seconds * SECOND))


async def fill(rig: Rig) -> None:
    """t1 with records of three channels at 0 s to 5 s, t2 with one."""
    await rig.add_terminal("t1")
    await rig.add_terminal("t2")
    rows = [("r", 0), ("a", 1), ("r/pump/1", 2), ("r", 3), ("r/pump/2", 4), ("r", 5)]
    records = [Record(f"g/t1/{channel}", START + s * SECOND, b'{"n": %d}' % s) for channel, s in rows]
    await rig.services.store.append([*records, Record("g/t2/r", START, b'{"other": 1}')])


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    """One platform: tests here only read what ``fill`` makes, or have terminals of their own."""
    async with open_rig(tmp_path_factory.mktemp("grid")) as opened:
        await fill(opened)
        yield opened


async def numbers(rig: Rig, action: str, **fields: Any) -> list[int]:
    result = await rig.call(action, terminal_id="t1", **fields)
    return [record["payload"]["n"] for record in result["data"]]


async def test_the_latest_record(rig: Rig) -> None:
    assert await rig.call("get_last_grid", "viewer", terminal_id="t1", topic=["r"]) == {
        "data": [{"payload": {"n": 5}, "time": "2026-03-01 00:00:05", "topic": "g/t1/r"}]
    }
    assert await rig.call("get_last_grid", terminal_id="t1", topic=["v"]) == {"data": []}


@pytest.mark.parametrize(
    ("topic", "expected"),
    [
        (None, [5, 4, 3, 2, 1, 0]),
        ([], [5, 4, 3, 2, 1, 0]),
        ("", [5, 4, 3, 2, 1, 0]),
        ("[]", [5, 4, 3, 2, 1, 0]),
        ("#", [5, 4, 3, 2, 1, 0]),
        ("g/t1/#", [5, 4, 3, 2, 1, 0]),
        ("g/#", [5, 4, 3, 2, 1, 0]),
        ("r", [5, 3, 0]),
        (["r"], [5, 3, 0]),
        ('["r"]', [5, 3, 0]),
        ("g/t1/r", [5, 3, 0]),
        (["r", "a"], [5, 3, 1, 0]),
        (["r", "g/t1/r", "r"], [5, 3, 0]),
        ("r/#", [5, 4, 3, 2, 0]),
        ("r/+/1", [2]),
        ("+", [5, 3, 1, 0]),
        ("g/+/a", [1]),
        (["a", "r/pump/+"], [4, 2, 1]),
        ("g/t2/r", []),
        ("g/t2/#", []),
        ("../t2/r", []),
        ("p", []),
    ],
)
async def test_topics_select(rig: Rig, topic: Any, expected: list[int]) -> None:
    fields = {} if topic is None else {"topic": topic}
    assert await numbers(rig, "get_last_grid_list", items=1000, **fields) == expected
    assert await numbers(rig, "get_grid_list", **ALWAYS, **fields) == expected


async def test_the_record_after_a_time(rig: Rig) -> None:
    assert await numbers(rig, "get_grid_item", time=at(0)) == [1], "strictly later"
    assert await numbers(rig, "get_grid_item", time=at(-1)) == [0]
    assert await numbers(rig, "get_grid_item", time=at(0), topic="r") == [3]
    assert await numbers(rig, "get_grid_item", time=at(5)) == []


async def test_the_newest_records(rig: Rig) -> None:
    result = await rig.call("get_last_grid_list", terminal_id="t1", items=2)
    assert [record["payload"]["n"] for record in result["data"]] == [5, 4]
    assert result["items"] == 2
    for items in (0, -1, 1001, "2", None):
        assert (await rig.ask("get_last_grid_list", terminal_id="t1", items=items))["code"] == 10401


async def test_a_range_has_both_ends_and_exact_totals(rig: Rig) -> None:
    page = await rig.call("get_grid_list", terminal_id="t1", start_time=at(1), end_time=at(4), page_size=3)
    assert [record["payload"]["n"] for record in page.pop("data")] == [4, 3, 2]
    assert page == {"page_index": 1, "page_size": 3, "total_pages": 2, "total_records": 4}
    past = await rig.call("get_grid_list", terminal_id="t1", **ALWAYS, page_index=9, page_size=3)
    assert past == {"data": [], "page_index": 9, "page_size": 3, "total_pages": 2, "total_records": 6}
    far = await rig.call("get_grid_list", terminal_id="t1", **ALWAYS, page_index=2**31 - 1, page_size=1000)
    assert far["data"] == []
    none = await rig.call("get_grid_list", terminal_id="t1", start_time=at(60), end_time=at(61))
    assert none == {"data": [], "page_index": 1, "page_size": 20, "total_pages": 0, "total_records": 0}
    widest = {"start_time": "0001-01-01T00:00:00Z", "end_time": "9999-12-31T23:59:59Z"}
    assert (await rig.call("get_grid_list", terminal_id="t1", **widest))["total_records"] == 6


async def test_a_range_that_ends_before_it_starts_is_refused(rig: Rig) -> None:
    answer = await rig.ask("get_grid_list", terminal_id="t1", start_time=at(1), end_time=at(0))
    assert (answer["code"], answer["info"]) == (10401, "start_time: is after end_time")
    assert (await rig.call("get_grid_list", terminal_id="t1", start_time=at(60), end_time=at(60)))["data"] == []


async def test_times_are_in_the_zone_unless_they_say_otherwise(tmp_path: Path) -> None:
    async with open_rig(tmp_path, time={"zone": "Asia/Shanghai"}) as rig:
        await fill(rig)
        assert (await rig.call("get_last_grid", terminal_id="t1"))["data"][0]["time"] == "2026-03-01 08:00:05"
        for time in ("2026-03-01 08:00:03", "2026-03-01T00:00:03Z", "2026-02-28T19:00:03-05:00"):
            assert await numbers(rig, "get_grid_item", time=time) == [4], time
        status, answer = await rig.get("/grid/api/v1/grid/getItemByTime", terminal_id="t1", time="2026-03-01T00:00:03Z")
        assert status == 200
        assert answer["result"][0]["time"] == "2026-03-01 08:00:04"


async def test_payloads_go_out_as_they_came_in(rig: Rig) -> None:
    await rig.add_terminal("t3")
    json_body = '{"u": "\\u00fc", "ü": 1.50, "n": {"x": null},\n "big": 9007199254740993, "t": true}'.encode()
    values = {"a": 1, "b": -1.5, "c": "ü", "d": None, "e": True, "f": {"g": 2**63 - 1}}
    bodies = [json_body, msgspec.msgpack.encode(values), msgspec.msgpack.encode({str(n): n for n in range(20)}), b"{}"]
    await rig.services.store.append([Record("g/t3/r", START + n, body) for n, body in enumerate(bodies)])
    body = b'{"action": "get_last_grid_list", "terminal_id": "t3", "items": 4}'
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {rig.tokens['viewer']}"}
    async with rig.http.post("/apiproxy/api", data=body, headers=headers) as response:
        raw = await response.read()
    assert json_body.replace(b"\n", b" ") in raw
    assert b"\n" not in raw, "an answer is one line, which TCP needs"
    payloads = [record["payload"] for record in json.loads(raw)["result"]["data"]]
    assert payloads == [{}, {str(n): n for n in range(20)}, values, json.loads(json_body)]


async def test_components_have_their_own_shapes(rig: Rig) -> None:
    base = "/grid/api/v1/grid"

    async def result(path: str, **query: str) -> Any:
        status, answer = await rig.get(f"{base}/{path}", "viewer", terminal_id="t1", **query)
        assert (status, answer["code"], set(answer)) == (200, 200, {"code", "msg", "info", "result"})
        return answer["result"]

    def ns(records: Any) -> list[int]:
        return [record["payload"]["n"] for record in records]

    assert ns(await result("getLastItem")) == [5]
    assert ns(await result("getLastItem", topic="a")) == [1]
    assert ns(await result("getLastItem", topic='["a", "r/pump/+"]')) == [4]
    assert ns(await result("getItemByTime", time="2026-03-01T00:00:01Z", topic="")) == [2]
    listed = await result("getLastListByItem", items="2")
    assert set(listed) == {"data"}
    assert ns(listed["data"]) == [5, 4]
    span = {"start_time": "2026-03-01T00:00:01Z", "end_time": "2026-03-01T00:00:05Z"}
    page = await result("getListByDuration", **span, page_index="2", page_size="2")
    assert ns(page.pop("data")) == [3, 2]
    assert page == {"page_index": 2, "page_size": 2, "total_pages": 3, "total_records": 5}


async def test_components_have_their_own_codes(rig: Rig) -> None:
    base = "/grid/api/v1/grid"

    async def failure(path: str, who: str = "viewer", **query: str) -> tuple[int, str]:
        status, answer = await rig.get(f"{base}/{path}", who, **query)
        assert (status, answer["result"]) == (200, {})
        return answer["code"], answer["info"]

    assert await failure("getLastItem") == (500, "terminal_id: is required")
    assert await failure("getLastItem", terminal_id="") == (500, "terminal_id: is required")
    assert await failure("getLastItem", terminal_id="none") == (500, "terminal_id: no record 'none'")
    assert await failure("getLastItem", "stranger", terminal_id="t1") == (500, "terminal_id: no record 't1'")
    assert await failure("getLastListByItem", terminal_id="t1", items="two") == (500, "items: expected int, got str")
    assert (await failure("getItemByTime", terminal_id="t1", time="now"))[0] == 500
    assert (await failure("getListByDuration", terminal_id="t1", page_size="0"))[1] == (
        "start_time: is required; end_time: is required; page_size: expected int >= 1"
    )
    assert (await failure("getLastItem", "nobody", terminal_id="t1"))[0] == 10402


async def test_a_component_stands_where_it_is_configured(tmp_path: Path) -> None:
    async with open_rig(tmp_path, api={"grid_base": "/api/grid"}) as rig:
        await rig.add_terminal("t1")
        status, answer = await rig.get("/api/grid/api/v1/grid/getLastItem", terminal_id="t1")
        assert (status, answer["result"]) == (200, [])
        assert (await rig.get("/grid/api/v1/grid/getLastItem", terminal_id="t1"))[0] == 404


async def test_a_name_that_occurs_twice_is_a_list(rig: Rig) -> None:
    path = "/grid/api/v1/grid/getLastListByItem?terminal_id=t1&items=9&topic=a&topic=r&topic=r/pump/2"
    status, answer = await rig.get(path)
    assert status == 200
    assert [record["payload"]["n"] for record in answer["result"]["data"]] == [5, 4, 3, 1, 0]
