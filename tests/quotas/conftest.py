"""Databases with companies for the quotas: SQLite, and a real PostgreSQL server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from migrated import seed
from postgresql_server import PostgreSQL
from terrazzo.database.database import Database


@pytest.fixture(params=["sqlite", "postgresql"])
async def database(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Database]:
    url = ""
    if request.param == "sqlite":
        seed(tmp_path)
    else:
        server: PostgreSQL = request.getfixturevalue("postgresql")
        url = server.migrated_database()
    opened = await Database.open(url, data_dir=tmp_path)
    yield opened
    await opened.close()
