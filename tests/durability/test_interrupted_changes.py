"""Changes of files, keys and rows in several steps: killed between any two, nothing is lost, and the next ends them.

Each is killed (``kill -9``) before its first step, its second, and so on, each time in a copy of the same folder; what
comes next is what the next start, or the same command again, does.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa

from durability.interrupted_child import KEPT, NOW_US
from durability.restored_backup import CONTENTS, TARGET, manifest_in, put_backup
from loaded_process import run_loaded_text
from metadata.registry_stand import Stand, make_stand, terminal_values
from metadata.sealed_stand import HOOK, check_readable, fill
from migrated import PASSWORD, seed
from open_stores import open_rocks
from quotas.test_quotas_records import counted_anew, kept
from support import shared_modules
from terrazzo.access.key_rotation import rotate_secrets_key, rotate_token_key
from terrazzo.access.tokens import KEY_BYTES as TOKEN_BYTES
from terrazzo.access.tokens import KEY_FILE as TOKEN_FILE
from terrazzo.access.users import ADMIN, PASSWORD_FILE, ensure_admin
from terrazzo.backup.restoring import RESTORING, NotEmpty, restore_files
from terrazzo.cli.start_checks import check_data_dir
from terrazzo.crypto.key_file import load_key, read_key, remove_drafts
from terrazzo.crypto.passwords import verify_password
from terrazzo.crypto.secrets import KEY_BYTES, KEY_FILE, OLD_KEY_FILE, Secrets
from terrazzo.database.database import Database
from terrazzo.database.tables.registry import FORMER_TERMINAL
from terrazzo.database.tables.usage import COMPANY_USAGE
from terrazzo.database.usage import count_missing
from terrazzo.demo.passwords import DemoPasswords
from terrazzo.demo.site import USERS
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.registry import Registry
from terrazzo.line_file import LineFile
from terrazzo.metadata.definitions.rules import RULE
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.excesses import ALL_COUNTED
from terrazzo.metadata.former_terminals import FormerTerminals
from terrazzo.metadata.registry_feed import load_registry
from terrazzo.metadata.sealed_columns import seal_clear
from terrazzo.ports.store import Record
from terrazzo.terminals.former_data import FormerDataRetention, note_former_terminals
from terrazzo_adapters.backup import FolderTarget

CHILD = Path(__file__).with_name("interrupted_child.py")
MOST_STEPS = 60
GONE = ("gone-1", "gone-2", "gone-3")

Prepare = Callable[[Path], Awaitable[None]]
Check = Callable[[Path], Awaitable[None]]


def killed_at(change: str, folder: Path, number: int) -> str:
    """Makes the change in a process that is killed before its ``number``th step; which that is, empty: it has ended."""
    program = [str(CHILD), change, str(folder), str(number)]
    done = run_loaded_text(program, env=shared_modules())
    if done.returncode == 0:
        assert done.stdout == "done\n"
        return ""
    assert done.returncode == -9, done.stderr
    return done.stdout.strip()


async def cut_everywhere(change: str, folder: Path, check: Check) -> list[str]:
    """Cuts it before each of its steps, and looks at what is there then; the steps."""
    steps: list[str] = []
    while len(steps) < MOST_STEPS:
        copy = folder.with_name(f"{folder.name}-{len(steps)}")
        shutil.copytree(folder, copy)
        step = await asyncio.to_thread(killed_at, change, copy, len(steps) + 1)
        remove_old_drafts(copy)
        await check(copy)
        shutil.rmtree(copy)
        if not step:
            return steps
        steps.append(step)
    raise AssertionError(f"more steps than expected: {steps}")


def remove_old_drafts(folder: Path) -> None:
    """As a start does it a minute later; nothing else may be left of them."""
    for path in folder.glob(".*"):
        os.utime(path, (1, 1))
    remove_drafts(folder)
    assert [*folder.glob(".*")] == []


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Database]:
    database = await Database.open("", data_dir=folder)
    try:
        yield database
    finally:
        await database.close()


@asynccontextmanager
async def stand_in(folder: Path) -> AsyncIterator[Stand]:
    """Two companies, each with an administrator and a configuration."""
    async with opened(seed(folder)) as database:
        yield await make_stand(database, folder)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty data folder."""
    made = tmp_path / "data"
    made.mkdir()
    return made


