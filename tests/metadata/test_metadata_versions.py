"""A record is changed only over what was read, also where another process changes it at the same moment."""

from __future__ import annotations

import asyncio
from pathlib import Path

from registry_stand import Stand

from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.domain.registry import Registry
from terrazzo.errors import Conflict
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.versions import version_of


async def test_of_two_processes_that_save_at_once_one_is_refused(stand: Stand, url: str, tmp_path: Path) -> None:
    other = await Database.open(url, data_dir=tmp_path)
    try:
        here = stand.entities.dashboards
        there = Entities.open(other, Registry(), Secrets.open(tmp_path)).dashboards
        row = await here.create(stand.first, {"name": "first", "script": {}})
        for turn in range(10):
            version = version_of(here.entity, row)
            found = await asyncio.gather(
                here.update(stand.first, row["uid"], {"name": f"{turn} here"}, version),
                there.update(stand.first, row["uid"], {"name": f"{turn} there"}, version),
                return_exceptions=True,
            )
            (refused,) = (each for each in found if isinstance(each, Conflict))
            (row,) = (each for each in found if not isinstance(each, BaseException))
            assert str(refused).startswith("if_version: somebody has changed dashboard")
            seen = await there.page(stand.first)
            assert [each["name"] for each in seen.rows] == [row["name"]]
            assert version_of(here.entity, seen.rows[0]) == version_of(here.entity, row)
    finally:
        await other.close()
