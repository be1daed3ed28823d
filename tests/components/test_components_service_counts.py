"""Service records by day and category."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from api.api_rig import Rig
from terrazzo.metadata.definitions.components import SERVICE

PATH = "/service/api/v1/statistics/serviceTypeQuantityByDay"
CATEGORIES = ["其他", "定期保养", "报警处理", "故障排除", "日常巡检", "设备维修"]
NONE = dict.fromkeys(CATEGORIES, 0)


async def add(rig: Rig, days_ago: int, category: str, who: str = "operator", object_id: str = "1") -> None:
    sent = {"name": "s", "object_id": object_id, "category": category}
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    async with rig.http.post("/service/api/v1/service/add", json=sent, headers=headers) as response:
        answer = await response.json()
        assert answer == {"code": 200, "msg": "success", "info": ""}
    at = datetime.now(UTC).replace(hour=0, minute=0, second=1) - timedelta(days=days_ago)
    services: Any = rig.services.entities.services
    async with services._database.writing() as connection:
        newest = sa.select(sa.func.max(SERVICE.table.c.id)).scalar_subquery()
        moved = SERVICE.table.update().where(SERVICE.table.c.id == newest)
        await connection.execute(moved.values(service_at=int(at.timestamp() * 1e6)))


def day(days_ago: int) -> str:
    return f"{datetime.now(UTC) - timedelta(days=days_ago):%m/%d}"


async def ask(rig: Rig, who: str = "viewer", **query: str) -> dict[str, Any]:
    status, answer = await rig.get(PATH, who, **query)
    assert status == 200
    return dict(answer)


@pytest.mark.usefixtures("each_database")
async def test_counts_by_day_and_category(rig: Rig) -> None:
    for who, name in (("admin", "mine"), ("admin", "second"), ("stranger", "theirs")):
        await rig.call("create_object", who, name=name, mapping_id="", terminal_list=[])
    for days_ago, category in (
        (0, "定期保养"),
        (0, "定期保养"),
        (1, "设备维修"),
        (1, "painting"),
        (2, "其他"),
        (14, "其他"),
    ):
        await add(rig, days_ago, category)
    await add(rig, 0, "报警处理", object_id="2")
    await add(rig, 0, "故障排除", "stranger", object_id="3")
    found = (await ask(rig))["result"]
    assert found["date"] == [day(ago) for ago in range(13, -1, -1)]
    assert list(found["data"]) == found["date"]
    assert list(found["data"][day(0)]) == CATEGORIES
    assert found["data"][day(0)] == {**NONE, "定期保养": 2, "报警处理": 1}
    assert found["data"][day(1)] == {**NONE, "设备维修": 1, "其他": 1}
    assert found["data"][day(2)] == {**NONE, "其他": 1}
    assert found["data"][day(3)] == NONE
    few = (await ask(rig, day="2", where_in='["object_id", "2,3"]'))["result"]
    assert few == {"date": [day(1), day(0)], "data": {day(1): NONE, day(0): {**NONE, "报警处理": 1}}}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("name", "value"), [("day", "0"), ("day", "-1"), ("day", "many"), ("where_in", "[1]")])
async def test_what_is_refused(shared_rig: Rig, name: str, value: str) -> None:
    answer = await ask(shared_rig, **{name: value})
    assert (answer["code"], answer["info"].split(":")[0]) == (500, name)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    ("option", "place"),
    [
        ({}, "option"),
        ([1], "option 1"),
        ([{"OptionID": 1}], "option 1: OptionName"),
        ([{"OptionID": 1, "OptionName": "a", "Else": 1}], "option 1: Else"),
        ([{"OptionID": 1, "OptionName": "a", "OptionValue": {}}], "option 1: OptionValue"),
        (
            [{"OptionID": 1, "OptionName": "a", "OptionValue": [{"OptionValueID": 1, "OptionValueName": "b"}, {}]}],
            "option 1: OptionValue 2: OptionValueID",
        ),
    ],
)
async def test_the_structure_of_options_is_checked(shared_rig: Rig, option: Any, place: str) -> None:
    headers = {"Authorization": f"Bearer {shared_rig.tokens['admin']}"}
    sent = {"name": "p", "option": option}
    async with shared_rig.http.post("/offline/api/v1/collect/add", json=sent, headers=headers) as response:
        answer = await response.json()
    assert answer["code"] == 500
    assert answer["info"].startswith(f"option: {place}: "), answer
