"""A small backup in a folder, whose contents are known."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from terrazzo.backup.manifest import BackedUpFile, Manifest, object_name
from terrazzo_adapters.backup import FolderTarget

TARGET = "target"
CONTENTS = {"terrazzo.db": b"rows", "series/CURRENT": b"MANIFEST-000004", "files/0": b"image"}
_MANIFEST = "manifest.json"


def put_backup(folder: Path) -> None:
    """Makes it below ``folder``."""
    target, files = FolderTarget(folder / TARGET), []
    for path, content in CONTENTS.items():
        sha256 = hashlib.sha256(content).hexdigest()
        target.put_bytes(object_name(sha256), content)
        files.append(BackedUpFile(path=path, size=len(content), sha256=sha256))
    manifest = Manifest(
        id="1", began_us=1, held_ms=1, version="1", database="sqlite", store="rocksdb", keys="left out", files=files
    )
    (folder / _MANIFEST).write_bytes(msgspec.json.encode(manifest))


def manifest_in(folder: Path) -> Manifest:
    """Its manifest."""
    return msgspec.json.decode((folder / _MANIFEST).read_bytes(), type=Manifest)
