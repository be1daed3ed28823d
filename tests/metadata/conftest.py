"""The registry's database, on SQLite and on a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from registry_stand import Stand, make_stand

from postgresql_server import PostgreSQL
from terrazzo.database.database import Database


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest) -> str:
    """Of an empty database; the SQLite one lies in the test's folder."""
    if request.param == "sqlite":
        return ""
    server: PostgreSQL = request.getfixturevalue("postgresql")
    return server.database()


@pytest.fixture
async def database(url: str, tmp_path: Path) -> AsyncIterator[Database]:
    opened = await Database.open(url, data_dir=tmp_path)
    yield opened
    await opened.close()


@pytest.fixture
async def stand(database: Database, tmp_path: Path) -> Stand:
    return await make_stand(database, tmp_path)
