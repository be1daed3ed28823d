"""What a backup has: its files, and what they should say once they are restored.

In the target a backup is a manifest, ``backups/<id>.json``, and contents by their SHA-256, ``objects/<ab>/<sha256>``,
which backups share: the next one puts only what is new. The manifest is put last, so that what it names is there.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec

FORMAT = 1
MOST_BYTES = 512 << 20  # of a manifest: about a million files
_ID = re.compile(r"\d{8}T\d{6}Z(-\d+)?")
_HASH = re.compile(r"[0-9a-f]{64}")


class BackupDamaged(Exception):
    """A backup is not what its manifest says; ``str()`` says what is wrong, and can be shown to an operator."""


class BackedUpFile(msgspec.Struct, frozen=True, kw_only=True):
    """One file: its path in the data folder, size in bytes and SHA-256 of what the target keeps.

    ``sealed``: the content is encrypted with the passphrase. ``stamp``: what the file was on disk (inode, time of its
    last change, size), by which the next backup knows it again without reading it; empty where files change.
    """

    path: str
    size: int
    sha256: str
    sealed: bool = False
    stamp: str = ""


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """One backup. Times are UTC microseconds.

    Attributes:
        id: its name, the time at which it began.
        keys: what became of the files of keys: ``sealed``, or ``left out`` where there was no passphrase.
        rows: how many rows each table of the database has.
    """

    format: int = FORMAT
    id: str
    began_us: int
    held_ms: float  # for how long writes waited
    version: str
    database: str
    store: str
    keys: str
    rows: dict[str, int] = {}
    files: list[BackedUpFile]

    @property
    def size(self) -> int:
        """Bytes of all files together."""
        return sum(each.size for each in self.files)


def manifest_name(backup_id: str) -> str:
    """The name of a backup's manifest in the target."""
    return f"backups/{backup_id}.json"


def object_name(sha256: str) -> str:
    """The name of a content in the target."""
    return f"objects/{sha256[:2]}/{sha256}"


def id_of(name: str) -> str:
    """The id in a manifest's name; empty for any other name."""
    found = name.removeprefix("backups/").removesuffix(".json")
    return found if name == manifest_name(found) and _ID.fullmatch(found) else ""


def parse_manifest(text: bytes) -> Manifest:
    """The manifest in a file of the target, every path and hash of it checked.

    Raises:
        BackupDamaged: it is none of this format, or names a file outside of the data folder.
    """
    try:
        found = msgspec.json.decode(text, type=Manifest)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BackupDamaged(f"the manifest can't be read: {error}") from None
    if found.format != FORMAT:
        raise BackupDamaged(f"the manifest has format {found.format}, this version reads {FORMAT}")
    for each in found.files:
        path = PurePosixPath(each.path)
        if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in each.path:
            raise BackupDamaged(f"the manifest names {each.path!r}, which is no path in a data folder")
        if not _HASH.fullmatch(each.sha256) or each.size < 0:
            raise BackupDamaged(f"the manifest says nothing usable of {each.path!r}")
    return found
