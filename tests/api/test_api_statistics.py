"""Results of statistics, calculations and balances as the gateway and the component show them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig

from own_platform import Ports
from terrazzo.domain.actor import SYSTEM
from terrazzo.ports.store import Record
from terrazzo.times import parse_time

pytestmark = pytest.mark.asyncio(loop_scope="module")

HOUR_US = 3_600_000_000
BEGIN_US = parse_time("2026-03-01 00:00:00+01:00")
NOW_US = parse_time("2026-03-02 02:30:00+01:00")
LIST = "/stats/api/v1/statos/getList"
SCRIPT = [["N", "count", "A"], ["LAST", "last", "A"]]


class Filled:
    """An object with a record each half hour until now, and what is running on it."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    async def fill(self) -> None:
        call = self.rig.call
        self.object_id = str((await self.rig.services.entities.objects.create(SYSTEM, {"name": "o"}))["id"])
        count = (NOW_US - BEGIN_US) // (HOUR_US // 2)
        bodies = [msgspec.msgpack.encode({"A": n}) for n in range(count)]
        records = [Record(f"m/{self.object_id}", BEGIN_US + n * HOUR_US // 2, body) for n, body in enumerate(bodies)]
        await self.rig.services.store.append(records)
        given = {"name": "s", "object_list": [self.object_id]}
        self.script = await call("create_statistics", script=SCRIPT, **given)
        self.formula = await call("create_calculate", script=[["DOUBLE", "N * 2"]], **given)
        for kind, made in (("statistics", self.script), ("calculate", self.formula)):
            await call(f"start_{kind}", uid=made["uid"])
        await self.rig.services.analysis.work()

    async def statos(self, suffix: str = "getList", **query: str) -> Any:
        status, answer = await self.rig.get(f"/stats/api/v1/statos/{suffix}", **query)
        assert (status, answer["code"]) == (200, 200), answer
        return answer["result"]


@asynccontextmanager
async def open_filled(folder: Path) -> AsyncIterator[Filled]:
    async with open_rig(folder, ports=Ports(clock=lambda: NOW_US), time={"zone": "Europe/Berlin"}) as rig:
        made = Filled(rig)
        await made.fill()
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def filled(each_database_of_module: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Filled]:
    """For tests that only read."""
    async with open_filled(tmp_path_factory.mktemp("statistics")) as opened:
        yield opened


def values(records: list[dict[str, Any]]) -> dict[str, str]:
    return {record["var_name"]: record["data"] for record in records}


async def test_the_latest_results_are_those_of_the_last_hour(filled: Filled) -> None:
    found = (await filled.rig.call("get_last_statistics", script_uid=filled.script["uid"]))["data"]
    assert values(found) == {"N": "2", "LAST": "51"}
    assert found[0] | {"id": 0} == {
        "id": 0,
        "script_uid": filled.script["uid"],
        "object_id": filled.object_id,
        "description": "hour 2026-03-02 01:00",
        "data": "2",
        "var_name": "N",
        "start_time": "2026-03-02T01:00:00+01:00",
        "end_time": "2026-03-02T02:00:00+01:00",
        "created": "2026-03-02T02:30:00+01:00",
        "is_available": 1,
    }


@pytest.mark.parametrize(
    ("kind", "start", "end", "count", "last"),
    [
        (2, "2026-03-01T00:00:00+01:00", "2026-03-02T00:00:00+01:00", "48", "47"),
        (5, "2026-03-02T00:00:00+01:00", "2026-03-02T02:30:00+01:00", "5", "52"),
        (6, "2026-03-01T00:00:00+01:00", "2026-03-02T02:30:00+01:00", "53", "52"),
        (7, "2026-01-01T00:00:00+01:00", "2026-03-02T02:30:00+01:00", "53", "52"),
        (8, "2026-03-01T00:00:00+01:00", "2026-03-02T02:30:00+01:00", "53", "52"),
    ],
)
async def test_each_type_over_both_apis(filled: Filled, kind: int, start: str, end: str, count: str, last: str) -> None:
    named = {"script_uid": filled.script["uid"], "object_id": filled.object_id, "type": kind}
    found = (await filled.rig.call("get_last_statistics", **named))["data"]
    assert values(found) == {"N": count, "LAST": last}
    assert (found[0]["start_time"], found[0]["end_time"]) == (start, end)
    doubled = await filled.rig.call("get_last_calculate", script_uid=filled.formula["uid"], type=kind)
    assert values(doubled["data"]) == {"DOUBLE": str(2 * int(count))}
    project = {"project_id": str(filled.script["id"]), "object_id": filled.object_id, "type": str(kind)}
    item = await filled.statos("getLastItem", **project)
    assert json.loads(item["data"]) == [
        {"var_name": "N", "value": int(count)},
        {"var_name": "LAST", "value": int(last)},
    ]
    assert (item["start"], item["end"], item["flag"]) == (spaced(start), spaced(end), kind)
    listed = await filled.statos(type=str(kind))
    assert listed["data"] == [item]


def spaced(iso: str) -> str:
    return iso[:19].replace("T", " ")


async def test_lists_take_conditions_and_an_order(filled: Filled) -> None:
    async def listed(**more: Any) -> list[Any]:
        page = await filled.rig.call("get_statistics_list", page_size=1000, **more)
        assert page["total_records"] == len(page["data"])
        return [(record["var_name"], record["start_time"], record["data"]) for record in page["data"]]

    everything = await listed()
    assert len(everything) == 2 * (26 + 1)
    assert await listed(type=2) == [
        ("LAST", "2026-03-01T00:00:00+01:00", "47"),
        ("N", "2026-03-01T00:00:00+01:00", "48"),
    ]
    some = {"where_and": [["var_name", "=", "LAST"], ["start_time", "<", "2026-03-01 02:00:00"], ["type", "=", 1]]}
    assert await listed(**some, order_by=["start_time", "asc"]) == [
        ("LAST", "2026-03-01T00:00:00+01:00", "1"),
        ("LAST", "2026-03-01T01:00:00+01:00", "3"),
    ]
    answer = await filled.rig.ask("get_statistics_list", where_and=[["summary", "=", 1]])
    assert (answer["code"], answer["info"].split(";")[0]) == (10401, "where_and: condition 1: summary: no such field")


async def test_running_lists_are_paged_by_variable(filled: Filled) -> None:
    pages = [await filled.rig.call("get_statistics_list", type=8, page_index=index, page_size=1) for index in (1, 2, 3)]
    assert [values(page["data"]) for page in pages] == [{"N": "53"}, {"LAST": "52"}, {}]
    assert {page["total_records"] for page in pages} == {2}


async def test_the_components_list_by_get_post_and_form(filled: Filled) -> None:
    rig = filled.rig
    headers = {"Authorization": f"Bearer {rig.tokens['admin']}"}
    sent = {"where_and": json.dumps([["project_id", "=", filled.script["uid"]]]), "order_by": '["TIME", "asc"]'}
    sent |= {"page_size": "3", "type": "1"}
    wanted = await filled.statos(**{**sent, "order_by": '["time", "ASC"]'})
    assert [record["id"] for record in wanted["data"]] == [f"2026-03-01 0{hour}:00:00" for hour in range(3)]
    assert wanted["total_records"] == 26
    for more in ({"json": {**sent, "page_size": 3, "type": 1}}, {"data": sent}):
        async with rig.http.post(LIST, headers=headers, **more) as response:
            assert json.loads(await response.read())["result"] == wanted


async def test_joint_says_how_conditions_are_connected(filled: Filled) -> None:
    sent = {
        "where_and": '[["start", "=", "2026-03-01 00:00:00"]]',
        "where_or": '[["id", "=", "2026-03-01 05:00:00"], ["start", "=", "2026-03-01 06:00:00"]]',
    }
    assert (await filled.statos(**sent))["total_records"] == 0
    assert (await filled.statos(**sent, joint="or"))["total_records"] == 3


async def test_only_time_orders(filled: Filled) -> None:
    status, answer = await filled.rig.get(LIST, order_by='["data", "asc"]')
    assert (status, answer["code"], answer["info"]) == (200, 500, "order_by: only time, got 'data'")


async def test_an_item_by_its_period(filled: Filled) -> None:
    named = {"project_id": filled.script["uid"], "object_id": filled.object_id}
    item = await filled.statos("getItem", start="2026-03-01T00:00:00Z", end="2026-03-01T01:00:00Z", **named)
    assert (item["start"], item["id"], item["flag"]) == ("2026-03-01 01:00:00", "2026-03-01 01:00:00", 1)
    _, answer = await filled.rig.get(
        "/stats/api/v1/statos/getItem", start="2026-03-01 00:00:00", end="2026-03-01 00:30:00", **named
    )
    assert answer["code"] == 500


@pytest.mark.usefixtures("each_database_of_module")
async def test_periods_are_computed_again_on_demand(tmp_path: Path) -> None:
    async with open_filled(tmp_path) as filled:
        late = Record(f"m/{filled.object_id}", BEGIN_US, msgspec.msgpack.encode({"A": 9}))
        await filled.rig.services.store.append([late])  # behind the back of the ingest
        request = {"script_uid": filled.script["uid"], "start_time": "2026-03-01 00:00:00"}
        await filled.rig.call("recompute_statistics", end_time="2026-03-01 00:00:01", **request)
        asked = {"script_uid": filled.script["uid"]}
        (left,) = (await filled.rig.call("get_recompute_progress", "viewer", **asked))["objects"]
        assert (left["object_id"], left["ranges"], left["seconds"]) == (filled.object_id, 1, 1.0)
        assert left["start_time"][:10] == "2026-03-01"
        await filled.rig.services.analysis.work()
        assert await filled.rig.call("get_recompute_progress", **asked) == {"objects": []}
        day = await filled.rig.call("get_last_statistics", script_uid=filled.script["uid"], type=2)
        assert values(day["data"])["N"] == "49"
        (told, *_) = (await filled.rig.call("get_audit_list", entity="statistics"))["data"]
        assert (told["action"], told["uid"]) == ("recompute", filled.script["uid"])
        answer = await filled.rig.ask("recompute_statistics", end_time="2026-02-01 00:00:00", **request)
        assert (answer["code"], answer["info"]) == (10401, "start_time: is after end_time")


async def test_an_expression_that_is_none_is_refused(filled: Filled) -> None:
    answer = await filled.rig.ask("create_calculate", name="c", object_list=[filled.object_id], script=[["X", "1 +"]])
    assert answer["code"] == 10401
    assert answer["info"].startswith("script: row 1, column 2: ")
