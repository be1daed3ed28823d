"""What lies in the data folder as a link, to another disk or to a mounted key, is backed up and moved as what it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from terrazzo.backup.migration.rest import compare_rest, copy_rest, size_of_rest
from terrazzo.backup.snapshot import rest_of, take_snapshot
from terrazzo.database.database import Database


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data folder whose uploads are on another disk, and whose key is mounted."""
    folder, elsewhere = tmp_path / "data", tmp_path / "elsewhere"
    (elsewhere / "uploads" / "ab").mkdir(parents=True)
    (elsewhere / "uploads" / "ab" / "firmware").write_bytes(b"image")
    (elsewhere / "key").write_text("k" * 64)
    folder.mkdir()
    (folder / "files").symlink_to(elsewhere / "uploads")
    (folder / "secrets-key").symlink_to(elsewhere / "key")
    (folder / "itself").symlink_to(folder)
    (folder / "all").symlink_to(tmp_path)
    (folder / "gone").symlink_to(elsewhere / "nothing")
    (folder / "plain").mkdir()
    (folder / "plain" / "seen").write_bytes(b"1")
    (folder / "plain" / "odd").symlink_to(elsewhere)
    return folder


FOUND = ["files/ab/firmware", "plain/seen", "secrets-key"]


def test_a_link_in_the_folder_is_what_it_leads_to_and_no_way_around(data: Path) -> None:
    assert sorted(path.as_posix() for path in rest_of(data, ())) == FOUND


async def test_a_backup_has_what_links_lead_to(data: Path) -> None:
    database = await Database.open("", data_dir=data)
    folder = data / ".backup"
    await take_snapshot(database, {}, data, folder)
    await database.close()
    assert (folder / "files" / "ab" / "firmware").read_bytes() == b"image"
    assert (folder / "secrets-key").read_text() == "k" * 64
    assert not (folder / "secrets-key").is_symlink(), "it is the key that is needed where it is restored"
    assert not (folder / "itself").exists()


def test_a_migration_moves_what_links_lead_to(data: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    assert compare_rest(data, target, ()) != []
    assert copy_rest(data, target, (), ()) == len(FOUND)
    assert size_of_rest(data, ()) == len(b"image") + 64 + 1
    assert compare_rest(data, target, ()) == []
    assert (target / "files" / "ab" / "firmware").read_bytes() == b"image"
    (target / "secrets-key").unlink()
    assert compare_rest(data, target, ()) == ["file secrets-key: is missing"]
