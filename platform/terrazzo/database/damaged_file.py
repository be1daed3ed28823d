"""A file of SQLite's that the disk has damaged so far that it can't be opened: said before anything is changed."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from terrazzo.database.migration import DatabaseUnusable

_CODES = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_PRIMARY = 0xFF  # of an extended code


class DatabaseDamaged(DatabaseUnusable):
    """SQLite can't make out what a file says; ``found`` is what, ``advice`` what to do.

    ``is_as_it_was``: nobody has opened it for writing since.
    """

    def __init__(self, file: Path, reason: str, *, is_as_it_was: bool = False) -> None:
        self.found = f"{file} is damaged: {reason}"
        self.advice = (
            f"{'nothing in it was changed: ' * is_as_it_was}look after the disk, and copy the folder. With a backup: "
            "`terrazzo restore SOURCE --data FOLDER` into an empty folder. Without one: "
            f"`sqlite3 {file} .recover | sqlite3 recovered.db` saves what can be read; put that in its place, without "
            f"the files {file.name}-wal and {file.name}-shm. `terrazzo doctor` says what else is damaged"
        )
        super().__init__(f"{self.found}; {self.advice}")


def is_damage(error: BaseException | None) -> bool:
    """Whether it is SQLite's, and says that a file is damaged, or is none of its."""
    return isinstance(error, sqlite3.DatabaseError) and getattr(error, "sqlite_errorcode", 0) & _PRIMARY in _CODES


def require_readable(file: Path) -> None:
    """Has SQLite read schema and revision without writing: who writes to a damaged file takes away what could be saved.

    Raises:
        DatabaseDamaged: it can't.
    """
    try:
        if not file.exists() or not file.stat().st_size:
            return
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as database:
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'alembic_version'").fetchall():
                database.execute("SELECT version_num FROM alembic_version").fetchall()
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            raise DatabaseDamaged(file, str(error), is_as_it_was=True) from error
    except OSError:
        return  # who opens it says why
