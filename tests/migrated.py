"""Databases at the newest revision, for tests about something else: migrating from nothing takes 0.3 s each time."""

from __future__ import annotations

import asyncio
import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

from terrazzo.database.database import FILE, Database

_open = Database.open  # whatever tests put in its place


def seed(folder: Path) -> Path:
    """Puts a SQLite database without records into a data folder that has none; the folder."""
    path = folder / FILE
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(_migrated())
    return folder


async def migrate(url: str, folder: Path) -> None:
    """Brings a database up to date; ``url`` and ``folder`` as ``Database.open`` takes them."""
    database = await _open(url, data_dir=folder)
    await database.close()


@cache
def _migrated() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        with ThreadPoolExecutor(1) as aside:  # a loop may be running here
            aside.submit(asyncio.run, migrate("", Path(folder))).result()
        return (Path(folder) / FILE).read_bytes()
