"""The repository of file records: what is attached to one, and removed, is noted for whoever looks later."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from terrazzo.database.port import Row
from terrazzo.database.tables.registry import RECORD_LOG
from terrazzo.metadata.repositories.repository import EntityRepository, Unit

_NAME = 255  # characters of a file's name that are kept


class FileRepository(EntityRepository):
    """Lists of attached files."""

    async def _record(self, unit: Unit, before: Row | None, after: Row | None) -> None:
        await super()._record(unit, before, after)
        was, becomes = _files(before), _files(after)
        row: Row = after or before or {}
        noted = {
            "company_id": row[self.entity.company],
            "entity": self.entity.name,
            "record_id": row["id"],
            "time": self._clock(),
            "uid": "",
            "username": unit.actor.username[:64],
        }
        removed = [noted | {"what": "removed", "value": was[key]} for key in was if key not in becomes]
        added = [noted | {"what": "attached", "value": becomes[key]} for key in becomes if key not in was]
        if removed or added:
            await unit.connection.execute(RECORD_LOG.insert(), [*removed, *added])


def _files(row: Row | None) -> dict[tuple[str, str], str]:
    """The names of a record's files, by their uid and address."""
    files: Iterable[dict[str, Any]] = (row or {}).get("file") or ()
    return {(each["uid"], each["url"]): each["name"][:_NAME] for each in files}
