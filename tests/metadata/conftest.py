"""The registry's database, on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from registry_stand import Stand, make_stand

from support import free_port, require_program
from terrazzo.metadata.database import Database


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The address of a PostgreSQL server of this run's own."""
    programs = Path(require_program("postgres")).resolve().parent
    # PostgreSQL refuses to run as root
    account: dict[str, Any] = {"user": "postgres", "group": "postgres"} if os.getuid() == 0 else {}
    folder = Path(tempfile.mkdtemp(prefix="terrazzo-postgresql-"))
    if account:
        shutil.chown(folder, "postgres", "postgres")
    data, port = folder / "data", free_port()
    initdb = [programs / "initdb", "-D", data, "-U", "terrazzo", "-A", "trust", "-E", "UTF8", "--no-sync"]
    subprocess.run(initdb, check=True, capture_output=True, cwd=folder, **account)
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder} -c fsync=off"
    control = [programs / "pg_ctl", "-D", data, "-w", "-s", "-l", folder / "log"]
    subprocess.run([*control, "-o", options, "start"], check=True, cwd=folder, **account)
    try:
        yield f"terrazzo@127.0.0.1:{port}"
    finally:
        subprocess.run([*control, "-m", "fast", "stop"], check=True, cwd=folder, **account)
        shutil.rmtree(folder)


@pytest.fixture(params=["sqlite", "postgresql"])
async def url(request: pytest.FixtureRequest) -> str:
    """Of an empty database; the SQLite one lies in the test's folder."""
    if request.param == "sqlite":
        return ""
    server = request.getfixturevalue("postgresql")
    name = f"t{os.urandom(6).hex()}"
    connection = await asyncpg.connect(f"postgresql://{server}/postgres")
    await connection.execute(f"CREATE DATABASE {name}")
    await connection.close()
    return f"postgresql://{server}/{name}"


@pytest.fixture
async def database(url: str, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(url, data_dir=tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def stand(database: Database, tmp_path: Path) -> Stand:
    return await make_stand(database, tmp_path)
