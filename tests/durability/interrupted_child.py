"""A change of a data folder's files, keys or rows, in a process that is ended by ``kill -9`` before one of its steps.

``interrupted_child.py CHANGE FOLDER NUMBER``: before the NUMBERth step; says which. With fewer steps it ends well.
A step is a file that is made, renamed, linked or removed (by Python: what the databases do with theirs is theirs), a
transaction that has written something and is about to be committed, and a commit of the store.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from sqlalchemy import event

from terrazzo.access import key_rotation
from terrazzo.access.users import ensure_admin
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.usage import count_missing
from terrazzo.demo.passwords import DemoPasswords
from terrazzo.domain.registry import Registry
from terrazzo.line_file import LineFile
from terrazzo.metadata import former_terminals, sealed_columns
from terrazzo.metadata.definitions.rules import RULE
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.excesses import ALL_COUNTED
from terrazzo.metadata.former_terminals import FormerTerminals
from terrazzo.metadata.registry_feed import load_registry
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.terminals.former_data import FormerDataRetention, note_former_terminals

NOW_US = 1_700_000_000_000_000
KEPT = ("first line", "second line")
COUNTED = ("label", "rule", "terminal")
_OF_FILES = frozenset({"os.rename", "os.link", "os.remove", "os.rmdir", "os.mkdir"})
_WRITES = ("INSERT", "UPDATE", "DELETE")


class Steps:
    """Counts steps in a folder, from when it is told to watch, and ends the process before the ``last`` one."""

    def __init__(self, folder: Path, last: int) -> None:
        self._folder = str(folder)
        self._left = last
        self._has_written = False

    def step(self, what: str) -> None:
        """Is about to be done."""
        self._left -= 1
        if self._left == 0:
            print(what, flush=True)
            os.kill(os.getpid(), signal.SIGKILL)

    def watch_files(self) -> None:
        """From now on changes of files in the folder are steps."""
        sys.addaudithook(self._on_audit)

    def watch(self, database: Database) -> Database:
        """From now on its transactions are steps."""
        engine = database.engine.sync_engine
        event.listen(engine, "before_cursor_execute", self._on_statement)
        event.listen(engine, "commit", self._on_commit)
        return database

    def _on_audit(self, name: str, arguments: tuple[Any, ...]) -> None:
        is_open = name == "open"
        if (name in _OF_FILES or is_open) and isinstance(arguments[0], str | os.PathLike):
            path = os.fspath(arguments[0])
            if path.startswith(self._folder) and not (is_open and not arguments[2] & os.O_CREAT):
                self.step(f"{name} {path.removeprefix(self._folder)}")

    def _on_statement(self, _connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        self._has_written = self._has_written or statement.lstrip().startswith(_WRITES)

    def _on_commit(self, _connection: Any) -> None:
        if self._has_written:
            self._has_written = False
            self.step("commit")


class SteppedStore:
    """A store whose commits are steps."""

    def __init__(self, store: TimeSeriesStore, steps: Steps) -> None:
        self._store = store
        self._steps = steps

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, *given: Any, **more: Any) -> None:
        self._steps.step("append")
        await self._store.append(*given, **more)

    async def replace(self, *given: Any, **more: Any) -> bool:
        self._steps.step("replace")
        return await self._store.replace(*given, **more)


async def open_store(folder: Path, steps: Steps) -> Any:
    from open_stores import open_rocks  # few changes need what it loads

    return SteppedStore(await open_rocks(folder / "series"), steps)


@asynccontextmanager
async def opened(folder: Path, steps: Steps) -> AsyncIterator[Database]:
    """The folder's database, whose transactions are steps from now on, as are changes of files."""
    database = await Database.open("", data_dir=folder)
    steps.watch_files()
    try:
        yield steps.watch(database)
    finally:
        await database.close()


async def rotate_secrets(folder: Path, steps: Steps) -> None:
    key_rotation.reseal = partial(sealed_columns.reseal, at_once=3)  # type: ignore[assignment]
    async with opened(folder, steps) as database:
        await key_rotation.rotate_secrets_key(database, folder, settle_s=0)


async def rotate_tokens(folder: Path, steps: Steps) -> None:
    steps.watch_files()
    key_rotation.rotate_token_key(folder)


async def seal_what_is_clear(folder: Path, steps: Steps) -> None:
    sealed_columns.reseal = partial(sealed_columns.reseal, at_once=1)  # type: ignore[assignment]
    async with opened(folder, steps) as database:
        await sealed_columns.seal_clear(database, Secrets.open(folder), RULE)


async def count(folder: Path, steps: Steps) -> None:
    async with opened(folder, steps) as database:
        await count_missing(database, [each for each in ALL_COUNTED if each.kind in COUNTED])


async def note_former(folder: Path, steps: Steps) -> None:
    former_terminals._AT_ONCE = 2  # type: ignore[misc]
    store = await open_store(folder, steps)
    async with opened(folder, steps) as database:
        registry = await load_registry(database, Secrets.open(folder))
        await note_former_terminals(store, FormerTerminals(database), registry, NOW_US)


async def purge_former(folder: Path, steps: Steps) -> None:
    store = await open_store(folder, steps)
    async with opened(folder, steps) as database:
        retention = FormerDataRetention(store, FormerTerminals(database), retention_us=0, clock=lambda: NOW_US)
        await retention.run()


async def make_admin(folder: Path, steps: Steps) -> None:
    async with opened(folder, steps) as database:
        await ensure_admin(Entities.open(database, Registry(), Secrets.open(folder)), data_dir=folder)


async def make_demo_passwords(folder: Path, steps: Steps) -> None:
    steps.watch_files()
    DemoPasswords.open(folder)


async def restore(folder: Path, steps: Steps) -> None:
    from restored_backup import TARGET, manifest_in  # few changes need what it loads

    from terrazzo.backup.restoring import restore_files
    from terrazzo_adapters.backup import FolderTarget

    target = FolderTarget(folder / TARGET)
    steps.watch_files()
    restore_files(target, manifest_in(folder), folder / "new", sealer=None, tell=lambda done, size: None)


async def renew_lines(folder: Path, steps: Steps) -> None:
    file = LineFile(folder / "lines", "nothing would happen")
    steps.watch_files()
    file.rewrite(KEPT)
    file.close()


CHANGES: dict[str, Callable[[Path, Steps], Awaitable[None]]] = {
    change.__name__: change
    for change in (
        rotate_secrets,
        rotate_tokens,
        seal_what_is_clear,
        count,
        note_former,
        purge_former,
        make_admin,
        make_demo_passwords,
        restore,
        renew_lines,
    )
}


async def main(name: str, folder: Path, last: int) -> None:
    """Makes the change, as far as it is let."""
    await CHANGES[name](folder, Steps(folder, last))
    print("done", flush=True)
    os._exit(0)  # the stores are left as they are, as by all the others


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])))
