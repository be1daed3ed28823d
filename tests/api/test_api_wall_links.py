"""Links that show one dashboard: they reach its data, nothing else by any way in, and nothing once they were ended."""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
from api_rig import Rig, open_rig

from terrazzo.api.operations.sign_in import wall_links
from terrazzo.api.operations.table import TABLE
from terrazzo.api.paths.table import PATHS
from terrazzo.domain.actor import SYSTEM
from terrazzo.ports.store import Record
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us

WALL = {"get_wall", "get_wall_values", "get_wall_chart", "get_wall_picture"}
BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
HOUR_US = 3_600_000_000
SPAN = {"start_time": "2020-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path) as opened:
        yield opened


class Plant:
    """Two objects of which a dashboard shows one variable each of two, its link, and what a stranger has."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.objects: list[int] = []
        self.uid = self.key = ""

    async def build(self) -> Plant:
        rows = [[code, code, code, "STA", "$AdapterID-1.t", ""] for code in ("T", "SECRET")]
        for who in ("admin", "admin", "stranger"):
            mapping = await self.rig.call("create_mapping", who, name="m", script=rows, **BY)
            fields = {"mapping_id": mapping["uid"], "terminal_list": [], **BY}
            made = await self.rig.call("create_object", who, name=f"{who}'s machine", **fields)
            self.objects.append(int(made["id"]))
            values = msgspec.msgpack.encode({"T": 21.5, "SECRET": "7391 bar"})
            await self.rig.services.store.append([Record(f"m/{made['id']}", now_us() - HOUR_US, values)])
        made = await self.rig.call("create_dashboard", name="Hall", script=self.script(), **BY)
        self.uid = made["uid"]
        self.key = (await self.rig.call("renew_wall_link", uid=self.uid))["key"]
        return self

    def script(self, *codes: str) -> dict[str, Any]:
        values = [{"objectId": str(each), "code": code} for each in self.objects[::2] for code in codes or ("T",)]
        page = {"name": "P", "data": [{"type": "vlu", "name": "x", "attribute": {"values": values}}]}
        return {"Dashboard-1": page}

    async def ask(self, action: str, key: str | None = None, **fields: Any) -> dict[str, Any]:
        body = json.dumps({"action": action, **fields}).encode()
        return dict((await self.rig.post(body, token=self.key if key is None else key))[1])


@pytest.fixture
async def plant(rig: Rig) -> Plant:
    return await Plant(rig).build()


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_plant(shared_rig: Rig) -> Plant:
    """One for the tests that change nothing."""
    return await Plant(shared_rig).build()


async def test_a_link_shows_its_dashboard_and_the_variables_on_it(plant: Plant) -> None:
    own = str(plant.objects[0])
    wall = (await plant.ask("get_wall"))["result"]
    assert (wall["name"], list(wall["script"]), wall["objects"]) == ("Hall", ["Dashboard-1"], {own: "admin's machine"})
    values = (await plant.ask("get_wall_values"))["result"]["objects"]
    assert {each: [(one["code"], one["value"]) for one in found] for each, found in values.items()} == {
        own: [("T", 21.5)]
    }
    chart = await plant.ask("get_wall_chart", object_id=own, keys=["T"], **SPAN)
    assert chart["result"]["data"]["T"]["values"] == [21.5]


@IN_MODULE
async def test_other_variables_and_objects_are_not_reached(shared_plant: Plant) -> None:
    own, unnamed, strangers = shared_plant.objects
    for asked in ({"keys": ["SECRET"]}, {"keys": ["T", "SECRET"]}, {"keys": []}, {}):
        assert (await shared_plant.ask("get_wall_chart", object_id=own, **asked, **SPAN))["code"] in (10401, 10403)
    assert (await shared_plant.ask("get_wall_chart", object_id=unnamed, keys=["T"], **SPAN))["code"] == 10403
    assert (await shared_plant.ask("get_wall_chart", object_id=strangers, keys=["T"], **SPAN))["code"] == 10404
    answers = json.dumps([await shared_plant.ask(action) for action in ("get_wall", "get_wall_values")])
    assert "stranger" not in answers
    assert "7391 bar" not in answers


async def test_what_a_link_reaches_follows_its_dashboard(plant: Plant) -> None:
    await plant.rig.call("update_dashboard", uid=plant.uid, script=plant.script("SECRET"))
    assert (await plant.ask("get_wall_chart", object_id=plant.objects[0], keys=["T"], **SPAN))["code"] == 10403
    values = (await plant.ask("get_wall_values"))["result"]["objects"]
    assert [each["code"] for found in values.values() for each in found] == ["SECRET"]


@IN_MODULE
async def test_no_other_action_takes_the_key(shared_plant: Plant) -> None:
    found = {each.name: (await shared_plant.ask(each.name))["code"] for each in TABLE if each.permission is not None}
    assert len(found) > 150
    assert {name: code for name, code in found.items() if code != 10402} == {}
    open_to_all = {each.name for each in TABLE if each.permission is None}
    for name in open_to_all - WALL - {"get_login_options"}:  # how people log in
        assert (await shared_plant.ask(name))["code"] != 200, name


@IN_MODULE
async def test_no_path_takes_the_key(shared_plant: Plant) -> None:
    headers = {"Authorization": f"Bearer {shared_plant.key}", "Content-Type": "application/json"}
    for operation in PATHS:
        if operation.permission is None:
            continue
        address = operation.address(shared_plant.rig.services.prefixes)
        async with shared_plant.rig.http.request(operation.method, address, headers=headers, data=b"{}") as response:
            answer = json.loads(await response.read())
        assert (response.status, answer["code"]) in {(200, 10402), (401, 10402)}, (operation.path, answer)


async def test_pictures_of_its_dashboard_are_shown_and_no_other_files(plant: Plant) -> None:
    png = b"\x89PNG\r\n\x1a\n" + bytes(100)
    uids = []
    for name in ("plan.png", "other.png"):
        headers = {"Authorization": f"Bearer {plant.rig.tokens['admin']}"}
        address = "/object/api/v1/file/upload"
        async with plant.rig.http.post(address, params={"name": name}, data=png, headers=headers) as response:
            uids.append(json.loads(await response.read())["result"]["uid"])
    script = plant.script()
    script["Dashboard-1"]["picture"] = uids[0]
    await plant.rig.call("update_dashboard", uid=plant.uid, script=script)
    shown = (await plant.ask("get_wall_picture", uid=uids[0]))["result"]
    assert (shown["type"], base64.b64decode(shown["data"])) == ("image/png", png)
    assert (await plant.ask("get_wall_picture", uid=uids[1]))["code"] == 10403
    assert (await plant.rig.ask("get_wall_picture", uid=uids[0]))["code"] == 10402


@IN_MODULE
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/bulk/terminals"),
        ("POST", "/bulk/terminals"),
        ("GET", "/export/grid"),
        ("GET", "/files/x"),
        ("GET", "/query?q=SHOW+DATABASES"),
    ],
)
async def test_no_other_route_takes_the_key(shared_plant: Plant, method: str, path: str) -> None:
    async with shared_plant.rig.http.request(
        method, path, headers={"Authorization": f"Bearer {shared_plant.key}"}
    ) as response:
        text = await response.text()
    assert response.status in (200, 401, 403, 404), (response.status, text)
    assert response.status != 200 or json.loads(text)["code"] == 10402, text


async def test_a_connection_that_stays_takes_no_subscription_with_it(plant: Plant) -> None:
    async with plant.rig.http.ws_connect("/apiproxy/api") as socket:
        asked = {"action": "subscribe", "kinds": ["mosaic"], "Authorization": f"Bearer {plant.key}"}
        await socket.send_json(asked)
        assert (await socket.receive_json())["code"] == 10402
        await socket.send_json({"action": "get_wall_values"})
        assert (await socket.receive_json())["code"] == 200
        await plant.rig.call("end_wall_link", uid=plant.uid)
        await socket.send_json({"action": "get_wall_values"})
        assert (await socket.receive_json())["code"] == 10402


async def test_a_link_ends_at_once_however_it_ends(plant: Plant) -> None:
    rig = plant.rig
    second = (await rig.call("renew_wall_link", uid=plant.uid))["key"]
    assert (await plant.ask("get_wall"))["code"] == 10402  # the one before
    assert (await plant.ask("get_wall", second))["code"] == 200
    assert (await rig.call("get_wall_link", uid=plant.uid))["link"]["prefix"] == second[:12]
    assert await rig.call("end_wall_link", uid=plant.uid) == {"ended": True}
    assert await rig.call("end_wall_link", uid=plant.uid) == {"ended": False}
    assert (await plant.ask("get_wall", second))["code"] == 10402
    third = (await rig.call("renew_wall_link", uid=plant.uid))["key"]
    await rig.call("update_user", "root", username="admin-user", is_active=0)
    assert (await plant.ask("get_wall", third))["code"] == 10402
    await rig.call("update_user", "root", username="admin-user", is_active=1)
    assert (await plant.ask("get_wall", third))["code"] == 200
    await rig.call("delete_dashboard", "root", uid=plant.uid)
    assert (await plant.ask("get_wall", third))["code"] == 10402


async def test_a_link_of_a_closed_company_shows_nothing_whoever_made_it(plant: Plant) -> None:
    """A super user is of another company, which is open."""
    rig = plant.rig
    company = await rig.call("create_company", "root", name="third")
    fields = {"name": "Hall", "script": plant.script(), "permission_company_id": company["id"], **BY}
    uid = (await rig.call("create_dashboard", "root", **fields))["uid"]
    key = (await rig.call("renew_wall_link", "root", uid=uid))["key"]
    assert (await plant.ask("get_wall", key))["code"] == 200
    for is_available, code in ((0, 10402), (1, 200)):
        await rig.services.entities.companies.update(SYSTEM, company["id"], {"is_available": is_available})
        for action in ("get_wall", "get_wall_values"):
            assert (await plant.ask(action, key))["code"] == code


NO_KEYS = ["", "tzw_", "tzw_" + "a" * 43, "tzw_" + "\xe9" * 43, "tzk_" + "a" * 43, "tzw_" + "a" * 9_000]


@IN_MODULE
@pytest.mark.parametrize("key", NO_KEYS)
async def test_what_is_no_key_opens_nothing(shared_plant: Plant, key: str, caplog: pytest.LogCaptureFixture) -> None:
    refused = shared_plant.rig.services.wall_links.stats.refused
    for action in WALL - {"get_wall_chart", "get_wall_picture"}:
        answer = await shared_plant.rig.ask(action, "nobody", Authorization=f"Bearer {key}")
        assert answer["code"] == 10402
    assert shared_plant.rig.services.wall_links.stats.refused == refused + len(WALL) - 2
    assert len(key) < 20 or key not in caplog.text


@IN_MODULE
async def test_a_refused_link_is_in_the_log_now_and_then(
    shared_plant: Plant, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wall_links, "_log", SparseLog(logging.getLogger(wall_links.__name__)))
    for _ in range(5):
        await shared_plant.rig.ask("get_wall", "nobody", Authorization=f"Bearer {NO_KEYS[2]}")
    told = [each.getMessage() for each in caplog.records if each.name == wall_links.__name__]
    ended = "this link was ended, or there never was one: ask for another"
    assert told[0] == f"a wall's link from 127.0.0.1 was refused: {ended}"
    assert len(told) < 5, "at most one within ten seconds"


@IN_MODULE
async def test_users_tokens_open_no_wall_and_others_dashboards_get_no_link(shared_plant: Plant) -> None:
    assert (await shared_plant.rig.ask("get_wall"))["code"] == 10402
    for action in ("renew_wall_link", "get_wall_link", "end_wall_link"):
        assert (await shared_plant.rig.ask(action, "stranger", uid=shared_plant.uid))["code"] == 10404
        assert (await shared_plant.rig.ask(action, "operator", uid=shared_plant.uid))["code"] == 10403
    strangers = shared_plant.objects[2]
    assert (await shared_plant.rig.ask("renew_wall_link", "root", uid=shared_plant.uid, object_id=strangers))[
        "code"
    ] == 10404


async def test_links_are_audited_and_no_key_is_stored(plant: Plant, tmp_path: Path) -> None:
    await plant.rig.call("end_wall_link", uid=plant.uid)
    found = (await plant.rig.call("get_audit_list", page_size=100))["data"]
    assert [each["action"] for each in found if each["entity"] == "wall_link"] == ["delete", "create"]
    assert plant.key not in json.dumps(found)
