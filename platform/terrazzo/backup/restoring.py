"""From a target to a data folder, and whether a backup is what it says."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from terrazzo.backup.key_sealing import KeySealer, PassphraseUnusable
from terrazzo.backup.manifest import BackedUpFile, BackupDamaged, Manifest, object_name
from terrazzo.backup.saving import Tell
from terrazzo.ports.backup_target import BackupTarget

RESTORING = ".restoring"
"""The folder in a data folder that a restore has not completed; ``serve`` refuses to start while it is there."""

_LEAST_FREE = 64 << 20  # bytes that stay free on the disk


class NotEmpty(Exception):
    """The folder has something in it already; ``str()`` can be shown to an operator."""


def check_folder(folder: Path, manifest: Manifest) -> None:
    """Whether a backup can be restored there.

    Raises:
        NotEmpty: there is something in the folder.
        OSError: there is too little room, or it can't be made.
    """
    if folder.exists() and any(folder.iterdir()):
        left = " (of a restore that did not end: remove it)" if (folder / RESTORING).exists() else ""
        raise NotEmpty(f"{folder}: is not empty{left}; restore into a folder that is empty or not there")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    free = shutil.disk_usage(folder).free
    if free < manifest.size + _LEAST_FREE:
        raise OSError(f"{folder}: the backup needs {manifest.size} bytes, {free} are free")


def restore_files(
    target: BackupTarget, manifest: Manifest, folder: Path, *, sealer: KeySealer | None, tell: Tell
) -> list[str]:
    """Writes a backup's files into an empty folder; they appear together at the end.

    Returns:
        the files of keys that were left sealed out, because no passphrase was given.

    Raises:
        NotEmpty, OSError: the folder can't be used.
        BackupDamaged: a content is missing or another one than when it was saved; names it.
        PassphraseUnusable: the passphrase is not that of the backup.
        TargetFailed: the target can't be read.
    """
    check_folder(folder, manifest)
    staging = folder / RESTORING
    staging.mkdir(mode=0o700)
    done, left_out = 0, []
    for each in manifest.files:
        if each.sealed and sealer is None:
            left_out.append(each.path)
            continue
        _restore(target, each, staging / each.path, sealer)
        done += each.size
        tell(done, manifest.size)
    _sync_folders(staging)
    for entry in sorted(staging.iterdir()):
        entry.rename(folder / entry.name)
    staging.rmdir()
    _sync(folder)
    return left_out


def _restore(target: BackupTarget, each: BackedUpFile, path: Path, sealer: KeySealer | None) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        if each.sealed and sealer is not None:
            sealed = bytearray()
            for piece in _checked(target, each):
                sealed += piece
            file.write(sealer.open(bytes(sealed), each.path))
        else:
            for piece in _checked(target, each):
                file.write(piece)
        file.flush()
        os.fsync(file.fileno())


def check_contents(target: BackupTarget, manifest: Manifest, *, sealer: KeySealer | None, tell: Tell) -> list[str]:
    """Reads all contents of a backup; what is wrong with it, a line each. Nothing is written.

    Raises:
        TargetFailed: the target can't be read.
    """
    wrong, done = [], 0
    for each in manifest.files:
        try:
            content = [piece for piece in _checked(target, each) if each.sealed]
            if each.sealed and sealer is not None:
                sealer.open(b"".join(content), each.path)
        except (BackupDamaged, PassphraseUnusable) as error:
            wrong.append(str(error))
        done += each.size
        tell(done, manifest.size)
    return wrong


def _checked(target: BackupTarget, each: BackedUpFile) -> Iterator[bytes]:
    """The pieces of a content; at their end it is as long, and has the hash, that the manifest says."""
    digest, size = hashlib.sha256(), 0
    try:
        for piece in target.pieces(object_name(each.sha256)):
            size += len(piece)
            if size > each.size:
                break
            digest.update(piece)
            yield piece
    except KeyError:
        raise BackupDamaged(f"{each.path}: its content is missing in {target.place}") from None
    if size != each.size or digest.hexdigest() != each.sha256:
        raise BackupDamaged(f"{each.path}: its content in {target.place} is damaged")


def _sync_folders(folder: Path) -> None:
    for inside, _, _ in os.walk(folder):
        _sync(Path(inside))


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
