"""What a terminal reported belongs to its record: the uid's next owner reaches nothing of it, its own company does."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from api_rig import Rig, open_rig

from platform_site import Site, peers
from terrazzo.ports.store import StoreUnavailable
from waiting import until

ALL_TIME = {"start_time": "2000-01-01 00:00:00", "end_time": "2099-01-01 00:00:00"}


@pytest.fixture
def store(influx: str, tmp_path: Path) -> dict[str, Any]:
    """The section ``store``, for each kind of store."""
    return {"kind": "influxdb", "url": influx, "database": tmp_path.name} if influx else {}


@pytest.fixture
async def rig(tmp_path: Path, store: dict[str, Any]) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path, store=store) as opened:
        yield opened


async def report(rig: Rig, uid: str, *payloads: bytes, channel: str = "r") -> None:
    """The terminal logs in and reports; ``{`` alone becomes a reject."""
    site = Site(rig.platform, rig.addresses)
    async with peers(site) as make:
        peer = make(uid)
        assert await peer.connect(f"u-{uid}", f"p-{uid}") == 0
        for payload in payloads:
            await peer.publish(f"g/{channel}", payload)


async def grid(rig: Rig, key: str | int, who: str, **fields: Any) -> list[Any]:
    """What a grid query finds, oldest first: payloads with their topics."""
    page = await rig.call("get_grid_list", who, terminal_id=key, **ALL_TIME, **fields)
    assert page["total_records"] == len(page["data"])
    return [(each["payload"], each["topic"]) for each in reversed(page["data"])]


async def exported(rig: Rig, key: str | int, who: str) -> list[Any]:
    headers = {"Authorization": f"Bearer {rig.tokens[who]}"}
    async with rig.http.get(f"/export/grid/{key}", params={"format": "jsonl"}, headers=headers) as answer:
        text = await answer.text()
        return [json.loads(line)["payload"] for line in text.splitlines()] if answer.status == 200 else [answer.status]


async def rejects(rig: Rig, who: str, **fields: Any) -> list[str]:
    page = await rig.call("get_reject_list", who, **fields)
    return [each["text"] for each in page["data"]]


async def delete(rig: Rig, uid: str, who: str) -> None:
    await rig.call("delete_terminal", who, uid=uid)


async def test_the_next_owner_of_a_uid_reaches_nothing_of_before(rig: Rig) -> None:
    old = await rig.add_terminal("meter", "stranger")
    await report(rig, "meter", b'{"secret": 1}', b"{")
    await delete(rig, "meter", "stranger")
    new = await rig.add_terminal("meter")
    await report(rig, "meter", b'{"n": 1}', b"{n")
    await report(rig, "meter", b'{"n": 2}', channel="i/deep")
    found = [({"n": 1}, "g/meter/r"), ({"n": 2}, "g/meter/i/deep")]
    for key in ("meter", new, str(new)):
        assert await grid(rig, key, "admin") == found
        assert await exported(rig, key, "admin") == [{"n": 1}, {"n": 2}]
        assert (await rig.call("get_last_grid", terminal_id=key))["data"][0]["topic"] == "g/meter/i/deep"
        assert len((await rig.call("get_last_grid_list", terminal_id=key, items=9))["data"]) == 2
        assert await rejects(rig, "admin", terminal_id=key) == ["{n"]
    for topic in ("g/meter/r", "r", "g/+/r", "g/#", ["r"]):
        assert ({"n": 1}, "g/meter/r") in await grid(rig, "meter", "admin", topic=topic)
        assert ({"secret": 1}, "g/meter/r") not in await grid(rig, "meter", "admin", topic=topic)
    assert await rejects(rig, "admin") == ["{n"]
    assert (await rig.ask("get_grid_list", terminal_id=old, **ALL_TIME))["code"] == 10404
    assert (await rig.ask("get_reject_list", terminal_id=old))["code"] == 10404
    assert (await rig.call("get_former_terminal_list"))["total_records"] == 0


QUESTIONS = (
    "SHOW MEASUREMENTS",
    "SHOW FIELD KEYS",
    "SHOW SERIES",
    'SHOW TAG VALUES WITH KEY = "topic"',
    "SELECT * FROM /.*/",
    'SELECT * FROM "meter"',
    'SELECT * FROM "g/meter/r"',
    'SELECT count(*) FROM "meter"',
)


async def influx(rig: Rig, question: str, who: str) -> str:
    headers = {"Authorization": f"Token {rig.tokens[who]}"}
    async with rig.http.get("/influx/query", params={"db": "grid", "q": question}, headers=headers) as answer:
        return await answer.text()


async def test_questions_in_influxql_end_at_the_record_too(rig: Rig) -> None:
    await rig.add_terminal("meter", "stranger")
    await report(rig, "meter", b'{"secret": "THEIRTEXT"}')
    assert "secret" in "".join([await influx(rig, question, "stranger") for question in QUESTIONS])
    await delete(rig, "meter", "stranger")
    await rig.add_terminal("meter")
    await report(rig, "meter", b'{"ours": "OURTEXT"}')
    for question in QUESTIONS:
        answer = await influx(rig, question, "admin")
        assert "secret" not in answer, question
        assert "THEIRTEXT" not in answer, question
        answer = await influx(rig, question, "stranger")
        assert "ours" not in answer, question
        assert "OURTEXT" not in answer, question
    assert "ours" in "".join([await influx(rig, question, "admin") for question in QUESTIONS])


async def test_the_former_owner_reads_on_under_the_old_id(rig: Rig) -> None:
    old = await rig.add_terminal("meter", "stranger", name="Boiler")
    await report(rig, "meter", b'{"secret": 1}', b"{")
    await delete(rig, "meter", "stranger")
    again = await rig.add_terminal("meter", "stranger")
    await report(rig, "meter", b'{"again": 1}')
    assert await grid(rig, "meter", "stranger") == [({"again": 1}, "g/meter/r")]
    assert await grid(rig, old, "stranger") == [({"secret": 1}, "g/meter/r")]
    assert await exported(rig, old, "stranger") == [{"secret": 1}]
    assert await rejects(rig, "stranger", terminal_id=old) == ["{"]
    await delete(rig, "meter", "stranger")
    page = await rig.call("get_former_terminal_list", "stranger", uid="meter")
    assert [(each["id"], each["uid"]) for each in page["data"]] == [(again, "meter"), (old, "meter")]
    assert page["data"][1]["name"] == "Boiler"
    assert await grid(rig, again, "stranger") == [({"again": 1}, "g/meter/r")]
    assert await grid(rig, old, "root") == [({"secret": 1}, "g/meter/r")]


async def test_live_frames_have_the_topic_and_replays_the_reports(rig: Rig) -> None:
    await rig.add_terminal("meter", "stranger")
    await delete(rig, "meter", "stranger")
    await rig.add_terminal("meter")
    token = rig.tokens["admin"]
    async with rig.http.ws_connect("/apiproxy/api", headers={"Authorization": f"Bearer {token}"}) as socket:
        await socket.send_json({"action": "subscribe", "kinds": ["grid"], "terminal_id": "meter"})
        assert (await socket.receive_json())["code"] == 200
        await report(rig, "meter", b'{"n": 1}')
        frame = await socket.receive_json()
    assert (frame["data"]["topic"], frame["data"]["terminal_id"]) == ("g/meter/r", "meter")


async def test_an_imported_terminal_begins_anew_too(rig: Rig) -> None:
    await rig.add_terminal("meter", "stranger")
    await report(rig, "meter", b'{"secret": 1}')
    await delete(rig, "meter", "stranger")
    config = await rig.add_config()
    fields = {"name": "m", "type": "Other", "mode": "pwd", "username": "u-meter", "pin": "p-meter", "config_id": config}
    await rig.call("import_terminals", rows=[{"uid": "meter", **fields}, {"uid": "other", **fields}])
    await report(rig, "meter", b'{"n": 1}')
    assert await grid(rig, "meter", "admin") == [({"n": 1}, "g/meter/r")]
    registry = rig.services.registry
    names = [registry.series_name(uid) for uid in ("meter", "other")]
    assert names == [f"meter#{registry.terminal('meter').id}", "other"]


async def test_folders_of_before_know_what_was_deleted_from_the_audit_log(
    tmp_path: Path, store: dict[str, Any]
) -> None:
    async with open_rig(tmp_path, store=store) as rig:
        tokens = rig.tokens
        old = await rig.add_terminal("meter", "stranger")
        await rig.add_terminal("nobodys", "stranger")
        for uid in ("meter", "nobodys"):
            await report(rig, uid, b'{"secret": 1}')
            await delete(rig, uid, "stranger")
        await rig.platform.store.append([], notes={"former-terminals": None})
    with sqlite3.connect(tmp_path / "terrazzo.db") as database:  # as a version before has left it
        database.execute("delete from former_terminal")
        database.execute("delete from audit where uid = 'nobodys'")
    async with open_rig(tmp_path, tokens=tokens, store=store) as rig:
        for uid in ("meter", "nobodys"):
            await rig.add_terminal(uid)
            assert await grid(rig, uid, "admin") == []
        assert await grid(rig, old, "stranger") == [({"secret": 1}, "g/meter/r")]
        page = await rig.call("get_former_terminal_list", "stranger")
        assert [each["id"] for each in page["data"]] == [old]


async def test_while_the_store_cannot_say_who_was_there_new_terminals_begin_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.platform.store.append([], notes={"former-terminals": None})
        tokens = rig.tokens

    async def away(*_: object) -> None:
        raise StoreUnavailable("away")

    with monkeypatch.context() as patch:
        patch.setattr("terrazzo.runtime.assembly.former_data.note_former_terminals", away)
        async with open_rig(tmp_path, tokens=tokens) as rig:
            number = await rig.add_terminal("meter")
            assert rig.services.registry.series_name("meter") == f"meter#{number}"
    async with open_rig(tmp_path, tokens=tokens) as rig:
        assert rig.services.registry.series_name("meter") == f"meter#{number}"
        await rig.add_terminal("other")
        assert rig.services.registry.series_name("other") == "other"


async def test_what_a_deleted_terminal_reported_ends_after_its_days(tmp_path: Path, store: dict[str, Any]) -> None:
    async with open_rig(tmp_path, store=store) as rig:
        tokens = rig.tokens
        old = await rig.add_terminal("meter")
        await report(rig, "meter", *(b'{"n": %d}' % number for number in range(30)), b"{")
        await delete(rig, "meter", "admin")
        lately = await rig.add_terminal("meter")
        await report(rig, "meter", b'{"n": 1}')
        await delete(rig, "meter", "admin")
        kept = await rig.add_terminal("meter")
        await report(rig, "meter", b'{"n": 2}')
    with sqlite3.connect(tmp_path / "terrazzo.db") as database:
        database.execute("update former_terminal set deleted = 0 where terminal_id = ?", (old,))
    async with open_rig(tmp_path, tokens=tokens, store={**store, "deleted_retention_days": 1}) as rig:
        await until(lambda: rig.platform.parts.former.purged_terminals == 1, "the reports are deleted")
        assert rig.platform.parts.former.purged_records == 31
        assert await grid(rig, old, "admin") == await rejects(rig, "admin", terminal_id=old) == []
        assert await grid(rig, lately, "admin") == [({"n": 1}, "g/meter/r")]
        assert await grid(rig, kept, "admin") == [({"n": 2}, "g/meter/r")]
        page = await rig.call("get_former_terminal_list")
        assert [each["purged"] is None for each in page["data"]] == [True, False]
