"""A log of RocksDB's that can't be read to its end: told, kept, and the database opens; an unfinished end is none."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from terrazzo_broker.persistence.database import StateDatabase
from terrazzo_broker.persistence.rocksdb_log import DAMAGED
from terrazzo_broker.storage import StorageError

KEYS = [b"%03d" % number for number in range(100)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of a database that was not closed, in ``tmp_path / "copy"``."""
    database = StateDatabase(tmp_path / "state")
    database.open()
    for key in KEYS:
        database.commit({key: key * 50})
    copy = tmp_path / "copy"
    copy.mkdir()
    for path in (tmp_path / "state").iterdir():
        (copy / path.name).write_bytes(path.read_bytes())
    database.close()
    (copy / "LOCK").unlink()
    (log,) = copy.glob("*.log")
    return log


def keys_in(folder: Path) -> list[bytes]:
    database = StateDatabase(folder)
    database.open()
    try:
        return [key for key, _ in database.items()]
    finally:
        database.close()


def flip(path: Path, place: int) -> bytes:
    damaged = bytearray(path.read_bytes())
    damaged[place] ^= 1
    path.write_bytes(damaged)
    return bytes(damaged)


def test_damage_in_the_middle_is_told_and_the_log_is_kept(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    damaged = flip(log, log.stat().st_size // 2)
    with caplog.at_level(logging.ERROR):
        found = keys_in(log.parent)
    assert found == KEYS[: len(found)]
    assert 0 < len(found) < len(KEYS)
    assert "can't be read to its end (Corruption: checksum mismatch" in caplog.text
    assert (log.parent / DAMAGED / log.name).read_bytes() == damaged
    caplog.clear()
    assert keys_in(log.parent) == found
    assert caplog.text == "", "it is told once; doctor tells it on"
    assert (log.parent / DAMAGED).exists()


def test_a_record_that_was_being_written_is_no_damage(log: Path, caplog: pytest.LogCaptureFixture) -> None:
    log.write_bytes(log.read_bytes()[:-20])
    assert keys_in(log.parent) == KEYS[:-1]
    assert caplog.text == ""
    assert not (log.parent / DAMAGED).exists()


def test_other_damage_is_refused_as_before(log: Path) -> None:
    (manifest,) = log.parent.glob("MANIFEST-*")
    flip(manifest, manifest.stat().st_size // 2)
    with pytest.raises(StorageError, match="Corruption"):
        keys_in(log.parent)
    assert [path.name for path in log.parent.iterdir() if path.name.startswith(DAMAGED)] == []
