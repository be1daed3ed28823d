"""How the last backup went: in ``/metrics``, and in a file that ``terrazzo doctor`` reads."""

from __future__ import annotations

from pathlib import Path

import msgspec

from terrazzo.crypto.key_file import replace_private

FILE = "backup-status"
_MOST_BYTES = 65_536
KEYS_MISSING = (
    "the backup has no keys, because backup.passphrase_file is not set: without secrets-key nobody can read the pins"
    " of terminals and other sealed secrets again if this machine is lost"
)


class BackupStatus(msgspec.Struct, kw_only=True):
    """The last backup, and counters since the start of the process. Times are UTC microseconds, 0 for never."""

    id: str = ""
    target: str = ""
    keys: str = ""  # "sealed" or "left out"
    began_us: int = 0
    ended_us: int = 0  # of the last one that succeeded
    failed_us: int = 0  # of a failure since then
    last_error: str = ""
    size: int = 0  # bytes of everything that it names
    put_bytes: int = 0  # bytes of what the target did not have
    took_s: float = 0.0
    backups: int = 0
    failures: int = 0

    @property
    def ended_s(self) -> float:
        """Unix time of the last one that succeeded."""
        return self.ended_us / 1e6


def read_status(data_dir: Path) -> BackupStatus:
    """What the file says; counters begin at 0. A file that can't be read says nothing."""
    try:
        with open(data_dir / FILE, "rb") as file:
            found = msgspec.json.decode(file.read(_MOST_BYTES), type=BackupStatus)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return BackupStatus()
    found.backups = found.failures = 0
    return found


def write_status(data_dir: Path, status: BackupStatus) -> None:
    """Writes the file, whole."""
    replace_private(data_dir / FILE, msgspec.json.encode(status).decode())
