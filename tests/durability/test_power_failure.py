"""A power failure that takes all that was not synced, names too, takes nothing that was acknowledged."""

from __future__ import annotations

import os
import random
import sqlite3
import stat
from pathlib import Path

import pytest
from power_rounds import ENOUGH, fail_again_and_again
from test_acknowledged_is_stored import TERMINALS
from unsynced_disk import Disk
from unsynced_mount import mounted, power_failure, require_fuse

from length import rounds

ROUNDS = rounds(2, 20)
FILE = stat.S_IFREG | 0o600


def left(disk: Disk, target: Path, *, some: bool = False, seed: int = 1) -> dict[str, bytes]:
    """What a failure leaves, by path."""
    disk.after_power_failure(target, random.Random(seed), some=some)
    files = (path for path in target.rglob("*") if path.is_file())
    return {str(path.relative_to(target)): path.read_bytes() for path in files}


@pytest.fixture
def disk(tmp_path: Path) -> Disk:
    """One on which ``/old`` is synced."""
    folder = tmp_path / "before"
    folder.mkdir()
    (folder / "old").write_bytes(b"old")
    made = Disk(tmp_path / "backing")
    made.take_in(folder)
    return made


def test_what_was_synced_before_is_left(disk: Disk, tmp_path: Path) -> None:
    assert left(disk, tmp_path / "left") == {"old": b"old"}


def test_a_write_is_left_when_its_file_was_synced(disk: Disk, tmp_path: Path) -> None:
    old = disk.find("/old")
    disk.write(old, b"new content", 0)
    assert left(disk, tmp_path / "1") == {"old": b"old"}
    disk.sync_file(old)
    disk.truncate(old, 3)
    assert left(disk, tmp_path / "2") == {"old": b"new content"}
    disk.sync_file(old)
    assert left(disk, tmp_path / "3") == {"old": b"new"}


def test_a_new_file_is_left_when_its_folder_was_synced(disk: Disk, tmp_path: Path) -> None:
    new = disk.make("/new", FILE)
    disk.write(new, b"x" * 5000, 0)
    disk.sync_file(new)
    assert left(disk, tmp_path / "1") == {"old": b"old"}
    disk.sync_folder(disk.find("/"))
    assert left(disk, tmp_path / "2") == {"old": b"old", "new": b"x" * 5000}


def test_a_removal_is_undone_until_its_folder_was_synced(disk: Disk, tmp_path: Path) -> None:
    disk.remove("/old")
    with pytest.raises(FileNotFoundError):
        disk.find("/old")
    assert left(disk, tmp_path / "1") == {"old": b"old"}
    disk.sync_folder(disk.find("/"))
    assert left(disk, tmp_path / "2") == {}


def test_a_rename_is_whole_or_not_there(disk: Disk, tmp_path: Path) -> None:
    disk.make("/sub", stat.S_IFDIR | 0o700)
    disk.sync_folder(disk.find("/"))
    disk.rename("/old", "/sub/moved")
    assert left(disk, tmp_path / "0") == {"old": b"old"}
    for seed in range(1, 12):
        found = left(disk, tmp_path / str(seed), some=True, seed=seed)
        assert found in ({"old": b"old"}, {"sub/moved": b"old"})
    disk.sync_folder(disk.find("/sub"))
    assert left(disk, tmp_path / "12") == {"sub/moved": b"old"}


def test_of_what_was_not_synced_some_sectors_may_be_left(disk: Disk, tmp_path: Path) -> None:
    old = disk.find("/old")
    disk.write(old, b"n" * 40_000, 0)
    found = {left(disk, tmp_path / str(seed), some=True, seed=seed)["old"] for seed in range(20)}
    assert len(found) > 10
    assert all(set(each) <= {*b"old", *b"n", 0} for each in found)


def test_a_mounted_disk_loses_what_was_not_synced(tmp_path: Path) -> None:
    require_fuse()
    before = tmp_path / "before"
    before.mkdir()
    with mounted(tmp_path / "disk", before) as mount:
        with sqlite3.connect(mount / "database") as database:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            database.execute("CREATE TABLE kept (x)")
            database.execute("INSERT INTO kept VALUES (1)")
        database.commit()
        (mount / "unsynced").write_bytes(b"x")
        power_failure(mount, tmp_path / "left", seed=1, some=False)
        database.close()
        assert (mount / "unsynced").read_bytes() == b"x"
    assert not (tmp_path / "left" / "unsynced").exists()
    with sqlite3.connect(tmp_path / "left" / "database") as database:
        assert database.execute("SELECT x FROM kept").fetchall() == [(1,)]
    database.close()
    assert not os.path.ismount(mount)


def test_power_failures_take_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    require_fuse()
    assert fail_again_and_again(tmp_path, ROUNDS, first=0).acknowledged >= ENOUGH * len(TERMINALS) * ROUNDS


def test_a_disk_that_only_says_that_it_has_synced_is_found_out(tmp_path: Path) -> None:
    require_fuse()
    with pytest.raises(AssertionError, match="acknowledged messages are lost"):
        fail_again_and_again(tmp_path, 2, first=0, heeds_syncs=False)
