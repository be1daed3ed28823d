"""What ``terrazzo doctor`` finds of damage that a disk has done to the databases in the data folder."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from terrazzo.cli.finding import Finding, Level
from terrazzo.config.sections import Config
from terrazzo.database.wal_damage import KEPT
from terrazzo_broker.persistence.rocksdb_log import DAMAGED

_CHECKED_S = 10.0  # for reading SQLite's file, a gigabyte or so
_STEPS = 10_000  # of SQLite's, between two looks at the clock
_RESTORE = "look after the disk, and restore from a backup"


def check_damage(config: Config) -> Iterator[Finding]:
    """Logs that a start could not read to their end, and what SQLite says of its file."""
    stores = [config.store_dir] if config.store.kind == "embedded" else []
    for folder in (*stores, config.data_dir / "broker"):
        yield from _check_log(folder / DAMAGED, f"the log of {folder}")
    if not config.database.url:
        yield from _check_log(config.data_dir / KEPT, f"the log of {config.data_dir / 'terrazzo.db'}")
        yield from check_sqlite(config.data_dir / "terrazzo.db", most_s=_CHECKED_S)


def _check_log(kept: Path, log: str) -> Iterator[Finding]:
    if kept.exists():
        since = datetime.fromtimestamp(kept.stat().st_mtime, UTC).isoformat(timespec="seconds")
        found = f"at the start of {since} {log} could not be read to its end; it is kept in {kept}"
        advice = f"unless the power had failed just before: {_RESTORE}. Then remove that folder"
        yield Finding(Level.FAIL, "log", found, advice)


def check_sqlite(file: Path, *, most_s: float) -> Iterator[Finding]:
    """Has SQLite look at its pages, as far as there is time. They have no checksums: a value that changed within a page
    is not found.
    """
    if not file.exists():
        return
    deadline_s = time.monotonic() + most_s
    try:
        database = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        try:
            database.set_progress_handler(lambda: time.monotonic() > deadline_s, _STEPS)
            found = [str(row[0]) for row in database.execute("PRAGMA quick_check(3)")]
        finally:
            database.close()
    except sqlite3.OperationalError as error:
        found = ["ok"] if "interrupted" in str(error) else [str(error)]  # the former: as far as there was time
    except sqlite3.DatabaseError as error:
        found = [str(error)]
    if found != ["ok"]:
        yield Finding(Level.FAIL, "database", f"{file} is damaged: {'; '.join(found)[:300]}", _RESTORE)
