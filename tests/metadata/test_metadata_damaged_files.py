"""A disk that has damaged SQLite's file or its log: what is lost is counted and told, and everything is kept."""

from __future__ import annotations

import logging
import shutil
import sqlite3
from pathlib import Path
from random import Random

import pytest

from terrazzo.database import wal_damage
from terrazzo.database.damaged_file import DatabaseDamaged
from terrazzo.database.database import FILE, Database
from terrazzo.database.wal_damage import KEPT, find_lost

ROWS = 300
FRAME = 24 + 4_096
FLIPS = 60


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as a crash leaves it: its log has more than one round of checkpoints, and a row in each transaction."""
    folder = tmp_path_factory.mktemp("crashed")
    database = sqlite3.connect(folder / "running.db", isolation_level=None)
    for statement in ("PRAGMA journal_mode=WAL", "PRAGMA wal_autocheckpoint=0", "CREATE TABLE t (n, x)"):
        database.execute(statement)
    for number in range(ROWS):
        database.execute("INSERT INTO t VALUES (?, ?)", (number, "x" * 2_000))
        if number == ROWS // 2:
            database.execute("PRAGMA wal_checkpoint(RESTART)")
    for end in ("", "-wal"):
        shutil.copy(folder / f"running.db{end}", folder / f"{FILE}{end}")
    database.close()
    return folder


def copied(crashed: Path, folder: Path) -> Path:
    """Its database, with its log, for a test of its own."""
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(crashed / f"{FILE}{end}", folder)
    return folder / FILE


def log_of(file: Path) -> Path:
    return file.with_name(f"{file.name}-wal")


def flip(file: Path, place: int, bit: int = 1) -> bytes:
    data = bytearray(file.read_bytes())
    data[place] ^= bit
    file.write_bytes(data)
    return bytes(data)


def rows_in(file: Path) -> int:
    database = sqlite3.connect(file)
    try:
        return int(database.execute("SELECT count(*) FROM t").fetchone()[0])
    finally:
        database.close()


def test_a_log_that_is_whole_has_lost_nothing(crashed: Path, tmp_path: Path) -> None:
    log = log_of(crashed / FILE)
    assert find_lost(log) is None
    for number, size in enumerate((0, 31, 32, 60, 32 + FRAME - 1, log.stat().st_size - 1, log.stat().st_size - FRAME)):
        short = log_of(copied(crashed, tmp_path / str(number)))
        short.write_bytes(log.read_bytes()[:size])
        assert find_lost(short) is None, "an end that was being written"
    assert find_lost(tmp_path / "none-wal") is None


@pytest.mark.parametrize("seed", range(3))
def test_what_sqlite_leaves_out_is_told_whichever_bit_flips(crashed: Path, tmp_path: Path, seed: int) -> None:
    """SQLite itself says what it reads; a row is a transaction, the last of which may have been being written."""
    chance, size = Random(seed), log_of(crashed / FILE).stat().st_size
    found = 0
    for number in range(FLIPS // 3):
        file = copied(crashed, tmp_path / str(number))
        place = chance.randrange(size) if number % 4 else chance.randrange(32 + 24)
        flip(log_of(file), place, 1 << chance.randrange(8))
        lost = find_lost(log_of(file))
        missing = ROWS - rows_in(file)
        assert missing <= 1 if lost is None else lost.count in (missing, missing - 1), f"byte {place}"
        found += lost is not None
    assert found > FLIPS // 12


async def test_a_damaged_log_is_kept_and_told_at_the_start(
    crashed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder = tmp_path / "data"
    file = copied(crashed, folder)
    whole, damaged = file.read_bytes(), flip(log_of(file), 32 + 10 * FRAME + 100)
    with caplog.at_level(logging.ERROR):
        await (await Database.open("", data_dir=folder)).close()
    assert "frame 11 does not fit its checksum, and " in caplog.text
    assert "restore from a backup" in caplog.text
    assert (folder / KEPT / log_of(file).name).read_bytes() == damaged
    assert (folder / KEPT / FILE).read_bytes() == whole
    caplog.clear()
    await (await Database.open("", data_dir=folder)).close()
    assert caplog.text == "", "it is told once; doctor tells it on"
    assert (folder / KEPT).exists()


def test_of_a_long_log_no_more_than_a_bound_is_looked_at(
    crashed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = copied(crashed, tmp_path / "data")
    flip(log_of(file), 32 + 10 * FRAME + 100)
    assert find_lost(log_of(file)) is not None
    monkeypatch.setattr(wal_damage, "_MOST_BYTES", 10 * FRAME)
    assert find_lost(log_of(file)) is None


async def test_what_cannot_be_kept_is_told_nevertheless(
    crashed: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "data"
    flip(log_of(copied(crashed, folder)), 32 + 10 * FRAME + 100)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(shutil, "copy2", full)
    await (await Database.open("", data_dir=folder)).close()
    assert "They can't be kept: No space left on device" in caplog.text
    assert [path.name for path in folder.iterdir() if path.name.startswith(KEPT)] == []


@pytest.mark.parametrize("upgrade", [True, False])
@pytest.mark.parametrize("place", [5, 100, 4_096])
async def test_a_damaged_file_is_told_and_nothing_is_changed(tmp_path: Path, place: int, *, upgrade: bool) -> None:
    """Of its head, of the page with the schema's tree, and of a page with rows of the schema."""
    await (await Database.open("", data_dir=tmp_path)).close()
    file = tmp_path / FILE
    data = bytearray(file.read_bytes())
    data[place : place + 8] = bytes(8)
    file.write_bytes(data)
    log_of(file).write_bytes(b"what stands in the log")
    with pytest.raises(DatabaseDamaged) as told:
        await Database.open("", data_dir=tmp_path, upgrade=upgrade)
    assert f"{file} is damaged: " in str(told.value)
    assert told.value.advice.startswith("nothing in it was changed: look after the disk")
    assert "terrazzo restore" in told.value.advice
    assert ".recover" in told.value.advice
    assert file.read_bytes() == bytes(data)
    assert log_of(file).read_bytes() == b"what stands in the log"
