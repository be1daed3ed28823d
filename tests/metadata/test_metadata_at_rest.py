"""What lies on disk: sealed secrets, private files, and the schema that the migrations make."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from hypothesis import given
from hypothesis import strategies as st
from registry_stand import Stand, make_stand

from support import free_port
from terrazzo.crypto.secrets import KEY_FILE, Secrets, SecretUnreadable
from terrazzo.database import migrations
from terrazzo.database.changes import KEPT_US, ChangesLost, ChangeWatcher
from terrazzo.database.database import Database
from terrazzo.database.migration import DatabaseOutdated, DatabaseUnusable
from terrazzo.database.tables.registry import CHANGE
from terrazzo.database.trigram_index import PREFIX
from terrazzo.errors import Unavailable
from terrazzo.metadata.registry_feed import load_registry
from terrazzo.metadata.schema import ALL_TABLES
from terrazzo.times import now_us

SECRETS = Secrets(b"k" * 32)


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(max_size=10))
def test_sealed_text_opens_in_its_place_only(text: str, place: str) -> None:
    sealed = SECRETS.seal(text, place)
    assert SECRETS.unseal(sealed, place) == text
    if text:
        assert sealed != SECRETS.seal(text, place), "the same pin twice must not look the same"
        with pytest.raises(SecretUnreadable):
            SECRETS.unseal(sealed, place + "x")
        with pytest.raises(SecretUnreadable):
            Secrets(b"x" * 32).unseal(sealed, place)


@pytest.mark.parametrize("stored", ["1:", "1:AAAA", "plain text", "1:" + "A" * 80, "ü"])
def test_damaged_secret_is_said_to_be_so(stored: str) -> None:
    with pytest.raises(SecretUnreadable, match="place: a stored secret can't be opened"):
        SECRETS.unseal(stored, "place")


def test_key_is_kept_privately(tmp_path: Path) -> None:
    sealed = Secrets.open(tmp_path).seal("pin", "p")
    assert Secrets.open(tmp_path).unseal(sealed, "p") == "pin"
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]
    assert Secrets.open(tmp_path / "none", key="ab" * 32).unseal(Secrets(b"\xab" * 32).seal("x", "p"), "p") == "x"
    assert not (tmp_path / "none").exists()
    for key in ("ab", "xy" * 32, "ab" * 31):
        with pytest.raises(ValueError, match="expected 64 hexadecimal digits"):
            Secrets.open(tmp_path, key=key)


def on_disk(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.glob("terrazzo.db*"))


async def test_pins_and_passwords_are_nowhere_in_the_clear(tmp_path: Path) -> None:
    database = await Database.open("", data_dir=tmp_path)
    stand = await make_stand(database, tmp_path)
    row = await stand.terminal("G1", pin="very-secret-pin")
    assert row["pin"] == "very-secret-pin"
    await stand.entities.terminals.update(stand.first, "G1", {"pin": "even-more-secret"})
    everything = on_disk(tmp_path)
    assert b"admin-one" in everything
    for secret in (b"very-secret-pin", b"even-more-secret", b"a long password"):
        assert secret not in everything
    await database.close()


async def test_lost_key_stops_the_start_with_a_reason(stand: Stand) -> None:
    await stand.terminal("G1")
    with pytest.raises(SecretUnreadable, match=r"terminal\.pin: .*restore secrets-key"):
        await load_registry(stand.database, Secrets(b"y" * 32))


async def test_files_are_private(tmp_path: Path) -> None:
    database = await Database.open("", data_dir=tmp_path / "new" / "data")
    await database.check()
    assert (tmp_path / "new" / "data").stat().st_mode & 0o777 == 0o700
    for path in (tmp_path / "new" / "data").iterdir():
        assert path.stat().st_mode & 0o777 == 0o600, path
    await database.close()


def test_all_tables_are_named() -> None:
    program = "from terrazzo.metadata.schema import ALL_TABLES as all; print(len(all), len(all[0].metadata.tables))"
    modules = "import pkgutil, importlib, terrazzo.database.tables as t\nfor each in pkgutil.iter_modules(t.__path__):"
    program = f"{modules}\n    importlib.import_module(f'{{t.__name__}}.{{each.name}}')\n{program}"
    named, known = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True).stdout.split()
    assert named == known, "a table is missing in terrazzo.metadata.schema, which knows only what others have loaded"


async def test_migrations_make_the_schema_of_the_definitions(database: Database) -> None:
    def differences(connection: sa.Connection) -> list[object]:
        options = {"compare_type": True, "include_name": lambda name, *_: not str(name).startswith(PREFIX)}
        context = MigrationContext.configure(connection, opts=options)
        return list(compare_metadata(context, ALL_TABLES[0].metadata))

    async with database.engine.connect() as connection:
        assert await connection.run_sync(differences) == []


def test_revisions_are_listed_in_order() -> None:
    script = ScriptDirectory(str(Path(migrations.__file__).parent))
    walked = [revision.revision for revision in script.walk_revisions()]
    assert tuple(reversed(walked)) == migrations.REVISIONS


async def test_opening_again_changes_nothing(empty_url: str, tmp_path: Path) -> None:
    for upgrade in (True, True, False):
        database = await Database.open(empty_url, data_dir=tmp_path, upgrade=upgrade)
        await database.check()
        await database.close()


async def test_processes_that_start_together_migrate_once(empty_url: str, tmp_path: Path) -> None:
    program = (
        "import asyncio, sys; from pathlib import Path; from terrazzo.database.database import Database\n"
        "async def main():\n"
        "    database = await Database.open(sys.argv[1], data_dir=Path(sys.argv[2]))\n"
        "    await database.close()\n"
        "asyncio.run(main())"
    )
    command = [sys.executable, "-c", program, empty_url, str(tmp_path)]
    piped = asyncio.subprocess.PIPE
    processes = [await asyncio.create_subprocess_exec(*command, stderr=piped) for _ in range(4)]
    for process in processes:
        _, errors = await process.communicate()
        assert (process.returncode, errors) == (0, b"")


async def test_newer_database_is_refused(database: Database, url: str, tmp_path: Path) -> None:
    async with database.writing() as connection:
        await connection.execute(sa.text("UPDATE alembic_version SET version_num = '9999'"))
    for upgrade in (True, False):
        with pytest.raises(DatabaseUnusable, match="revision 9999, newer than this version"):
            await Database.open(url, data_dir=tmp_path, upgrade=upgrade)


async def test_empty_database_is_refused_without_upgrade(tmp_path: Path) -> None:
    with pytest.raises(DatabaseOutdated, match="there is no database"):
        await Database.open("", data_dir=tmp_path, upgrade=False)
    sqlite3.connect(tmp_path / "terrazzo.db").close()
    (tmp_path / "terrazzo.db").touch()
    with pytest.raises(DatabaseOutdated, match="the database is empty"):
        await Database.open("", data_dir=tmp_path, upgrade=False)


async def test_unusable_databases_say_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"not a database at all, however long it may be " * 100)
    cases = [
        ("mysql://localhost/x", "expected postgresql\\+asyncpg or sqlite\\+aiosqlite, got mysql"),
        ("no url", "expected postgresql://user:password@host"),
        ("sqlite://", "needs a file"),
        ("sqlite:///:memory:", "needs a file"),
        (f"sqlite:///{tmp_path}/file", "file is not a database"),
        (f"sqlite:///{tmp_path}/file/below.db", "database.url: "),
        (f"postgresql://nobody@127.0.0.1:{free_port()}/x", "database.url: "),
        ("postgresql://host:port/x", "database.url: "),
    ]
    for url, reason in cases:
        with pytest.raises(DatabaseUnusable, match=reason):
            await Database.open(url, data_dir=tmp_path)


async def test_locked_database_is_unavailable_not_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("terrazzo.database.database.BUSY_TIMEOUT_S", 0.1)
    database = await Database.open("", data_dir=tmp_path)
    stand = await make_stand(database, tmp_path)
    other = sqlite3.connect(tmp_path / "terrazzo.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="database: database is locked"):
        await stand.terminal("G1")
    assert (await stand.entities.terminals.page(stand.first)).total == 0
    other.execute("ROLLBACK")
    other.close()
    await stand.terminal("G1")
    await database.close()


async def test_failed_change_is_rolled_back(stand: Stand) -> None:
    async def fail_inside() -> None:
        async with stand.database.writing() as connection:
            await connection.execute(CHANGE.delete())
            raise RuntimeError("on purpose")

    async with stand.database.reading() as connection:
        before = (await connection.execute(sa.select(sa.func.count()).select_from(CHANGE))).scalar()
    with pytest.raises(RuntimeError):
        await fail_inside()
    async with stand.database.reading() as connection:
        assert (await connection.execute(sa.select(sa.func.count()).select_from(CHANGE))).scalar() == before > 0


async def test_old_changes_are_dropped_and_a_sleeper_is_told(stand: Stand) -> None:
    sleeper, awake = ChangeWatcher(stand.database), ChangeWatcher(stand.database)
    await sleeper.start()
    await stand.terminal("G1")
    await stand.terminal("G2")
    await awake.start()
    async with stand.database.writing() as connection:
        await connection.execute(CHANGE.update().values(changed_us=now_us() - KEPT_US - 1))
    await stand.terminal("G3")
    assert await awake.poll() == 1
    with pytest.raises(ChangesLost):
        await sleeper.poll()


async def test_changes_are_told_in_order_and_once(stand: Stand, url: str, tmp_path: Path) -> None:
    database = await Database.open(url, data_dir=tmp_path)
    watcher = ChangeWatcher(database)
    seen: list[str] = []

    async def hear(changes: object) -> None:
        seen.extend(change.uid for change in changes)  # type: ignore[attr-defined]

    watcher.on("terminal", hear)
    await stand.terminal("before")
    await watcher.start()
    await asyncio.gather(*(stand.terminal(f"G{number}") for number in range(10)))
    await stand.entities.terminals.update(stand.first, "G3", {"name": "x"})
    assert await watcher.poll() == 11
    assert sorted(seen) == sorted(f"G{number}" for number in range(10))
    assert await watcher.poll() == 0
    await database.close()
