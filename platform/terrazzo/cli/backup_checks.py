"""What ``terrazzo doctor`` says of backups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from terrazzo.backup.key_sealing import KeySealer, PassphraseUnusable
from terrazzo.backup.status import KEYS_MISSING, read_status
from terrazzo.cli.finding import Finding, Level
from terrazzo.config.sections import Config
from terrazzo.times import now_us

_HOUR_US = 3_600_000_000
_LATE = 2.0  # periods without a backup


def check_backups(config: Config) -> Iterator[Finding]:
    """How old the last backup is, whether one is planned, and whether it has the keys."""
    section, status = config.backup, read_status(config.data_dir)
    if status.failed_us:
        since = f"the last backup failed: {status.last_error}"
        yield Finding(Level.FAIL, "backup", since, "mend the cause; it is tried again every 15 minutes")
    if not status.ended_us:
        yield Finding(
            Level.WARN,
            "backup",
            "there is none: what is on this disk is nowhere else",
            "terrazzo backup FOLDER, or set backup.target and backup.every_hours",
        )
    else:
        yield _check_age(section.every_hours, status.id, status.target, status.ended_us)
    if status.ended_us and status.keys != "sealed":
        yield Finding(Level.WARN, "backup keys", KEYS_MISSING, "put a long passphrase into a file, and name it there")
    if section.passphrase_file:
        yield from _check_passphrase(section.passphrase_file, config.data_dir)


def _check_age(every_hours: float, backup_id: str, target: str, ended_us: int) -> Finding:
    hours = (now_us() - ended_us) / _HOUR_US
    found = f"{backup_id} in {target}, {hours:.1f} hours old"
    if every_hours and hours > every_hours * _LATE:
        return Finding(Level.FAIL, "backup", found, "it is late: look into the log, and whether the platform runs")
    return Finding(Level.OK, "backup", found)


def _check_passphrase(path: str, data_dir: Path) -> Iterator[Finding]:
    try:
        KeySealer.read(path)
    except PassphraseUnusable as error:
        yield Finding(Level.FAIL, "backup.passphrase_file", str(error).partition(": ")[2], "put a passphrase there")
        return
    if Path(path).expanduser().resolve().is_relative_to(data_dir.resolve()):
        yield Finding(
            Level.WARN,
            "backup.passphrase_file",
            f"{path} is in the data folder: it goes with the machine whose backups it opens",
            "keep it elsewhere too, where it is when this machine is lost",
        )
