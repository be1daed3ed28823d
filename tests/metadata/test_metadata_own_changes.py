"""A process hears of its own changes once, of others' changes too, and of what it was kept from hearing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from registry_stand import Stand, terminal_values

from terrazzo.async_engine import AsyncConnection
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.changes import ChangeWatcher
from terrazzo.database.database import Database
from terrazzo.database.own_changes import MetadataChange, OwnChanges
from terrazzo.domain.registry import Registry
from terrazzo.errors import Conflict, Unavailable
from terrazzo.metadata.entities import Entities


class Heard:
    """What a watcher tells of terminals."""

    def __init__(self, database: Database) -> None:
        self.uids: list[str] = []
        self._watcher = ChangeWatcher(database)
        self._watcher.on("terminal", self._hear)

    async def start(self) -> Heard:
        await self._watcher.start()
        return self

    async def poll(self) -> list[str]:
        self.uids.clear()
        await self._watcher.poll()
        return list(self.uids)

    async def _hear(self, changes: Any) -> None:
        self.uids += [change.uid for change in changes]


@pytest.fixture
async def other(url: str, tmp_path: Path, database: Database) -> AsyncIterator[Database]:
    """The same database, as another process opens it."""
    opened = await Database.open(url, data_dir=tmp_path)
    yield opened
    await opened.close()


async def test_own_changes_are_not_heard_again_and_others_are(stand: Stand, other: Database, tmp_path: Path) -> None:
    here, there = await Heard(stand.database).start(), await Heard(other).start()
    await stand.terminal("g1")
    assert (await here.poll(), await there.poll()) == ([], ["g1"])
    elsewhere = Entities.open(other, Registry(), Secrets.open(tmp_path))
    await elsewhere.terminals.create(stand.first, terminal_values("g2", config_id=stand.config))
    await stand.entities.terminals.update(stand.first, "g1", {"name": "new"})
    assert (await here.poll(), await there.poll()) == (["g2"], ["g1"])
    assert (await here.poll(), await there.poll()) == ([], [])


async def test_a_first_login_is_heard_elsewhere_only(stand: Stand, other: Database) -> None:
    await stand.terminal("g1")
    here, there = await Heard(stand.database).start(), await Heard(other).start()
    await stand.entities.terminals.set_all_activated({"g1": 1})
    assert (await here.poll(), await there.poll()) == ([], ["g1"])


async def test_what_is_interrupted_after_its_commit_is_heard(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that hangs up cancels its request; the registry in memory must be right all the same."""
    here, writing = await Heard(stand.database).start(), stand.database.writing

    @asynccontextmanager
    async def cancelled_after_the_commit() -> AsyncIterator[AsyncConnection]:
        async with writing() as connection:
            yield connection
        raise asyncio.CancelledError

    monkeypatch.setattr(stand.database, "writing", cancelled_after_the_commit)
    with pytest.raises(asyncio.CancelledError):
        await stand.terminal("g1")
    monkeypatch.undo()
    assert stand.registry.terminal("g1") is None
    assert await here.poll() == ["g1"]
    await stand.terminal("g2")
    assert await here.poll() == []


async def test_a_refused_change_leaves_nothing_to_be_heard(stand: Stand) -> None:
    here = await Heard(stand.database).start()
    await stand.terminal("g1")
    with pytest.raises(Conflict):
        await stand.terminal("g1")
    await stand.entities.terminals.update(stand.first, "g1", {"name": "new"})
    assert await here.poll() == []


def interrupted(own: OwnChanges, changed: list[MetadataChange], error: Exception) -> None:
    with own.told_at_once() as changes:
        changes += changed
        raise error


def test_an_uncertain_commit_counts_as_missed() -> None:
    own, change = OwnChanges("me"), MetadataChange("terminal", 1, "g1")
    with pytest.raises(Unavailable):
        interrupted(own, [change], Unavailable("database: gone during the commit"))
    assert [own.was_told(change), own.was_told(change)] == [False, True]


def test_too_many_missed_changes_are_all_heard() -> None:
    own = OwnChanges("me")
    changes = [MetadataChange("terminal", number, "g") for number in range(OwnChanges.MOST + 1)]
    with pytest.raises(RuntimeError):
        interrupted(own, changes, RuntimeError())
    assert not own.was_told(MetadataChange("terminal", -1, "never changed"))
