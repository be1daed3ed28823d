"""Manifests come from a target that others may write to."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terrazzo.backup.manifest import BackupDamaged, id_of, manifest_name, parse_manifest

FILE = {"path": "series/1.sst", "size": 3, "sha256": "a" * 64}
GOOD = {
    "format": 1,
    "id": "20261123T200000Z",
    "began_us": 1,
    "held_ms": 2.5,
    "version": "1",
    "database": "sqlite",
    "store": "embedded",
    "keys": "sealed",
    "files": [FILE],
}


def manifest(**changed):
    return json.dumps({**GOOD, **changed}).encode()


def test_a_manifest_is_read():
    assert parse_manifest(manifest()).size == 3


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "", "a\0b", "a/.."])
def test_a_path_outside_of_the_folder_is_refused(path):
    with pytest.raises(BackupDamaged, match="no path in a data folder"):
        parse_manifest(manifest(files=[FILE | {"path": path}]))


@pytest.mark.parametrize("changed", [{"sha256": "../../x"}, {"sha256": "A" * 64}, {"size": -1}])
def test_a_content_that_is_none_is_refused(changed):
    with pytest.raises(BackupDamaged, match=r"series/1\.sst"):
        parse_manifest(manifest(files=[FILE | changed]))


def test_a_later_format_is_refused():
    with pytest.raises(BackupDamaged, match="has format 2, this version reads 1"):
        parse_manifest(manifest(format=2))


@settings(max_examples=100)
@given(
    st.binary()
    | st.text().map(str.encode)
    | st.recursive(st.none() | st.integers() | st.text(), st.lists).map(lambda value: json.dumps(value).encode())
)
def test_anything_else_is_refused(text):
    with pytest.raises(BackupDamaged):
        parse_manifest(text)


@pytest.mark.parametrize(
    "name", ["backups/x.json", "backups/20261123T200000Z", "20261123T200000Z.json", "backups/.json"]
)
def test_other_names_are_no_backups(name):
    assert id_of(name) == ""
    assert id_of(manifest_name("20261123T200000Z-2")) == "20261123T200000Z-2"
