"""``terrazzo backup`` and ``terrazzo restore`` as they are typed."""

from __future__ import annotations

import asyncio
import os
import socket

import msgspec
import pytest
from typer.testing import CliRunner

from migrated import first_start, seed
from platform_site import running_site
from postgresql_server import PostgreSQL
from terrazzo.backup.status import BackupStatus, read_status, write_status
from terrazzo.cli.backup_checks import check_backups
from terrazzo.cli.shell.program import make_app
from terrazzo.cli.start_checks import check_data_dir
from terrazzo.config.sections import Config, ConfigError
from terrazzo.errors import OperationError
from terrazzo.ports.control import SOCKET, at_folder
from terrazzo.times import now_us

PASSPHRASE = "correct horse battery"


def typed(*words: object, **environment: str) -> str:
    """What a command prints; raises what ``main`` would tell and end with."""
    before = os.umask(0)
    os.umask(before)
    try:
        told = CliRunner().invoke(make_app(), [str(word) for word in words], env=environment)
    finally:
        os.umask(before)
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise told.exception
    return told.output if told.exit_code == 0 else f"exit {told.exit_code}\n{told.output}"


def refusal(*words: object, **environment: str) -> str:
    with pytest.raises((ConfigError, OperationError)) as refused:
        typed(*words, **environment)
    return str(refused.value)


@pytest.fixture(scope="module")
def rest(tmp_path_factory):
    """A platform's data folder, of one that does not run any more."""
    folder = tmp_path_factory.mktemp("rest") / "data"

    async def live() -> None:
        async with running_site(folder) as site:
            company = await site.company()
            await company.terminal("t1")

    seed(folder, first_start)
    asyncio.run(live())
    return folder


@pytest.fixture
def passphrase(tmp_path):
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    return str(tmp_path / "passphrase")


def test_of_a_platform_that_does_not_run(rest, tmp_path, passphrase):
    keys = {"TERRAZZO_BACKUP__PASSPHRASE_FILE": passphrase}
    target, new = tmp_path / "target", tmp_path / "new"
    assert "changes of records waited for" in typed("backup", target, "--data", rest, **keys)
    assert "keys sealed" in typed("backup", "list", target)
    assert "is whole" in typed("backup", "verify", target, **keys)
    assert "its keys were not opened" in typed("backup", "verify", target)
    assert "start it with: terrazzo serve --data" in typed("restore", target, "--data", new, **keys)
    assert (new / "token-key").read_text() == (rest / "token-key").read_text()
    assert (new / "token-key").stat().st_mode & 0o777 == 0o600
    assert "is not empty" in refusal("restore", target, "--data", new, **keys)


async def test_of_one_that_runs(tmp_path):
    """It is asked: nobody else may open its store."""
    async with running_site(tmp_path / "data"):
        told = await asyncio.to_thread(typed, "backup", tmp_path / "target", "--data", tmp_path / "data")
        assert "warning: the backup has no keys" in told
        assert "is whole" in await asyncio.to_thread(typed, "backup", "verify", tmp_path / "target")
    told = typed("restore", tmp_path / "target", "--data", tmp_path / "new")
    assert "put the file secrets-key that was kept elsewhere into" in told


def test_without_the_passphrase_it_says_what_is_missing(rest, tmp_path, passphrase):
    typed("backup", tmp_path / "target", "--data", rest, TERRAZZO_BACKUP__PASSPHRASE_FILE=passphrase)
    told = typed("restore", tmp_path / "target", "--data", tmp_path / "new")
    assert "without firmware-key, secrets-key, token-key" in told
    (tmp_path / "wrong").write_text("another passphrase")
    wrong = {"TERRAZZO_BACKUP__PASSPHRASE_FILE": str(tmp_path / "wrong")}
    assert "was sealed with another passphrase" in refusal(
        "restore", tmp_path / "target", "--data", tmp_path / "x", **wrong
    )
    told = typed("backup", "verify", tmp_path / "target", **wrong)
    assert told.startswith("exit 1")
    assert "secrets-key: was sealed with another passphrase" in told


def test_a_damaged_backup_fails_its_verification(rest, tmp_path):
    typed("backup", tmp_path / "target", "--data", rest)
    largest = max((tmp_path / "target" / "objects").rglob("*"), key=lambda path: path.is_file() and path.stat().st_size)
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    told = typed("backup", "verify", tmp_path / "target")
    assert told.startswith("exit 1")
    assert "is damaged" in told


