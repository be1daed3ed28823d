"""``terrazzo user`` as a program, on the database of a running platform."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from loaded_process import run_loaded_text
from migrated import seed
from terrazzo.access.refusals import RefusalLog
from terrazzo.access.second_factor import SecondFactors
from terrazzo.access.tokens import Tokens, load_token_key
from terrazzo.access.users import UserLogin, ensure_admin
from terrazzo.audit.log import AuditLog
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.changes import ChangeWatcher
from terrazzo.database.database import Database
from terrazzo.domain.registry import Registry
from terrazzo.errors import NotAuthenticated
from terrazzo.logins.limiter import LoginLimiter
from terrazzo.metadata.entities import Entities


def terrazzo(
    *arguments: object, stdin: str = "", loaded: bool = True, **environ: str
) -> subprocess.CompletedProcess[str]:
    """Runs a command; not ``loaded``: started as users do."""
    command = ["-m", "terrazzo", *map(str, arguments)]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("TERRAZZO_")}
    environment = clean | {"COLUMNS": "200"} | environ
    if loaded:
        return run_loaded_text(command, env=environment, given=stdin)
    command = [sys.executable, *command]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, env=environment, timeout=60)


@dataclass
class Running:
    """What a running platform has open."""

    data: Path
    tokens: Tokens
    login: UserLogin
    changes: ChangeWatcher

    def user(self, *arguments: object, stdin: str = "", loaded: bool = True) -> subprocess.CompletedProcess[str]:
        return terrazzo("user", *arguments, "--data", self.data, stdin=stdin, loaded=loaded)


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[Running]:
    data = tmp_path / "data"
    database = await Database.open("", data_dir=seed(data))
    changes = ChangeWatcher(database)
    await changes.start()
    entities = Entities.open(database, Registry(), Secrets.open(data))
    await ensure_admin(entities, data_dir=data)
    tokens = await Tokens.open(database, entities, key=load_token_key(data), token_hours=2)
    entities.follow(changes)
    tokens.follow(changes)
    audit = AuditLog(database)
    parts = {"refusals": RefusalLog(audit), "limiter": LoginLimiter(10, 300)}
    login = UserLogin(entities, tokens, audit, **parts, factors=SecondFactors(database, Secrets.open(data)))
    yield Running(data, tokens, login, changes)
    await database.close()


async def test_users_come_and_go_while_the_platform_runs(running: Running) -> None:
    added = running.user(
        *("add", "bo", "--role", "operator", "--email", "b@x.org", "--password-stdin"),
        stdin="the first\n",
        loaded=False,
    )
    assert (added.returncode, added.stdout, added.stderr) == (0, "added user bo (id 2, operator)\n", "")
    _, token = await running.login.login("bo", "the first", "")
    listed = json.loads(running.user("list", "--json").stdout)
    assert [(row["username"], row["role"], row["is_super"], row["is_active"]) for row in listed] == [
        ("admin", "admin", 1, 1),
        ("bo", "operator", 0, 1),
    ]
    table = running.user("list").stdout
    assert all(text in table for text in ("bo", "operator", "b@x.org"))
    assert running.user("deactivate", "bo").stdout == "deactivated user bo\n"
    await running.changes.poll()
    with pytest.raises(NotAuthenticated):
        running.tokens.verify(token)
    with pytest.raises(NotAuthenticated, match="deactivated"):
        await running.login.login("bo", "the first", "")
    assert running.user("activate", "bo").returncode == 0
    assert running.user("password", "bo", "--password-stdin", stdin="the second").returncode == 0
    _, token = await running.login.login("bo", "the second", "")
    assert running.user("delete", "bo", "--yes").stdout == "deleted user bo\n"
    await running.changes.poll()
    with pytest.raises(NotAuthenticated):
        running.tokens.verify(token)


async def test_generated_password_works(running: Running) -> None:
    added = running.user("add", "bo", "--super", "--generate")
    password = added.stdout.splitlines()[1].removeprefix("password: ")
    row, _ = await running.login.login("bo", password, "")
    assert row["is_super"] == 1


async def test_errors_are_one_line_that_names_the_field(running: Running) -> None:
    cases = [
        (("add", "bo", "--password-stdin"), "short\n", "password: expected 8 to 256 characters, got 5"),
        (("add", "admin", "--generate"), "", "username: admin is taken"),
        (("add", " bo", "--generate"), "", "username: starts or ends with a blank"),
        (("add", "bo", "--role", "chief", "--generate"), "", "role: expected one of viewer, operator, admin"),
        (("add", "bo", "--company", "9", "--generate"), "", "permission_company_id: no company '9'"),
        (("add", "bo"), "", "--password-stdin: give the password with it"),
        (("password", "nobody", "--generate"), "", "username: there is no user nobody"),
        (("delete", "1", "--yes"), "", "username: there is no user 1"),
        (("deactivate", "admin"), "", "user admin is the last active super user"),
    ]
    for arguments, stdin, message in cases:
        result = running.user(*arguments, stdin=stdin)
        assert result.returncode == 2, arguments
        assert result.stderr.startswith("terrazzo: ")
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1


async def test_delete_asks_first(running: Running) -> None:
    running.user("add", "bo", "--generate")
    assert running.user("delete", "bo", stdin="n\n").returncode != 0
    assert "bo" in running.user("list").stdout
    assert running.user("delete", "bo", stdin="y\n").returncode == 0


async def test_another_process_is_heard_of_when_it_is_looked_for(running: Running) -> None:
    running.user("add", "bo", "--password-stdin", stdin="the first\n")
    await running.changes.poll()
    _, token = await running.login.login("bo", "the first", "")
    assert running.user("deactivate", "bo").returncode == 0
    assert await running.changes.poll() >= 1  # a running platform looks each half second
    with pytest.raises(NotAuthenticated):
        running.tokens.verify(token)


def test_no_database_is_made_by_mistake(tmp_path: Path) -> None:
    result = terrazzo("user", "list", "--data", tmp_path / "typo")
    assert result.returncode == 2
    assert "there is no database" in result.stderr
    assert not (tmp_path / "typo").exists()


def test_bad_configuration_is_one_line_and_exit_2(tmp_path: Path) -> None:
    config = tmp_path / "terrazzo.toml"
    config.write_text("[mqtt]\nport = 99999\n")
    result = terrazzo("user", "list", "--config", config, loaded=False)
    assert (result.returncode, result.stderr) == (2, 'terrazzo: mqtt.port: expected 0..65535 or "off", got 99999\n')
    result = terrazzo("user", "list", TERRAZZO_HTTP__PROT="1")
    assert "TERRAZZO_HTTP__PROT: http.prot: unknown key; did you mean http.port?" in result.stderr
    assert result.returncode == 2
