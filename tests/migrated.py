"""Databases at the newest revision, for tests about something else: migrating from nothing takes 0.3 s each time.

What else many tests begin with is made once in each process, too, and copied.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from terrazzo.access.users import ensure_admin
from terrazzo.config.limits import LimitsSection
from terrazzo.crypto import passwords
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import FILE, Database
from terrazzo.database.usage import count_missing
from terrazzo.domain.registry import Registry
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.excesses import ALL_COUNTED
from terrazzo.metadata.quotas import RecordQuotas

PASSWORD = "correct horse battery"

_IN_TESTS = "PYTEST_VERSION" in os.environ
_open = Database.open  # whatever tests put in its place


async def no_records(entities: Entities) -> None:
    """Leaves a database without records."""


async def first_start(entities: Entities) -> None:
    """What a platform's first start makes: its administrator, with ``PASSWORD``, and the first project.

    Each test logs in, and only few are about what that costs: the password has a cheap hash, but not in benchmarks.
    """
    with tempfile.TemporaryDirectory() as folder, cheap_hashes() if _IN_TESTS else nullcontext():
        await ensure_admin(entities, data_dir=Path(folder), password=PASSWORD)
    await entities.projects.ensure_default()


_cheap = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1)


def hash_of(password: str) -> str:
    """A hash of a user's password that takes next to nothing to make and to verify; it says so itself."""
    return _cheap.hash(password)


@contextmanager
def cheap_hashes() -> Iterator[None]:
    """Meanwhile all passwords get such hashes, and nobody's is one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", _cheap)
        patch.setattr(passwords, "NOBODY", hash_of("nobody's"))
        yield


def seed(folder: Path, records: Callable[[Entities], Awaitable[None]] = no_records) -> Path:
    """Puts a SQLite database with these records into a data folder that has none; the folder.

    No secrets may be among the records: each folder has keys of its own.
    """
    path = folder / FILE
    if not path.exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with open(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(_made(records))
    return folder


async def migrate(url: str, folder: Path) -> None:
    """Brings a database up to date; ``url`` and ``folder`` as ``Database.open`` takes them."""
    database = await _open(url, data_dir=folder)
    await database.close()


@cache
def _made(records: Callable[[Entities], Awaitable[None]]) -> bytes:
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(1) as aside:  # a loop may be running here
        folder = Path(name)
        aside.submit(asyncio.run, _make(folder, records)).result()
        return (folder / FILE).read_bytes()


async def _make(folder: Path, records: Callable[[Entities], Awaitable[None]]) -> None:
    if records is no_records:
        await migrate("", folder)
        return
    database = await _open("", data_dir=seed(folder))
    try:
        await count_missing(database, ALL_COUNTED)
        quotas = RecordQuotas.of(LimitsSection())
        await records(Entities.open(database, Registry(), Secrets.open(folder), quotas=quotas))
    finally:
        await database.close()