def test_what_was_mistyped_is_named(rest, tmp_path):
    assert "say where to" in refusal("backup", "--data", rest)
    assert "there is no backup in it" in refusal("backup", "verify", tmp_path / "none")
    assert "there is no folder" in refusal("backup", tmp_path / "target", "--data", tmp_path / "none")
    typed("backup", tmp_path / "target", "--data", rest)
    assert "there is no backup '2020'; the newest are 20" in refusal("restore", tmp_path / "target", "--id", "2020")
    assert "expected one target" in typed("backup", "a", "b", "--data", rest)
    assert "backup.every_hours: needs backup.target" in refusal("backup", "list", "x", TERRAZZO_BACKUP__EVERY_HOURS="1")
    assert "backup.target: expected s3://bucket/prefix" in refusal("backup", "list", TERRAZZO_BACKUP__TARGET="s3:///x")


def test_to_a_storage_that_speaks_s3(rest, tmp_path, bucket, s3_endpoint):
    storage = {"TERRAZZO_BACKUP__S3_ENDPOINT": s3_endpoint, "TERRAZZO_BACKUP__TARGET": f"s3://{bucket}/plant"}
    assert f"in s3://{bucket}/plant" in typed("backup", "--data", rest, **storage)
    assert "is whole" in typed("backup", "verify", **storage)
    typed("restore", f"s3://{bucket}/plant", "--data", tmp_path / "new", **storage)
    assert (tmp_path / "new" / "terrazzo.db").stat().st_size > 100_000


async def test_a_database_of_postgresql_goes_along(postgresql: PostgreSQL, tmp_path, passphrase):
    before, after = postgresql.migrated_database(), postgresql.database()
    keys = {"TERRAZZO_BACKUP__PASSPHRASE_FILE": passphrase}
    database = {"url": before}
    async with running_site(tmp_path / "data", database=database, backup={"passphrase_file": passphrase}) as site:
        company = await site.company("of PostgreSQL")
        await company.terminal("t1")
        await asyncio.to_thread(
            typed, "backup", tmp_path / "target", "--data", tmp_path / "data", TERRAZZO_DATABASE__URL=before, **keys
        )
    assert "database.url: the backup is of a PostgreSQL database" in await asyncio.to_thread(
        refusal, "restore", tmp_path / "target", "--data", tmp_path / "x", **keys
    )
    new = tmp_path / "new"
    await asyncio.to_thread(typed, "restore", tmp_path / "target", "--data", new, TERRAZZO_DATABASE__URL=after, **keys)
    assert not (new / "database.dump").exists()
    async with running_site(new, database={"url": after}) as site:
        assert site.platform.metadata.registry.terminal("t1") is not None


def test_a_folder_whose_path_is_long_has_its_socket(tmp_path):
    deep = tmp_path / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True)
    with socket.socket(socket.AF_UNIX) as listening, at_folder(deep) as address:
        listening.bind(address)
    assert (deep / SOCKET).is_socket()


def findings(folder, **section):
    config = Config().with_data_dir(folder)
    config = msgspec.structs.replace(config, backup=msgspec.structs.replace(config.backup, **section))
    return {(each.level.value, each.part): each.found for each in check_backups(config)}


def test_doctor_says_how_it_is(tmp_path):
    assert findings(tmp_path) == {("warn", "backup"): "there is none: what is on this disk is nowhere else"}
    write_status(tmp_path, BackupStatus(id="x", target="t", keys="left out", ended_us=now_us() - 7_200_000_000))
    told = findings(tmp_path)
    assert told["ok", "backup"] == "x in t, 2.0 hours old"
    assert "nobody can read the pins" in told["warn", "backup keys"]
    assert ("fail", "backup") in findings(tmp_path, target="t", every_hours=0.5)
    write_status(tmp_path, BackupStatus(failed_us=1, last_error="no space left"))
    assert findings(tmp_path)["fail", "backup"] == "the last backup failed: no space left"
    (tmp_path / "passphrase").write_text(PASSPHRASE)
    assert (
        "is in the data folder"
        in findings(tmp_path, passphrase_file=str(tmp_path / "passphrase"))["warn", "backup.passphrase_file"]
    )
    assert ("fail", "backup.passphrase_file") in findings(tmp_path, passphrase_file=str(tmp_path / "none"))


def test_half_a_restore_does_not_start(tmp_path):
    (tmp_path / ".restoring").mkdir()
    assert [each.found for each in check_data_dir(tmp_path)] == [f"{tmp_path} has a restore that did not end"]


@pytest.mark.parametrize("text", ["", "{", "[]", '{"size": "x"}', "\xff"])
def test_a_status_that_cannot_be_read_says_nothing(tmp_path, text):
    (tmp_path / "backup-status").write_bytes(text.encode("latin-1"))
    assert read_status(tmp_path).ended_us == 0
