"""The registry's database, on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from registry_stand import Stand, make_stand

from migrated import seed
from postgresql_server import PostgreSQL
from terrazzo.database.database import Database


@pytest.fixture(params=["sqlite", "postgresql"])
def kind(request: pytest.FixtureRequest) -> str:
    """Of the database."""
    return str(request.param)


@pytest.fixture
def empty_url(kind: str, request: pytest.FixtureRequest) -> str:
    """Of a database without tables; the SQLite one is to lie in the test's folder."""
    return "" if kind == "sqlite" else _server(request).database()


@pytest.fixture
def url(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Of a database at the newest revision; the SQLite one lies in the test's folder."""
    if kind == "sqlite":
        seed(tmp_path)
        return ""
    return _server(request).migrated_database()


def _server(request: pytest.FixtureRequest) -> PostgreSQL:
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server


@pytest.fixture
async def database(url: str, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(url, data_dir=tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def stand(database: Database, tmp_path: Path) -> Stand:
    return await make_stand(database, tmp_path)
