"""The events and labels of a range in the database, replaced in one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EVENT, EVENT_COMMENT, LABEL
from terrazzo.expressions.functions import Value, as_number
from terrazzo.mapping.labels import Key
from terrazzo.mapping.replay.event_merge import merge_events
from terrazzo.mapping.replay.label_merge import Changes, Range, merge_labels, still_open
from terrazzo.mapping.replay.rerun import RerunOutcome
from terrazzo.metadata.definitions.components import COLLECT, COLLECTOS
from terrazzo.metadata.event_quotas import EVENTS, LABELS, EventQuotas, KeptKind

_AT_ONCE = 500  # ids in one statement


class ReplacedEvents(NamedTuple):
    """What a replay does to events and labels, counted by when they were raised and opened; and what is open then."""

    events_before: int
    events_after: int
    labels_before: int
    labels_after: int
    open: set[Key]


async def replace_happenings(
    connection: AsyncConnection,
    object_id: int,
    rules: frozenset[int],
    span: Range,
    outcome: RerunOutcome,
    *,
    dry_run: bool,
    quotas: EventQuotas,
) -> ReplacedEvents:
    """Puts what a replay found in the place of the rows of the range; ``dry_run``: only counts.

    Labels of retainers that don't run now are left alone.
    """
    events = await _events(connection, object_id, span)
    labels = await _labels(connection, object_id, rules, span)
    of_events = merge_events(events, outcome.events, outcome.cleared)
    of_labels = merge_labels(labels, outcome.intervals, span)
    if not dry_run:
        await _apply(connection, EVENTS, of_events, quotas)
        for ids in _pieces(of_events.deletes):
            await connection.execute(EVENT_COMMENT.delete().where(one_of(EVENT_COMMENT.c.event_id, ids)))
        await _apply(connection, LABELS, of_labels, quotas)
    before = sum(span.holds(row["opened_at"]) for row in labels)
    moved = [row for row in labels if span.holds(row["opened_at"]) and _moves_out(of_labels, row, span)]
    came = sum(span.holds(row["opened_at"]) for row in of_labels.inserts)
    return ReplacedEvents(
        events_before=len(events),
        events_after=len(outcome.events),
        labels_before=before,
        labels_after=before + came - len(of_labels.deletes) - len(moved),
        open=still_open(labels, outcome.intervals),
    )


def _moves_out(changes: Changes, row: Any, span: Range) -> bool:
    opened_us = changes.updates.get(row["id"], {}).get("opened_at")
    return opened_us is not None and not span.holds(opened_us)


async def _events(connection: AsyncConnection, object_id: int, span: Range) -> list[dict[str, Any]]:
    columns = EVENT.c
    where = [columns.object_id == object_id, columns.created >= span.start_us]
    if span.end_us is not None:
        where.append(columns.created <= span.end_us)
    query = sa.select(EVENT).where(*where).order_by(columns.created, columns.id)
    return [dict(row) for row in (await connection.execute(query)).mappings()]


async def _labels(
    connection: AsyncConnection, object_id: int, rules: frozenset[int], span: Range
) -> list[dict[str, Any]]:
    columns = LABEL.c
    reaches = sa.or_(columns.close_at.is_(None), columns.close_at >= span.start_us)
    if span.end_us is not None:
        reaches = sa.and_(reaches, columns.opened_at <= span.end_us)
    where = [columns.object_id == object_id, one_of(columns.project_id, rules), sa.or_(reaches, columns.by_hand == 1)]
    query = sa.select(LABEL).where(*where).order_by(columns.opened_at, columns.id)
    return [dict(row) for row in (await connection.execute(query)).mappings()]


async def _apply(connection: AsyncConnection, kind: KeptKind, changes: Changes, quotas: EventQuotas) -> None:
    table = kind.table
    for row_id, values in changes.updates.items():
        await connection.execute(table.update().where(table.c.id == row_id).values(**values))
    await quotas.take(connection, kind, changes.deletes)
    for ids in _pieces(changes.deletes):
        await connection.execute(table.delete().where(one_of(table.c.id, ids)))
    if changes.inserts:
        found = await connection.execute(table.insert().returning(*table.c), _alike(changes.inserts))
        await quotas.add(connection, kind, [dict(row) for row in found.mappings()])


def _alike(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows that all name the same columns, as one statement needs."""
    names = set[str]().union(*rows)
    whole = [row for row in rows if row.keys() == names]
    if len(whole) == len(rows):
        return list(rows)
    defaults = {"reference": "", "is_available": 1}
    return [defaults | row for row in rows]


def _pieces(ids: Sequence[int]) -> list[Sequence[int]]:
    return [ids[first : first + _AT_ONCE] for first in range(0, len(ids), _AT_ONCE)]


class Collected(NamedTuple):
    """What was collected offline for an object: the latest of each project at that time, by each of its names."""

    time_us: int
    values: Mapping[str, Value]


async def collected(connection: AsyncConnection, object_id: int) -> list[Collected]:
    """The available offline records of an object, by collection time and id."""
    record, project = COLLECTOS.table, COLLECT.table
    query = (
        sa.select(record.c.collect_at, record.c.value, record.c.project_id, project.c.uid, project.c.name)
        .join(project, project.c.id == record.c.project_id)
        .where(record.c.object_id == object_id, record.c.is_available == 1)
        .order_by(record.c.collect_at, record.c.id)
    )
    rows = (await connection.execute(query)).all()
    return list(_collected(rows))


def _collected(rows: Iterable[Any]) -> Iterator[Collected]:
    numbers: dict[str, Value] = {}
    names: dict[str, Value] = {}
    for row in rows:
        number = as_number(row.value)
        value = row.value if number is None else number
        numbers |= {str(row.project_id): value, row.uid: value}
        names[row.name] = value  # a name counts more than another project's number
        yield Collected(row.collect_at or 0, numbers | names)
