"""The dashboards on an object, by category: the newest of a category first, of one's company alone."""

from __future__ import annotations

from typing import Any

import pytest
from api_rig import Rig

BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}

pytestmark = pytest.mark.usefixtures("each_database")


async def put(rig: Rig, path: str, who: str = "admin", **fields: Any) -> int:
    """The code with which a component path answers."""
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    async with rig.http.post(f"/object/api/v1/object/{path}", json=fields, headers=headers) as response:
        return int((await response.json())["code"])


async def test_the_dashboards_on_an_object(rig: Rig) -> None:
    pump, fan = [
        (await rig.call("create_object", name=name, mapping_id="", terminal_list=[], **BY))["id"]
        for name in ("pump", "fan")
    ]
    first, second = [
        (await rig.call("create_dashboard", name=name, category="pro", script={}, **BY))["uid"]
        for name in ("first", "second")
    ]
    assert await rig.call("get_object_dashboard_list", "viewer", object_id=pump) == []
    for dashboard, category in ((first, "pro"), (second, "pro")):
        assert await put(rig, "addDashboard", object_id=pump, dashboard_id=dashboard, category=category) == 200
    assert await put(rig, "addDashboard", object_id=fan, dashboard_id=first, category="wall") == 200
    assert await rig.call("get_object_dashboard_list", "viewer", object_id=str(pump)) == [
        {"dashboard_id": second, "name": "second", "category": "pro"},
        {"dashboard_id": first, "name": "first", "category": "pro"},
    ]
    assert await put(rig, "deleteDashboard", object_id=pump, dashboard_id=second) == 200
    found = await rig.call("get_object_dashboard_list", object_id=pump)
    assert [each["dashboard_id"] for each in found] == [first]
    assert (await rig.call("get_object_dashboard_list", object_id=fan))[0]["category"] == "wall"
    assert (await rig.ask("get_object_dashboard_list", "stranger", object_id=pump))["code"] == 10404
