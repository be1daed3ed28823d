"""An empty registry with its first administrator."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from access_stand import AccessStand

from migrated import cheap_hashes, seed
from terrazzo.access.tokens import Tokens, load_token_key
from terrazzo.access.users import ensure_admin
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.domain.registry import Registry
from terrazzo.metadata.entities import Entities


@pytest.fixture
def cheap() -> Iterator[None]:
    """For tests of what comes of right and wrong passwords, many of them; not of what looking at them costs."""
    with cheap_hashes():
        yield


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[AccessStand]:
    database = await Database.open("", data_dir=seed(tmp_path))
    entities = Entities.open(database, Registry(), Secrets.open(tmp_path))
    await ensure_admin(entities, data_dir=tmp_path, password="the admin's own")
    clock = AccessStand.Clock()
    key = load_token_key(tmp_path)
    tokens = await Tokens.open(database, entities, key=key, token_hours=2, clock=clock)
    stand = AccessStand(tmp_path, database, entities, tokens, clock)
    stand.login = stand.new_login()
    yield stand
    await database.close()
