"""``terrazzo keys rotate`` beside a platform that runs: tokens die within a second, secrets stay readable."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from api_rig import Rig, open_rig, terminal_fields

from loaded_process import run_loaded_text
from own_platform import own_platform
from terrazzo.access.key_rotation import rotate_secrets_key
from terrazzo.access.tokens import KEY_FILE as TOKEN_FILE
from terrazzo.bulk.writing import ImportWriter
from terrazzo.crypto.secrets import KEY_FILE, OLD_KEY_FILE, Secrets
from terrazzo.database.tables.registry import AUDIT
from terrazzo.domain.actor import SYSTEM
from terrazzo.metadata.definitions.registry import TERMINAL


async def rotate(*arguments: str, **environ: str) -> tuple[int, str, str]:
    """Exit status, standard output and error of ``terrazzo keys rotate``."""
    program = ["-m", "terrazzo", "keys", "rotate", *arguments]
    done = await asyncio.to_thread(run_loaded_text, program, env=os.environ | environ)
    return done.returncode, done.stdout, done.stderr


async def sealed_pin(rig: Rig, uid: str) -> str:
    async with rig.platform.metadata.database.reading() as connection:
        query = sa.select(TERMINAL.table.c.pin).where(TERMINAL.table.c.uid == uid)
        return str((await connection.execute(query)).scalar_one())


async def test_both_keys(tmp_path: Path) -> None:
    async with open_rig(tmp_path) as rig:
        await rig.add_terminal("t1")
        token, pin = (tmp_path / TOKEN_FILE).read_text(), await sealed_pin(rig, "t1")
        status, output, errors = await rotate("--token", "--secrets", "--data", str(tmp_path))
        assert status == 0, errors
        assert "all users have to log in again" in output
        assert "1 secrets sealed anew" in output
        assert output.count("none needs a restart") == 2
        assert (tmp_path / TOKEN_FILE).read_text() != token
        assert await sealed_pin(rig, "t1") != pin
        for file in (TOKEN_FILE, KEY_FILE):
            assert (tmp_path / file).stat().st_mode & 0o777 == 0o600
        assert not (tmp_path / OLD_KEY_FILE).exists()
        async with asyncio.timeout(15):
            while (await rig.ask("get_terminal_item", uid="t1"))["code"] == 200:  # noqa: ASYNC110 - another process's doing
                await asyncio.sleep(0.02)  # the platform looks every half second
        assert (await rig.ask("get_terminal_item", uid="t1"))["code"] == 10402
        users = rig.platform.metadata.entities.users
        row = await users.by_name("admin-user")
        assert row is not None
        again: Any = {**rig.tokens, "admin": rig.platform.metadata.tokens.issue_for(row)}
        answer = await rig.post(b'{"action":"get_terminal_item","uid":"t1"}', token=again["admin"])
        assert answer[1]["result"]["pin"] == "p-t1"
        async with rig.platform.metadata.database.reading() as connection:
            query = sa.select(AUDIT.c.uid).where(AUDIT.c.action == "rotate")
            assert (await connection.execute(query)).scalars().all() == [KEY_FILE]


async def test_an_import_that_sealed_with_the_old_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It seals before its transaction: when it writes, the rotation could be over."""
    make = ImportWriter._new

    async with open_rig(tmp_path) as rig:

        async def rotate_and_make(self: ImportWriter, each: Any) -> Any:
            made = await make(self, each)
            await rotate_secrets_key(rig.platform.metadata.database, tmp_path, settle_s=0)
            return made

        rows = [terminal_fields("imported", await rig.add_config())]
        with monkeypatch.context() as patched:
            patched.setattr(ImportWriter, "_new", rotate_and_make)
            refused = await rig.ask("import_terminals", rows=rows)
        assert refused["code"] != 200
        assert "the key of secrets was replaced meanwhile" in refused["info"]
        assert (await rig.call("import_terminals", rows=rows))["created"] == 1
        assert Secrets.open(tmp_path).unseal(await sealed_pin(rig, "imported"), "terminal.pin") == "p-imported"


async def test_keys_of_the_configuration(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with open_rig(data) as rig:
        await rig.add_terminal("t1")
    status, _, errors = await rotate("--token", "--data", str(data), TERRAZZO_AUTH__TOKEN_KEY="k" * 32)
    assert (status, "auth.token_key" in errors, "restart" in errors) == (2, True, True)
    new, old = "cd" * 32, (data / KEY_FILE).read_text().strip()
    given = {"TERRAZZO_DATABASE__SECRETS_KEY": new}
    status, _, errors = await rotate("--secrets", "--data", str(data), **given)
    assert (status, "database.secrets_key_old" in errors) == (2, True)
    given["TERRAZZO_DATABASE__SECRETS_KEY_OLD"] = old
    status, output, errors = await rotate("--secrets", "--data", str(data), **given)
    assert status == 0, errors
    assert "take database.secrets_key_old out" in output
    async with own_platform(data, database={"secrets_key": new}) as (platform, _):
        row = await platform.metadata.entities.terminals.item(SYSTEM, "t1")
        assert row["pin"] == "p-t1"


async def test_what_can_not_be_rotated(tmp_path: Path) -> None:
    for arguments, reason in (([], "--token, --secrets"), (["--token"], "there is no folder")):
        status, _, errors = await rotate(*arguments, "--data", str(tmp_path / "none"))
        assert (status, reason in errors) == (2, True), errors
    assert not (tmp_path / "none").exists()