async def test_the_rotation_of_the_key_of_secrets(folder: Path) -> None:
    async with stand_in(folder) as stand:
        await fill(stand)
    first = read_key(folder / KEY_FILE, size=KEY_BYTES)

    async def check(copy: Path) -> None:
        async with opened(copy) as database:
            await check_readable(database, Secrets.open(copy))
            await rotate_secrets_key(database, copy, settle_s=0)
            assert not (copy / OLD_KEY_FILE).exists()
            newest = read_key(copy / KEY_FILE, size=KEY_BYTES)
            assert newest not in (None, first)
            await check_readable(database, Secrets(newest or b""))

    steps = await cut_everywhere("rotate_secrets", folder, check)
    made = ["os.mkdir", "open", "os.link", "os.remove", "open", "os.rename"]
    assert [step.split()[0] for step in steps[: len(made)]] == made
    assert steps[len(made) : -1] == ["commit"] * 6, "two of terminals, three of other entities, and that it was done"
    assert steps[-1] == f"os.remove /{OLD_KEY_FILE}"


async def test_the_rotation_of_the_key_of_tokens(folder: Path) -> None:
    first = load_key(folder / TOKEN_FILE, size=TOKEN_BYTES)

    async def check(copy: Path) -> None:
        assert load_key(copy / TOKEN_FILE, size=TOKEN_BYTES), "one of both, and whole"
        rotate_token_key(copy)
        assert load_key(copy / TOKEN_FILE, size=TOKEN_BYTES) != first

    assert len(await cut_everywhere("rotate_tokens", folder, check)) == 2


async def test_sealing_what_an_older_version_kept_in_the_clear(folder: Path) -> None:
    async with stand_in(folder) as stand:
        await fill(stand)
        for number in range(2):
            await stand.entities.rules.create(stand.first, {"name": f"hook-{number}", **HOOK})
        async with stand.database.writing() as connection:
            await connection.execute(RULE.table.update().values(url=HOOK["url"]))

    async def check(copy: Path) -> None:
        async with opened(copy) as database:
            secrets = Secrets.open(copy)
            await seal_clear(database, secrets, RULE)
            assert await seal_clear(database, secrets, RULE) == 0
            async with database.reading() as connection:
                urls = (await connection.execute(sa.select(RULE.table.c.url))).scalars().all()
            assert len(urls) == 3
            assert {secrets.unseal(url, "rule.url") for url in urls} == {HOOK["url"]}

    assert await cut_everywhere("seal_what_is_clear", folder, check) == ["commit"] * 3


async def test_counting_what_no_start_has_counted(folder: Path) -> None:
    async with stand_in(folder) as stand:
        await fill(stand)
        async with stand.database.writing() as connection:
            await connection.execute(COMPANY_USAGE.delete())

    async def check(copy: Path) -> None:
        async with opened(copy) as database:
            await count_missing(database, ALL_COUNTED)
            assert await kept(database) == await counted_anew(database)
            assert await count_missing(database, ALL_COUNTED) == []

    assert await cut_everywhere("count", folder, check) == ["commit"] * 3, "those without rows, and two kinds"


async def test_noting_terminals_that_were_deleted_before(folder: Path) -> None:
    await fill_series(folder)

    async def check(copy: Path) -> None:
        async with opened(copy) as database:
            registry, store = await load_registry(database, Secrets.open(copy)), await open_rocks(copy / "series")
            await note_former_terminals(store, FormerTerminals(database), registry, NOW_US)
            assert await store.notes("former-terminals") != {}
            await store.close()
            async with database.reading() as connection:
                uids = (await connection.execute(sa.select(FORMER_TERMINAL.c.uid))).scalars().all()
            assert sorted(uids) == sorted(GONE), "each once, and not who is there"

    assert await cut_everywhere("note_former", folder, check) == ["commit", "commit", "append"]


async def test_ending_what_deleted_terminals_have_reported(folder: Path) -> None:
    await fill_series(folder)
    async with opened(folder) as database:
        await FormerTerminals(database).add_found(GONE, 1)

    async def check(copy: Path) -> None:
        async with opened(copy) as database:
            store, former = await open_rocks(copy / "series"), FormerTerminals(database)
            await FormerDataRetention(store, former, retention_us=0, clock=lambda: NOW_US).run()
            assert await former.unpurged_before(NOW_US, 10) == []
            for uid, count in {**dict.fromkeys(GONE, 0), "there": 5}.items():
                for series in (f"g/{uid}/r", f"x/{uid}"):
                    assert (await store.page([series], 0, NOW_US, offset=0, limit=0)).total == count
            await store.close()

    steps = await cut_everywhere("purge_former", folder, check)
    assert steps == ["replace", "replace", "commit"] * len(GONE)


