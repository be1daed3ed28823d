"""All records of a table, as rows and by column: the same, whatever is sealed, absent or JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from registry_stand import Stand
from sealed_stand import fill

from terrazzo.access.key_rotation import rotate_secrets_key
from terrazzo.crypto.secrets import Secrets
from terrazzo.metadata.registry_feed import load_registry
from terrazzo.metadata.repositories import repository

TERMINAL = ("uid", "pin", "rsa_privatekey", "config_id", "activated", "series", "topic")
OBJECT = ("uid", "mapping_id", "terminal_list", "secret", "is_available")


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repository, "_CHUNK", 2)


async def all_tuples(records: repository.EntityRepository, columns: tuple[str, ...]) -> list[tuple[Any, ...]]:
    return [values async for page in records.every_column(columns) for values in zip(*page, strict=True)]


async def check_alike(records: repository.EntityRepository, columns: tuple[str, ...]) -> int:
    rows = [row async for row in records.every(columns)]
    tuples = await all_tuples(records, columns)
    assert tuples == [(row["id"], *(row[name] for name in columns)) for row in rows]
    return len(rows)


async def test_rows_and_tuples_are_alike(stand: Stand) -> None:
    await fill(stand)
    for number in range(3):
        await stand.terminal(f"p{number}", pin=f"pin-{number}")
    listed = ["p2", "p0"]
    await stand.entities.objects.create(stand.first, {"name": "listed", "terminal_list": listed})
    await stand.entities.objects.create(stand.first, {"name": "bare"})
    assert await check_alike(stand.entities.terminals, TERMINAL) >= 3
    assert await check_alike(stand.entities.objects, OBJECT) >= 2
    found = await all_tuples(stand.entities.objects, ("name", "terminal_list"))
    assert {name: uids for _, name, uids in found}["listed"] == listed


async def test_none_are_none(stand: Stand) -> None:
    assert await all_tuples(stand.entities.objects, OBJECT) == []


async def test_secrets_that_two_keys_have_sealed_are_open(stand: Stand, tmp_path: Path) -> None:
    await stand.terminal("before", pin="sealed before")
    await rotate_secrets_key(stand.database, tmp_path, settle_s=0)
    await stand.terminal("after", pin="sealed after")
    assert await check_alike(stand.entities.terminals, TERMINAL) == 2
    loaded = await load_registry(stand.database, Secrets.open(tmp_path))
    pins = {each.uid: each.pin for each in loaded.terminals()}
    assert pins == {"before": "sealed before", "after": "sealed after"}


async def test_what_is_loaded_is_what_was_announced(stand: Stand, tmp_path: Path) -> None:
    await fill(stand)
    await stand.terminal("named", topic="pub:r", access="pub")
    await stand.entities.objects.create(stand.first, {"name": "listed", "terminal_list": ["named"]})
    loaded = await load_registry(stand.database, Secrets.open(tmp_path))
    key = lambda each: each.uid  # noqa: E731
    assert sorted(loaded.terminals(), key=key) == sorted(stand.registry.terminals(), key=key)
    for object_id in stand.registry.object_ids():
        assert loaded.object_terminals(object_id) == stand.registry.object_terminals(object_id)
