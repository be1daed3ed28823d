"""From a snapshot to the target: only what it does not have yet, then the manifest."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from terrazzo.backup.key_sealing import KEY_FILES, KeySealer
from terrazzo.backup.manifest import (
    MOST_BYTES,
    BackedUpFile,
    BackupDamaged,
    Manifest,
    id_of,
    manifest_name,
    object_name,
    parse_manifest,
)
from terrazzo.ports.backup_target import BackupTarget, TargetFailed

OWNER = "terrazzo-backup.json"
"""The content of a target that says which platform it belongs to."""

_NICE = 10

Tell = Callable[[int, int], None]
"""Told of progress: bytes that are done, and of how many."""


class ForeignTarget(TargetFailed):
    """The target has backups of another platform."""


def claim(target: BackupTarget, platform_id: str) -> None:
    """Makes a target this platform's.

    Raises:
        ForeignTarget: it is another's; each needs a folder or prefix of its own.
        TargetFailed: it can't be read or written.
    """
    wanted = msgspec.json.encode({"platform": platform_id})
    try:
        found = read_content(target, OWNER, most=4096)
    except KeyError:
        target.put_bytes(OWNER, wanted)
        return
    if found != wanted:
        raise ForeignTarget(f"{target.place}: has backups of another platform; choose another folder or prefix")


def read_content(target: BackupTarget, name: str, *, most: int) -> bytes:
    """A whole content of at most ``most`` bytes.

    Raises:
        KeyError: there is none.
        BackupDamaged: it is longer.
    """
    found = bytearray()
    for piece in target.pieces(name):
        found += piece
        if len(found) > most:
            raise BackupDamaged(f"{target.place}: {name} is longer than {most} bytes")
    return bytes(found)


def backup_ids(target: BackupTarget) -> list[str]:
    """The ids of the complete backups in a target, the newest first."""
    return sorted((found for held in target.held("backups/") if (found := id_of(held.name))), reverse=True)


def read_manifest(target: BackupTarget, backup_id: str) -> Manifest:
    """The manifest of a backup.

    Raises:
        KeyError: there is none of that id.
        BackupDamaged, TargetFailed: it can't be used, can't be read.
    """
    return parse_manifest(read_content(target, manifest_name(backup_id), most=MOST_BYTES))


class Saver:
    """Puts the files of one snapshot into a target, on one thread of low priority."""

    def __init__(self, target: BackupTarget, sealer: KeySealer | None, tell: Tell) -> None:
        self._target = target
        self._sealer = sealer
        self._tell = tell
        self._known: dict[str, BackedUpFile] = {}
        self._held: set[str] = set()
        self.put_bytes = 0
        self.left_out: list[str] = []

    def save(self, folder: Path) -> list[BackedUpFile]:
        """Puts all files of a folder; afterwards the target has everything that the result names.

        Raises:
            TargetFailed, OSError: something can't be put, or read.
        """
        _lower_priority()
        self._held = {held.name for held in self._target.held("objects/")}
        self._known = self._known_files()
        paths = sorted(_files_in(folder))
        total, done, saved = sum(path.stat().st_size for path in paths), 0, []
        for path in paths:
            each = self._save(path, path.relative_to(folder).as_posix())
            done += path.stat().st_size
            self._tell(done, total)
            if each is not None:
                saved.append(each)
        return saved

    def _known_files(self) -> dict[str, BackedUpFile]:
        """The files of the newest backup that can be read, by path."""
        for backup_id in backup_ids(self._target):
            try:
                return {each.path: each for each in read_manifest(self._target, backup_id).files}
            except (BackupDamaged, KeyError):
                continue
        return {}

    def _save(self, path: Path, name: str) -> BackedUpFile | None:
        if name in KEY_FILES:
            return self._save_key(path, name)
        found = path.stat()
        stamp = f"{found.st_ino}:{found.st_mtime_ns}:{found.st_size}" if found.st_nlink > 1 else ""
        known = self._known.get(name)
        if stamp and known is not None and known.stamp == stamp and object_name(known.sha256) in self._held:
            return known
        digest = _digest(path)
        if object_name(digest) not in self._held:
            self._target.put(object_name(digest), path)
            self._held.add(object_name(digest))
            self.put_bytes += found.st_size
        return BackedUpFile(path=name, size=found.st_size, sha256=digest, stamp=stamp)

    def _save_key(self, path: Path, name: str) -> BackedUpFile | None:
        if self._sealer is None:
            self.left_out.append(name)
            return None
        sealed = self._sealer.seal(path.read_bytes(), name)
        digest = hashlib.sha256(sealed).hexdigest()
        self._target.put_bytes(object_name(digest), sealed)
        return BackedUpFile(path=name, size=len(sealed), sha256=digest, sealed=True)

    def finish(self, manifest: Manifest) -> None:
        """Puts the manifest: from now on there is a backup."""
        self._target.put_bytes(manifest_name(manifest.id), msgspec.json.format(msgspec.json.encode(manifest), indent=1))


def forget_old(target: BackupTarget, keep: int) -> int:
    """Deletes all but the ``keep`` newest backups, and contents that none names; returns how many backups went.

    A manifest that can't be read keeps everything: what it names is not known.
    """
    ids = backup_ids(target)
    named = {object_name(each.sha256) for kept in ids[:keep] for each in read_manifest(target, kept).files}
    for old in ids[keep:]:
        target.delete(manifest_name(old))
    for held in list(target.held("objects/")):
        if held.name not in named:
            target.delete(held.name)
    return len(ids[keep:])


def _files_in(folder: Path) -> Iterator[Path]:
    for inside, _, names in os.walk(folder):
        yield from (Path(inside, name) for name in names)


def _digest(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lower_priority() -> None:
    """Has this thread run when nobody else wants to; Linux alone has priorities of threads."""
    if hasattr(os, "setpriority"):
        try:
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
        except OSError:
            return  # as fast as everybody, then
