"""The URL of a webhook is a secret: not for viewers and operators, nor in audit log, journal or database."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
import sqlalchemy as sa
from api_rig import Rig, open_rig

from own_platform import own_platform
from terrazzo.audit.entry import MASK
from terrazzo.crypto.secrets import is_sealed
from terrazzo.database.tables.messages import MESSAGE
from terrazzo.database.tables.registry import AUDIT
from terrazzo.metadata.definitions.rules import RULE

TOKEN = "B0000/xoxb-the-secret"
URL = f"https://hooks.example.com/services/{TOKEN}?key=also-secret"
HOOK = {"kinds": ["event"], "channel": "webhook", "url": URL, "secret": "0123456789abcdef"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path_factory.mktemp("urls")) as opened:
        yield opened


async def stored_url(rig: Rig, uid: str) -> str:
    async with rig.platform.metadata.database.reading() as connection:
        query = sa.select(RULE.table.c.url).where(RULE.table.c.uid == uid)
        return str((await connection.execute(query)).scalar_one())


@pytest.mark.asyncio(loop_scope="module")
class TestOnePlatform:
    async def test_only_administrators_read_it(self, shared: Rig) -> None:
        uid = (await shared.call("create_rule", name="hook", **HOOK))["uid"]
        for who, shown in (("admin", URL), ("root", URL), ("operator", MASK), ("viewer", MASK)):
            assert (await shared.call("get_rule_item", who, uid=uid))["url"] == shown
            records = (await shared.call("get_rule_list", who))["data"]
            assert {record["url"] for record in records if record["uid"] == uid} == {shown}
        refused = await shared.ask("get_rule_list", "viewer", where_and=[["url", "like", "%xoxb%"]])
        assert refused["code"] == 10401, "whoever may not read it can't guess it letter by letter"
        assert is_sealed(await stored_url(shared, uid))

    async def test_a_mask_that_comes_back_leaves_it_as_it_is(self, shared: Rig) -> None:
        uid = (await shared.call("create_rule", name="kept", **HOOK))["uid"]
        await shared.call("update_rule", uid=uid, name="renamed", url=MASK, secret=MASK)
        record = await shared.call("get_rule_item", uid=uid)
        assert (record["name"], record["url"], record["secret"]) == ("renamed", URL, HOOK["secret"])
        refused = await shared.ask("create_rule", name="none", **(HOOK | {"url": MASK}))
        assert (refused["code"], refused["info"].partition(":")[0]) == (10401, "url")

    async def test_the_audit_log_says_that_it_changed(self, shared: Rig) -> None:
        uid = (await shared.call("create_rule", name="audited", **HOOK))["uid"]
        await shared.call("update_rule", uid=uid, url=URL + "2")
        entries = (await shared.call("get_audit_list", entity="rule", uid=uid))["data"]
        assert [entry["after"]["url"] for entry in entries] == [MASK, MASK]
        assert "xoxb" not in str(entries)

    async def test_what_an_older_version_wrote_is_masked_when_it_is_read(self, shared: Rig) -> None:
        row = {
            "time": 1, "company_id": 1, "user_id": 1, "username": "u", "address": "", "action": "create",
            "entity": "rule", "record_id": 1, "uid": "older", "before": None, "after": f'{{"url":"{URL}","name":"n"}}',
        }  # fmt: skip
        async with shared.platform.metadata.database.writing() as connection:
            await connection.execute(AUDIT.insert().values(row))
        (entry,) = (await shared.call("get_audit_list", uid="older"))["data"]
        assert entry["after"] == {"url": MASK, "name": "n"}

    async def test_user_and_password_of_a_firmware_link_are_for_administrators(self, shared: Rig) -> None:
        link, shown = "ftp://up:s%40cret@files.example/lua-2.bin", f"ftp://{MASK}@files.example/lua-2.bin"
        uid = await shared.add_config(lua_file=link, mcu_file="http://files.example/a@b.bin")
        for who, expected in (("admin", link), ("operator", shown), ("viewer", shown)):
            record = await shared.call("get_terminal_config_item", who, uid=uid)
            assert (record["lua_file"], record["mcu_file"]) == (expected, "http://files.example/a@b.bin")
            for like in ("ftp://up%", "%cret%"):
                found = await shared.call("get_terminal_config_list", who, where_and=[["lua_file", "like", like]])
                assert not found["data"] if isinstance(found, dict) else not found
        status, answer = await shared.get("/object/api/v1/config/getItem", "viewer", uid=uid)
        assert "cret" not in str(answer), status
        assert "cret" not in str(await shared.call("get_audit_list", uid=uid))
        await shared.add_terminal("up-1", config_id=uid)
        await shared.call("publish_terminal_command", terminal_id="up-1", command="AXUpgrade", value="LUA")
        for who, password in (("admin", "s@cret"), ("viewer", MASK)):
            (command,) = (await shared.call("get_command_list", who, terminal_id="up-1"))["data"]
            assert command["payload"]["Pwd"] == password

    async def test_of_a_journaled_request_the_host_is_shown(self, shared: Rig) -> None:
        row: dict[str, Any] = {column.name: 0 for column in MESSAGE.columns if not column.nullable}
        texts = {name: "" for name, column in MESSAGE.columns.items() if isinstance(column.type, sa.String)}
        json = {"recipients": "[]", "pending": "[]", "content": "{}", "response": "null"}
        given = {"id": 1, "uid": "m", "company_id": 1, "channel": "webhook", "state": "sent", "created": 1}
        request = {"request": f'{{"method":"POST","url":"{URL}"}}'}
        async with shared.platform.metadata.database.writing() as connection:
            await connection.execute(MESSAGE.insert().values(row | texts | json | given | request))
        (message,) = (await shared.call("get_message_list", "operator"))["data"]
        assert message["request"] == {"method": "POST", "url": f"https://hooks.example.com/{MASK}"}


async def test_urls_of_an_older_version_are_sealed_at_the_start(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        uid = (await rig.call("create_rule", name="hook", **HOOK))["uid"]
        async with rig.platform.metadata.database.writing() as connection:
            await connection.execute(RULE.table.update().values(url=URL))
    async with own_platform(tmp_path) as (platform, _):
        async with platform.metadata.database.reading() as connection:
            stored = (await connection.execute(sa.select(RULE.table.c.url))).scalar_one()
        rule = await platform.metadata.entities.rules.webhook(await connection_id(platform, uid))
    assert is_sealed(stored)
    assert rule == (URL, HOOK["secret"])


async def connection_id(platform: Any, uid: str) -> int:
    async with platform.metadata.database.reading() as connection:
        return int((await connection.execute(sa.select(RULE.table.c.id).where(RULE.table.c.uid == uid))).scalar_one())
