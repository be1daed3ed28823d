"""What the audit log costs a change: updates of a terminal with and without it, in turn, on SQLite.

``python benchmarks/audit.py [--rounds N] [--updates N]`` prints the median time of one update, and what an entry takes
on disk. Without: the same transaction, but for the entry's row.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import sqlalchemy as sa

from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.tables.registry import AUDIT
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.repositories import repository

ROOT = Actor(user_id=1, username="root", company_id=1, role=Role.ADMIN, is_super=True, address="192.0.2.1")


async def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--updates", type=int, default=50)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        database = await Database.open("", data_dir=Path(folder))
        entities = Entities.open(database, Registry(), Secrets.open(Path(folder)))
        await _make_terminal(entities)
        with_log, without = [], []
        for _ in range(arguments.rounds):
            with_log += await _update(entities, arguments.updates)
            with mock.patch.object(repository, "entry_of", return_value=None):
                without += await _update(entities, arguments.updates)
        logged, plain = statistics.median(with_log), statistics.median(without)
        print(f"with the audit log {logged * 1e3:.2f} ms, without {plain * 1e3:.2f} ms an update")
        print(f"{await _entry_bytes(database):.0f} bytes an entry, indexes left out")
        await database.close()


async def _make_terminal(entities: Entities) -> None:
    await entities.companies.create(ROOT, {"name": "one"})
    config = await entities.configurations.create(ROOT, {"name": "c"})
    values = {"uid": "t1", "name": "t1", "type": "Other", "mode": "pwd", "username": "u", "pin": "p"}
    await entities.terminals.create(ROOT, {**values, "config_id": config["uid"]})


_names = itertools.count()


async def _update(entities: Entities, count: int) -> list[float]:
    taken = []
    for _ in range(count):
        change: dict[str, Any] = {"name": f"name {next(_names)}", "pin": f"pin {next(_names)}", "access": "all"}
        began = time.perf_counter()
        await entities.terminals.update(ROOT, "t1", change)
        taken.append(time.perf_counter() - began)
    return taken


async def _entry_bytes(database: Database) -> float:
    texts = (
        AUDIT.c.before,
        AUDIT.c.after,
        AUDIT.c.username,
        AUDIT.c.address,
        AUDIT.c.action,
        AUDIT.c.entity,
        AUDIT.c.uid,
    )
    length = sum((sa.func.length(sa.func.coalesce(each, "")) for each in texts), sa.literal(30))
    async with database.reading() as connection:
        return float((await connection.execute(sa.select(sa.func.avg(length)))).scalar_one())


if __name__ == "__main__":
    asyncio.run(main())
