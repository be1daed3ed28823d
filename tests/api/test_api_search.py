"""One search over everything: what is found, in which order, by whom, and how soon among 100,000 terminals."""

from __future__ import annotations

import time
from typing import Any

import pytest
from api_rig import Rig

from terrazzo.api.operations.table import TABLE
from terrazzo.database.tables.events import EVENT
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.terminal import Terminal
from terrazzo.metadata.name_index import rank_of
from terrazzo.metadata.name_search import SEARCHED
from terrazzo.times import now_us

BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


def test_how_well_a_name_fits() -> None:
    ranks = {"pump": 0, "Pump 7": 1, "Old pump": 2, "north-pump": 2, "xpump pump": 2, "Heatpump": 3}
    assert {name: rank_of(name, "pump") for name in ranks} == ranks


def test_who_may_list_a_kind_finds_it() -> None:
    """The least role of each kind is that of its list."""
    lists = {"company": "company", "user": "user"}
    for each in SEARCHED:
        name = f"get_{lists.get(each.kind, each.kind)}"
        names = [f"{name}_script_list", f"{name}_list"]
        listed = next((TABLE.find(found) for found in names if TABLE.find(found)), None)
        if listed is not None:
            assert listed.permission is not None, each
            least = listed.permission.value
            assert each.least.value >= least, each.kind


async def fill(rig: Rig, who: str, mark: str) -> None:
    config = await rig.add_config(who, name=f"{mark} config")
    await rig.add_terminal(f"{mark}-1", who, config_id=config, name=f"Pump of {mark}")
    row = ["T", "", "", "STA", "$AdapterID-1.t", ""]
    uid = (await rig.call("create_mapping", who, name=f"{mark} mapping", script=[row], **BY))["uid"]
    more = {"mapping_id": uid, "terminal_list": [f"{mark}-1"], "serial_no": f"SN-{mark}-77"}
    await rig.call("create_object", who, name=f"{mark} cooling 冷却", **more, **BY)
    await rig.call("create_customer", who, name=f"{mark} customer")


@pytest.mark.usefixtures("each_database")
async def test_all_kinds_are_found_and_no_other_companys(rig: Rig) -> None:
    await fill(rig, "admin", "mine")
    await fill(rig, "stranger", "theirs")
    said = dict.fromkeys(("code", "label_en", "label_cn", "value", "extension_key", "extension_value"), "mine hot")
    named = {"company_id": 1, "object_id": 7, "terminal_id": "mine-1", "created": now_us()}
    async with rig.platform.metadata.database.writing() as connection:
        await connection.execute(EVENT.insert(), [{**named, **said}] * 3)

    async def kinds(text: str, who: str = "viewer", **fields: Any) -> list[str]:
        return [each["kind"] for each in await rig.call("search", who, text=text, **fields)]

    found = {"terminal", "object", "customer", "terminal_config", "mapping", "event"}
    assert set(await kinds("MINE")) == found
    assert (await kinds("mine")).count("event") == 1  # of one code
    assert await kinds("theirs") == []
    assert set(await kinds("theirs", "stranger")) == found - {"event"}
    assert await kinds("却") == ["object"]
    assert await kinds("sn-mine") == ["object"]
    assert await kinds("mine", kinds=["customer"]) == ["customer"]
    assert await kinds("mine-1") == ["terminal"]
    assert await kinds("%") == []
    assert await kinds("_ine") == []
    assert await kinds("admin-user", "viewer") == []
    assert await kinds("admin-user", "admin") == ["user"]
    assert len(await kinds("m", limit=2)) == 2
    hit = (await rig.call("search", text="pump of mine"))[0]
    assert (hit["uid"], hit["name"], hit["rank"]) == ("mine-1", "Pump of mine", 0)


@pytest.mark.usefixtures("each_database")
async def test_what_people_wrote_keys_and_links_are_found_by_who_may_see_them(rig: Rig) -> None:
    entities = rig.services.entities
    for company_id, mark in ((1, "mine"), (2, "theirs")):
        own = {"permission_company_id": company_id}
        item = await entities.objects.create(SYSTEM, {"name": "tank", **own})
        project = await entities.collects.create(SYSTEM, {"name": "level", **own})
        record = {"object_id": item["id"], "name": f"Seal of {mark}", "description": f"new gasket, {mark}", **own}
        await entities.services.create(SYSTEM, record)
        await entities.collected.create(SYSTEM, {**record, "project_id": project["id"], "value": "1"})
    for who, mark in (("admin", "mine"), ("stranger", "theirs"), ("viewer", "mine")):
        await rig.call("create_api_key", who, name=f"script of {mark}", role="viewer", days=1)
    for who, mark in (("admin", "mine"), ("stranger", "theirs")):
        board = await rig.call("create_dashboard", who, name=f"hall of {mark}", category="pro", script="{}")
        await rig.call("renew_wall_link", who, uid=board["uid"])

    async def found(text: str, who: str, *kinds: str) -> list[tuple[str, str]]:
        hits = await rig.call("search", who, text=text, kinds=list(kinds))
        assert all((each["object_id"] is not None) is (each["kind"] in ("service", "offline")) for each in hits)
        return [(each["kind"], each["name"]) for each in hits]

    assert await found("GASKET", "viewer") == [("offline", "Seal of mine"), ("service", "Seal of mine")]
    assert await found("seal", "stranger", "service") == [("service", "Seal of theirs")]
    assert await found("theirs", "admin") == []
    assert len(await found("seal of", "root", "offline")) == 2
    assert await found("script", "admin") == [("api_key", "script of mine")] * 2
    assert await found("script", "viewer") == []
    assert await found("hall", "admin") == [("dashboard", "hall of mine"), ("wall_link", "hall of mine")]
    assert await found("hall", "viewer") == [("dashboard", "hall of mine")]
    assert await found("hall", "stranger", "wall_link") == [("wall_link", "hall of theirs")]
    assert await found("%", "root", "service", "offline", "wall_link") == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("fields", [{"text": " "}, {"text": "a\0"}, {"text": ""}, {"text": "x" * 65}])
async def test_what_is_refused(shared_rig: Rig, fields: dict[str, Any]) -> None:
    assert (await shared_rig.ask("search", **fields))["code"] == 10401
    answer = await shared_rig.ask("search", text="a", kinds=["pumps"])
    assert (answer["code"], answer["info"][:6]) == (10401, "kinds:")


@pytest.mark.long_turns("it makes 100,000 terminals in one turn itself")
async def test_among_100_000_terminals(rig: Rig) -> None:
    for number in range(1, 100_001):
        uid = f"G{number:06}"
        given = {"type": "x", "mode": "pwd", "username": uid, "pin": uid}
        rig.services.registry.put_terminal(Terminal(id=number, uid=uid, name=f"Pump {number}", company_id=1, **given))
    took_s = []
    for text in ("pump", "G0999", "99999", "nothing", "p"):
        began_s = time.process_time()
        found = await rig.call("search", text=text, kinds=["terminal"])
        took_s.append(time.process_time() - began_s)
        assert len(found) == {"nothing": 0, "99999": 1}.get(text, 20)
    assert sorted(took_s)[2] < 0.5  # tens of milliseconds; benchmarks measure it
