"""Keeps the mapping in step with what is collected offline: the latest available record of each object and project.

A change marks its objects; one task reads their latest records again, however many changes there were meanwhile.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import msgspec
import sqlalchemy as sa

from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.expressions.functions import Value, as_number
from terrazzo.metadata.definitions.components import COLLECT, COLLECTOS
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.ports.tasks import OnFailure, Task, Tasks

_AT_ONCE = 500  # objects in one query
NOW_US = 2**62  # later than everything that an object has taken in


class Mapped(Protocol):
    """The mapping, which is told of collected values."""

    def remember(self, object_id: int, values: dict[str, Value]) -> None:
        """As it was known before; the latest of each project, by each of the project's names."""

    async def on_collected(self, object_id: int, values: dict[str, Value], collected_us: int) -> None:
        """The latest of each project, by each of the project's names; ``collected_us``: when the last one was."""


class _Latest(msgspec.Struct):
    """What is collected of one object: the latest values, and the records and projects that they are from."""

    values: dict[str, Value] = msgspec.field(default_factory=dict)
    collected_us: int = 0
    records: set[int] = msgspec.field(default_factory=set)
    projects: set[int] = msgspec.field(default_factory=set)


class OfflineDataFeed:
    """Follows the records of offline projects and offline data."""

    def __init__(self, database: Database, entities: Entities, mapped: Mapped, tasks: Tasks) -> None:
        self._database = database
        self._entities = entities
        self._mapped = mapped
        self._tasks = tasks
        self._object_of: dict[int, int] = {}  # record -> object, of the latest records
        self._objects_of: defaultdict[int, set[int]] = defaultdict(set)  # project -> objects
        self._known: dict[int, _Latest] = {}
        self._waiting: set[int] = set()  # objects to read again
        self._before: dict[int, int] = {}  # object -> when the last one was collected that the start has found
        self._wake = asyncio.Event()
        self._task: Task | None = None

    async def start(self) -> None:
        """Reads what there is, and follows changes.

        Raises:
            Unavailable: the database doesn't answer.
        """
        self._entities.collected.changes.listen(self.on_record)
        self._entities.collects.changes.listen(self.on_project)
        found = await self._read(None)
        for object_id, latest in found.items():
            self._keep(object_id, latest)
            self._mapped.remember(object_id, latest.values)
        self._before = {object_id: latest.collected_us for object_id, latest in found.items()}
        self._task = self._tasks.spawn("offline data", self._follow, OnFailure.RESTART)

    async def stop(self) -> None:
        """Ends the task; what it had not read yet is read at the next start."""
        if self._task is not None:
            await self._task.stop()

    def on_record(self, changed: RowChange) -> None:
        """A record was made, changed or deleted."""
        before = self._object_of.get(changed.record_id)
        after = None if changed.row is None else changed.row["object_id"]
        self._mark(each for each in (before, after) if each is not None)

    def on_project(self, changed: RowChange) -> None:
        """A project was made, renamed or deleted."""
        self._mark(self._objects_of.get(changed.record_id, ()))

    def _mark(self, objects: Iterable[int]) -> None:
        self._waiting.update(objects)
        if self._waiting:
            self._wake.set()

    async def _follow(self) -> None:
        """What it has not read stays marked, whatever ends it."""
        while self._before:
            object_id, collected_us = next(iter(self._before.items()))
            latest = self._known.get(object_id)
            if latest is not None and object_id not in self._waiting:
                await self._mapped.on_collected(object_id, latest.values, collected_us)
            del self._before[object_id]
        while True:
            while self._waiting:
                await self._refresh(sorted(self._waiting)[:_AT_ONCE])
            self._wake.clear()
            await self._wake.wait()

    async def _refresh(self, objects: Sequence[int]) -> None:
        self._waiting.difference_update(objects)
        left = set(objects)
        try:
            found = await self._read(objects)
            for object_id in objects:
                latest = found.get(object_id, _Latest())
                self._keep(object_id, latest)
                await self._mapped.on_collected(object_id, latest.values, NOW_US)
                left.discard(object_id)
        finally:
            self._waiting |= left

    async def _read(self, objects: Sequence[int] | None) -> dict[int, _Latest]:
        """The latest records of these objects, or of all; numbers of records rise with their times."""
        record, project = COLLECTOS.table, COLLECT.table
        newest = sa.select(sa.func.max(record.c.id)).where(record.c.is_available == 1)
        if objects is not None:
            newest = newest.where(one_of(record.c.object_id, objects))
        newest = newest.group_by(record.c.object_id, record.c.project_id)
        columns = (record.c.id, record.c.object_id, record.c.project_id, record.c.value, record.c.collect_at)
        query = sa.select(*columns, project.c.uid, project.c.name).join(project, project.c.id == record.c.project_id)
        async with self._database.reading() as connection:
            rows = (await connection.execute(query.where(record.c.id.in_(newest)).order_by(record.c.id))).all()
        return _by_object(rows)

    def _keep(self, object_id: int, latest: _Latest) -> None:
        before = self._known.pop(object_id, _Latest())
        for record_id in before.records:
            self._object_of.pop(record_id, None)
        for project_id in before.projects:
            self._objects_of[project_id].discard(object_id)
        if latest.records:
            self._known[object_id] = latest
        self._object_of.update(dict.fromkeys(latest.records, object_id))
        for project_id in latest.projects:
            self._objects_of[project_id].add(object_id)


def _by_object(rows: Iterable[Any]) -> dict[int, _Latest]:
    found: defaultdict[int, _Latest] = defaultdict(_Latest)
    for row in rows:
        latest = found[row.object_id]
        latest.records.add(row.id)
        latest.projects.add(row.project_id)
        latest.collected_us = max(latest.collected_us, row.collect_at or 0)
        number = as_number(row.value)
        value = row.value if number is None else number
        latest.values.update(dict.fromkeys((str(row.project_id), row.uid), value))
    for row in rows:  # a name counts more than another project's number
        number = as_number(row.value)
        found[row.object_id].values[row.name] = row.value if number is None else number
    return dict(found)
