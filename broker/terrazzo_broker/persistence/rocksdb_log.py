"""RocksDB's options for a database that Python writes to: nothing that can wait for the disk happens in ``write``.

rocksdict holds the interpreter's lock inside ``Rdict.write``, but not inside ``Rdict.flush_wal``. A disk that is busy,
or a system that has too many unwritten pages, lets even an unsynced write to the log wait, and with it every thread of
the process: seconds were seen. So a write stays in the log's buffer, and ``flush_wal`` takes it from there.

RocksDB reads a log as far as the first record whose checksum doesn't fit, and says nothing of what comes after it. That
is right for the end of a log that was being written when the power failed; in the middle it is acknowledged data that
the disk has damaged. ``open_telling_damage`` has it told, and keeps the log.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

from rocksdict import DBRecoveryMode, Options, Rdict, WriteOptions

DAMAGED = "damaged-log"
"""The folder, in the database's, with logs that could not be read to their end: those of the last time."""

_log = logging.getLogger(__name__)

# ``manual_wal_flush`` has no setter in rocksdict; what RocksDB keeps in its own files can be loaded.
_OPTIONS = """\
[Version]
  rocksdb_version=9.0.0
  options_file_version=1.1
[DBOptions]
  manual_wal_flush=true
[CFOptions "default"]
"""
_RAW_MODE = '{"raw_mode":true,"prefix_extractors":{}}'


def log_options() -> Options:
    """Options of a database of bytes whose writes reach its log with ``flush_wal``, and only then outlive the process.

    All others have RocksDB's defaults.
    """
    with TemporaryDirectory(prefix="rocksdb-options-") as folder:
        Path(folder, "OPTIONS-000001").write_text(_OPTIONS)
        Path(folder, "rocksdict-config.json").write_text(_RAW_MODE)
        options, _ = Options.load_latest(folder)
    return options


def write_options() -> WriteOptions:
    """Options of each write: not synced; a stall (too many unmerged files) is refused instead of sat out."""
    options = WriteOptions()
    options.sync = False
    options.no_slowdown = True
    return options


def open_telling_damage(folder: Path, options: Options, open_with: Callable[[Options], Rdict]) -> Rdict:
    """Opens a database; says so in the program's log if its own log can't be read to the end, and keeps that one.

    Raises:
        Exception: whatever RocksDB raises; its text says what.
    """
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())  # an unfinished record at the end
    try:
        return open_with(options)
    except Exception as error:
        if type(error) is not Exception or not str(error).startswith("Corruption"):
            raise
        found = str(error)
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    kept = _linked_logs(folder)
    try:
        database = open_with(options)
    except Exception:  # it isn't the log that is damaged
        shutil.rmtree(kept)
        raise
    shutil.rmtree(folder / DAMAGED, ignore_errors=True)
    kept.rename(folder / DAMAGED)
    _log.error(
        "the log of %s can't be read to its end (%s): what was written after that place is not there. Where the power "
        "has failed, it had not been acknowledged; otherwise the disk has damaged what was: look after the disk, and "
        "restore from a backup. The log is kept in %s",
        folder,
        found,
        folder / DAMAGED,
    )
    return database


def _linked_logs(folder: Path) -> Path:
    """A new folder with the database's logs, which it removes once it has read them."""
    kept = folder / f"{DAMAGED}.new"
    shutil.rmtree(kept, ignore_errors=True)
    kept.mkdir(mode=0o700)
    for log in folder.glob("*.log"):
        os.link(log, kept / log.name)
    return kept
