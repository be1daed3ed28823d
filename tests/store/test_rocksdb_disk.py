"""A disk that takes nothing for seconds holds who waits for it, and nobody else.

rocksdict holds the interpreter's lock inside ``write``: nothing may go to the disk there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from terrazzo_adapters.keyvalue.database import KeyValueDatabase
from terrazzo_broker.persistence.database import StateDatabase

VALUE = bytes(range(256)) * 1_024  # 256 KiB


class Kind(NamedTuple):
    """A database: how it is opened, and the two steps of a commit."""

    open: Callable[[Path], object]
    write: Callable[[object, bytes], None]
    sync: Callable[[object], None]


def open_series(path: Path) -> KeyValueDatabase:
    database = KeyValueDatabase(path, what="store", buffer_bytes=1 << 20)
    database.open()
    return database


def write_series(database: KeyValueDatabase, key: bytes) -> None:
    assert database._written(lambda batch: batch.put(key, VALUE))


def sync_series(database: KeyValueDatabase) -> None:
    database.commit(lambda _batch: None)


def open_state(path: Path) -> StateDatabase:
    database = StateDatabase(path)
    database.open()
    return database


def write_state(database: StateDatabase, key: bytes) -> None:
    assert database.write({key: VALUE})


KINDS = {
    "time series": Kind(open_series, write_series, sync_series),
    "sessions": Kind(open_state, write_state, StateDatabase.sync),
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Kind:
    return KINDS[request.param]


def files(path: Path) -> dict[str, int]:
    """What the database has written for itself, with sizes; its own story (``LOG``) aside."""
    found = {}
    for each in path.iterdir():
        with suppress(FileNotFoundError):  # files that are merged go at any time
            found[each.name] = each.stat().st_size
    return {name: size for name, size in found.items() if not name.startswith("LOG")}


def logs(path: Path) -> dict[str, int]:
    return {name: size for name, size in files(path).items() if name.endswith(".log")}


def test_a_write_puts_nothing_on_the_disk_and_the_sync_does(tmp_path: Path, kind: Kind) -> None:
    database = kind.open(tmp_path)
    before = files(tmp_path)
    kind.write(database, b"key")
    assert files(tmp_path) == before
    kind.sync(database)
    assert sum(logs(tmp_path).values()) > len(VALUE)
    database.close(*(["over"] if isinstance(database, KeyValueDatabase) else []))


def test_no_write_begins_a_new_log_however_much_is_written(tmp_path: Path, kind: Kind) -> None:
    database = kind.open(tmp_path)
    begun, seen = set(logs(tmp_path)), set()
    for number in range(60):  # 15 MiB, several buffers
        before = set(logs(tmp_path))
        kind.write(database, number.to_bytes(2))
        assert set(logs(tmp_path)) <= before
        kind.sync(database)
        seen |= set(logs(tmp_path))
    assert seen > begun
    database.close(*(["over"] if isinstance(database, KeyValueDatabase) else []))


def test_memory_stays_within_its_bound_in_a_folder_of_an_earlier_version(tmp_path: Path) -> None:
    from rocksdict import Options, Rdict

    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(256 << 20)
    Rdict(str(tmp_path), options).close()
    database = open_series(tmp_path)
    most = 0
    for number in range(200):  # 50 MiB
        database.commit(lambda batch, number=number: batch.put(number.to_bytes(2), VALUE))
        most = max(most, database.memory()["writes"])
    assert most <= 4 << 20
    options_now = max(tmp_path.glob("OPTIONS-*")).read_text()
    assert "write_buffer_size=4194304" in options_now
    assert set(database.memory()) == {"writes", "blocks", "files"}
    database.close("over")
