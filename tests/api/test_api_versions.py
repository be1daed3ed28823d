"""Who saves only over what was read: of two at the same moment one is refused, and nothing is lost without a word."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from api_rig import Rig

ROW = ["T1", "Temperature", "温度", "STA", "$AdapterID-1.T1", "x", ""]
SIGNED = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
VERSIONED: dict[str, dict[str, Any]] = {
    "mapping": {"script": [ROW], **SIGNED},
    "control": {"script": [["Open", "o", "开", "OBJ", "$AdapterID-1.T1", "1"]]},
    "dashboard": {"script": {"Dashboard-1": {"col": 2, "data": []}}},
}


async def add(rig: Rig, entity: str) -> str:
    return str((await rig.call(f"create_{entity}", name="first", **VERSIONED[entity]))["uid"])


async def read(rig: Rig, entity: str, uid: str) -> dict[str, Any]:
    found: dict[str, Any] = await rig.call(f"get_{entity}_item", uid=uid)
    return found


@pytest.mark.parametrize("entity", VERSIONED)
async def test_of_two_who_save_at_the_same_moment_one_is_refused(rig: Rig, entity: str) -> None:
    uid = await add(rig, entity)
    for turn in range(5):
        version = (await read(rig, entity, uid))["version"]
        names = [f"{turn} by {who}" for who in ("Ann", "Ben", "Cid")]
        answers = await asyncio.gather(
            *(
                rig.ask(f"update_{entity}", uid=uid, name=name, if_version=version, **VERSIONED[entity])
                for name in names
            )
        )
        saved = [name for name, answer in zip(names, answers, strict=True) if answer["code"] == 200]
        refused = [answer for answer in answers if answer["code"] != 200]
        assert len(saved) == 1
        assert {answer["reason"]["code"] for answer in refused} == {"changed_since_read"}
        assert refused[0]["info"] == f"if_version: somebody has changed {entity} {uid} since it was read; read it again"
        assert (await read(rig, entity, uid))["name"] == saved[0]


@pytest.mark.parametrize("entity", VERSIONED)
async def test_a_version_stays_until_something_is_saved(rig: Rig, entity: str) -> None:
    uid = await add(rig, entity)
    first = await read(rig, entity, uid)
    listed = await rig.call(f"get_{entity}_list")
    assert [each["version"] for each in (listed if isinstance(listed, list) else listed["data"])] == [first["version"]]
    assert (await read(rig, entity, uid))["version"] == first["version"]
    # within the second that `last_modified` tells, and with the words that were there before
    versions = {first["version"]}
    for name in ("second", "first", "first"):
        known = (await read(rig, entity, uid))["version"]
        said = await rig.call(f"update_{entity}", uid=uid, name=name, if_version=known, **VERSIONED[entity])
        assert said == {"uid": uid, "version": (await read(rig, entity, uid))["version"]}
        versions.add(said["version"])
    assert len(versions) == 4


@pytest.mark.parametrize("entity", VERSIONED)
async def test_who_names_no_version_saves_over_whatever_is_there(rig: Rig, entity: str) -> None:
    uid = await add(rig, entity)
    for name, more in (("second", {}), ("third", {"if_version": None})):
        await rig.call(f"update_{entity}", uid=uid, name=name, **VERSIONED[entity], **more)
        assert (await read(rig, entity, uid))["name"] == name
    answer = await rig.ask(f"update_{entity}", uid=uid, name="fourth", if_version="", **VERSIONED[entity])
    assert answer["reason"]["code"] == "changed_since_read"
    assert (await read(rig, entity, uid))["name"] == "third"


async def test_a_version_is_no_way_to_learn_of_what_others_have(rig: Rig) -> None:
    answer = await rig.ask("update_dashboard", uid="no-such", name="x", if_version="0")
    assert answer["reason"]["code"] == "no_record"