async def test_making_the_first_administrator(folder: Path) -> None:
    seed(folder)

    async def check(copy: Path) -> None:
        async with opened(copy) as database:
            entities = Entities.open(database, Registry(), Secrets.open(copy))
            await ensure_admin(entities, data_dir=copy)
            row = await entities.users.by_name(ADMIN)
            assert row is not None
            assert await verify_password(row["password_hash"], (copy / PASSWORD_FILE).read_text().strip())
            assert (await entities.users.page(SYSTEM)).total == (await entities.companies.page(SYSTEM)).total == 1

    steps = await cut_everywhere("make_admin", folder, check)
    assert steps.count("commit") == 2, "company and user"
    assert sum(step.startswith("os.link") for step in steps) == 2, "key and password"


async def test_a_password_of_a_start_that_broke_off_is_not_told_where_another_one_counts(folder: Path) -> None:
    seed(folder)
    (folder / PASSWORD_FILE).write_text("of the start that broke off\n")
    async with opened(folder) as database:
        entities = Entities.open(database, Registry(), Secrets.open(folder))
        first = await ensure_admin(entities, data_dir=folder, password=PASSWORD)
        assert first is not None
        row = await entities.users.by_name(ADMIN)
    assert row is not None
    assert await verify_password(row["password_hash"], PASSWORD)
    assert PASSWORD_FILE not in os.listdir(folder)


async def test_making_the_demos_passwords(folder: Path) -> None:

    async def check(copy: Path) -> None:
        given = DemoPasswords.open(copy)
        again = DemoPasswords.open(copy)
        assert {given.of(name) for name in USERS} == {again.of(name) for name in USERS}

    assert len(await cut_everywhere("make_demo_passwords", folder, check)) == 2


async def test_restoring_a_backup(folder: Path) -> None:
    """A folder with half a restore says so, and ``serve`` refuses it; one without that has all of it."""
    put_backup(folder)

    async def check(copy: Path) -> None:
        new = copy / "new"
        if (new / RESTORING).exists():
            assert [each.found for each in check_data_dir(new)] == [f"{new} has a restore that did not end"]
            with pytest.raises(NotEmpty, match="remove it"):
                restore_again(copy)
            shutil.rmtree(new)
        if not new.exists() or not any(new.iterdir()):
            restore_again(copy)
        assert {path: (new / path).read_bytes() for path in CONTENTS} == CONTENTS

    steps = await cut_everywhere("restore", folder, check)
    assert steps[-1].startswith("os.rmdir")
    assert sum(step.startswith("os.rename") for step in steps) == 3


def restore_again(copy: Path) -> None:
    target = FolderTarget(copy / TARGET)
    restore_files(target, manifest_in(copy), copy / "new", sealer=None, tell=lambda done, size: None)


async def test_making_a_file_of_lines_anew(folder: Path) -> None:
    before = ("first line", "gone", "second line")
    file = LineFile(folder / "lines", "nothing would happen")
    file.rewrite(before)
    file.close()

    async def check(copy: Path) -> None:
        file = LineFile(copy / "lines", "nothing would happen")
        assert tuple(file.load()) in (before, KEPT), "one of both, and whole"
        file.rewrite(KEPT)
        file.close()
        assert tuple(file.load()) == KEPT

    assert len(await cut_everywhere("renew_lines", folder, check)) == 2


async def fill_series(folder: Path) -> None:
    """Reports of a terminal that is there and of three that are gone, which only the store knows."""
    async with stand_in(folder) as stand:
        await stand.entities.terminals.create(stand.first, terminal_values("there", config_id=stand.config))
    store = await open_rocks(folder / "series")
    names = [name for uid in ("there", *GONE) for name in (f"g/{uid}/r", f"x/{uid}")]
    await store.append([Record(name, 1_000_000 * number, b"{}") for name in names for number in range(1, 6)])
    await store.close()


def test_a_start_removes_drafts_that_nobody_will_name(tmp_path: Path) -> None:
    """Not what another process is about to give its name, and nothing that has one."""
    names = [
        ".secrets-key.0123abcd",
        ".token-key.89abcdef",
        ".backup",
        "secrets-key",
        ".secrets-key.new",
        ".x.0123ABCD",
    ]
    for name in names:
        (tmp_path / name).write_text("key")
    for name in (names[0], *names[2:]):
        os.utime(tmp_path / name, (1, 1))
    (tmp_path / ".folder.01234567").mkdir()
    assert remove_drafts(tmp_path) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names[1:], ".folder.01234567"])
