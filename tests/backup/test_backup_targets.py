"""Places for backups: a folder and an object storage do the same."""

from __future__ import annotations

import os
import time

import pytest

from terrazzo.ports.backup_target import Held, TargetFailed
from terrazzo_adapters.backup import FolderTarget
from terrazzo_adapters.backup.s3 import S3Target


@pytest.fixture(params=["folder", "s3"])
def target(request, tmp_path):
    if request.param == "folder":
        return FolderTarget(tmp_path / "deep" / "target")
    return S3Target(request.getfixturevalue("bucket"), "some/prefix", endpoint=request.getfixturevalue("s3_endpoint"))


def test_what_was_put_is_there(target, tmp_path):
    large = tmp_path / "large"
    large.write_bytes(bytes(range(256)) * 12_000)
    assert list(target.held("objects/")) == []
    target.put("objects/ab/one", large)
    target.put_bytes("backups/one.json", b"{}")
    target.put_bytes("backups/empty.json", b"")
    assert list(target.held("objects/")) == [Held("objects/ab/one", 3_072_000)]
    assert sorted(target.held("backups/")) == [Held("backups/empty.json", 0), Held("backups/one.json", 2)]
    assert sorted(each.name for each in target.held("backups/o")) == ["backups/one.json"]
    pieces = list(target.pieces("objects/ab/one"))
    assert b"".join(pieces) == large.read_bytes()
    assert max(map(len, pieces)) <= 1 << 20
    target.put_bytes("backups/one.json", b"{1}")
    assert b"".join(target.pieces("backups/one.json")) == b"{1}"
    target.delete("objects/ab/one")
    target.delete("objects/ab/one")
    assert list(target.held("objects/")) == []


def test_what_is_not_there_says_so(target):
    with pytest.raises(KeyError):
        list(target.pieces("objects/ab/none"))


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TargetFailed, match=r"file"):
        FolderTarget(tmp_path / "file" / "below").put_bytes("backups/x", b"")


def test_a_name_stays_in_the_folder(tmp_path):
    with pytest.raises(TargetFailed, match="no name of a content"):
        FolderTarget(tmp_path / "target").put_bytes("../x", b"")


def test_half_a_content_is_none(tmp_path):
    target = FolderTarget(tmp_path / "target")
    with pytest.raises(TargetFailed):
        target.put("objects/ab/x", tmp_path)  # a folder: it can't be read
    assert list(target.held("")) == []
    assert [path for path in (tmp_path / "target").rglob("*") if path.is_file()] == []


def test_what_a_killed_backup_left_goes_after_a_day_and_what_another_one_writes_stays(tmp_path):
    target = FolderTarget(tmp_path / "target")
    target.put_bytes("objects/ab/x", b"whole")
    left, written = (tmp_path / "target/objects/ab" / f"y.{name}.part" for name in ("01234567", "89abcdef"))
    for draft in (left, written):
        draft.write_bytes(b"half")
    os.utime(left, (time.time() - 90_000,) * 2)
    assert list(target.held("objects/")) == [Held("objects/ab/x", 5)]
    assert not left.exists()
    assert written.exists()


def test_a_storage_that_is_not_there_is_named(bucket):
    target = S3Target(bucket, "", endpoint="http://127.0.0.1:1")
    with pytest.raises(TargetFailed, match=f"s3://{bucket}"):
        list(target.held(""))


def test_a_bucket_that_is_not_there_is_named(bucket, s3_endpoint):
    with pytest.raises(TargetFailed, match="s3://nowhere"):
        S3Target("nowhere", "", endpoint=s3_endpoint).put_bytes("x", b"")
