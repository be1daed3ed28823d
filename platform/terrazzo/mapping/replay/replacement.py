"""The events and labels of a range in the database, replaced some hundred rows at a time: others write in between."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.database import Database
from terrazzo.database.one_of import one_of
from terrazzo.database.tables.events import EVENT, EVENT_COMMENT, LABEL
from terrazzo.expressions.functions import Value, as_number
from terrazzo.loop_pauses import LoopPauses
from terrazzo.mapping.effects import EventRaised, EventsCleared
from terrazzo.mapping.labels import Key
from terrazzo.mapping.replay.event_merge import merge_events
from terrazzo.mapping.replay.label_merge import (
    Changes,
    Interval,
    Range,
    divided,
    is_outdated,
    merge_labels,
    openings,
    still_open,
)
from terrazzo.mapping.replay.rerun import RerunOutcome
from terrazzo.metadata.definitions.components import COLLECT, COLLECTOS
from terrazzo.metadata.event_quotas import EVENTS, LABELS, EventQuotas, KeptKind

_AT_ONCE = 500  # ids in one statement
Place = tuple[int, int]
"""A row's time of opening and id."""

_SLICE = 500  # events, or rows of labels, that are replaced in one transaction


class Replaced(NamedTuple):
    """What a replay does to rows of one kind, counted by when they were raised or opened.

    ``behind``: rows that reached across the end of a part of the range, and begin behind it now.
    """

    before: int = 0
    after: int = 0
    behind: int = 0


class LabelPart(NamedTuple):
    """What a replay found of some labels in a part of the range; ``is_large``: more rows than one transaction should
    change may be there."""

    span: Range
    found: Mapping[Key, Sequence[Interval]]
    is_large: bool = False

    @property
    def intervals(self) -> list[Interval]:
        """Of all its labels."""
        return [interval for some in self.found.values() for interval in some]


class EventSlice(NamedTuple):
    """What a replay found in a part of the range.

    Args:
        cleared: what has cleared the events, by their index.
    """

    span: Range
    events: Sequence[EventRaised]
    cleared: Mapping[int, EventsCleared]


async def event_slices(
    database: Database, object_id: int, span: Range, outcome: RerunOutcome
) -> AsyncIterator[EventSlice]:
    """Cuts the range where some hundred events were found or are there; those of one time stay together.

    An event is known by its time, so each slice is replaced by itself: after a kill the next replay replaces them all
    again, and leaves those alone that are right already.
    """
    order = await asyncio.to_thread(sorted, range(len(outcome.events)), key=lambda index: outcome.events[index].time_us)
    start_us, at = span.start_us, 0
    while start_us is not None:
        ends = [await _nth_us(database, object_id, start_us, span.end_us)]
        if at + _SLICE < len(order):
            ends.append(outcome.events[order[at + _SLICE]].time_us)
        known = [max(each, start_us + 1) for each in ends if each is not None]
        next_us = min(known, default=None)
        mine: list[int] = []
        while at < len(order) and (next_us is None or outcome.events[order[at]].time_us < next_us):
            mine.append(order[at])
            at += 1
        cleared = {place: outcome.cleared[each] for place, each in enumerate(mine) if each in outcome.cleared}
        part = Range(start_us, span.end_us if next_us is None else next_us - 1)
        yield EventSlice(part, [outcome.events[each] for each in mine], cleared)
        if next_us is None:
            return
        start_us = next_us


async def _nth_us(database: Database, object_id: int, start_us: int, end_us: int | None) -> int | None:
    """When the event was raised that a slice from ``start_us`` on has no place for; None: it has all that are there."""
    query = sa.select(EVENT.c.created).where(*_within(object_id, Range(start_us, end_us))).order_by(EVENT.c.created)
    async with database.reading() as connection:
        found: int | None = (await connection.execute(query.limit(1).offset(_SLICE))).scalar()
    return found


async def replace_events(
    connection: AsyncConnection, object_id: int, found: EventSlice, *, dry_run: bool, quotas: EventQuotas
) -> Replaced:
    """Puts what a replay found in the place of the events of a slice; ``dry_run``: only counts."""
    query = sa.select(EVENT).where(*_within(object_id, found.span)).order_by(EVENT.c.created, EVENT.c.id)
    rows = [dict(row) for row in (await connection.execute(query)).mappings()]
    if not dry_run:
        changes = merge_events(rows, found.events, found.cleared)
        await _apply(connection, EVENTS, changes, quotas)
        for ids in _pieces(changes.deletes):
            await connection.execute(EVENT_COMMENT.delete().where(one_of(EVENT_COMMENT.c.event_id, ids)))
    return Replaced(len(rows), len(found.events))


def _within(object_id: int, span: Range) -> list[sa.ColumnElement[bool]]:
    where = [EVENT.c.object_id == object_id, EVENT.c.created >= span.start_us]
    return where if span.end_us is None else [*where, EVENT.c.created <= span.end_us]


async def label_parts(
    database: Database, object_id: int, rules: frozenset[int], span: Range, outcome: RerunOutcome, *, divides: bool
) -> list[LabelPart]:
    """What was found of labels, and of those that are there: some small ones whole and together, a large one in parts,
    each of them to be merged when those before are; ``divides``: it may be.

    What becomes of a label follows from its rows: who closed it by hand, and what reaches across the edges.
    """
    columns = LABEL.c
    mine = (columns.object_id == object_id, one_of(columns.project_id, rules))
    count = sa.select(columns.project_id, columns.code, sa.func.count()).where(*mine)
    by_hand = sa.select(columns.project_id, columns.code, columns.close_at).where(*mine, columns.by_hand == 1)
    async with database.reading() as connection:
        rows = (await connection.execute(count.group_by(columns.project_id, columns.code))).all()
        closed = (await connection.execute(by_hand)).all() if divides else []
    hands = defaultdict[Key, set[int]](set)
    for project_id, code, close_us in closed:
        hands[project_id, code].add(close_us)
    sizes = Counter({(row[0], row[1]): int(row[2]) for row in rows})
    found: dict[Key, list[Interval]] = {key: [] for key in sizes}
    pauses = LoopPauses()
    for interval in outcome.intervals:
        found.setdefault(interval.key, []).append(interval)
        await pauses.pause()
    parts, together, size = list[LabelPart](), dict[Key, Sequence[Interval]](), 0
    for key, intervals in sorted(found.items(), key=lambda each: each[0]):
        await pauses.pause()
        if divides and len(intervals) > _SLICE:
            cut = await asyncio.to_thread(divided, intervals, span, _SLICE, hands[key])
            parts += [LabelPart(part, {key: some}, is_large=True) for part, some in cut]
            continue
        if sizes[key] + len(intervals) > _SLICE:
            parts.append(LabelPart(span, {key: intervals}, is_large=True))
            continue
        if together and size + sizes[key] + len(intervals) > _SLICE:
            parts.append(LabelPart(span, together))
            together, size = {}, 0
        together[key] = intervals
        size += sizes[key] + len(intervals)
    return [*parts, LabelPart(span, together)] if together else parts


async def delete_outdated_labels(
    connection: AsyncConnection, object_id: int, part: LabelPart, after: Place, quotas: EventQuotas
) -> tuple[int, Place | None]:
    """Deletes, of some hundred rows behind a place, those that the replay doesn't find; the rest is merged afterwards.

    Returns how many those were, and the place of the last row; None: no more are there.
    """
    columns, found = LABEL.c, openings(part.intervals, part.span)
    read = (columns.id, columns.project_id, columns.code, columns.opened_at, columns.close_at, columns.by_hand)
    behind = sa.tuple_(columns.opened_at, columns.id) > after
    query = sa.select(*read).where(*_opened_within(object_id, part), columns.opened_at >= after[0], behind)
    query = query.order_by(columns.opened_at, columns.id).limit(_SLICE)
    rows = [dict(row) for row in (await connection.execute(query)).mappings()]
    mine = (row for row in rows if (row["project_id"], row["code"]) in part.found)
    ids = [row["id"] for row in mine if is_outdated(row, found, part.span)]
    await _delete(connection, LABELS, ids, quotas)
    return len(ids), (rows[-1]["opened_at"], rows[-1]["id"]) if len(rows) == _SLICE else None


async def replace_labels(
    connection: AsyncConnection, object_id: int, part: LabelPart, quotas: EventQuotas
) -> tuple[Replaced, set[Key]]:
    """Puts what a replay found in the place of the rows of some labels, and says which of them are open then.

    Labels of retainers that don't run now are left alone.
    """
    intervals = part.intervals
    rows = await _labels(connection, object_id, part)
    changes = merge_labels(rows, intervals, part.span)
    await _apply(connection, LABELS, changes, quotas)
    return _replaced(rows, changes, part.span), still_open(rows, intervals)


async def count_labels(connection: AsyncConnection, object_id: int, part: LabelPart) -> Replaced:
    """What ``replace_labels`` would do. Rows that lie in the range alone are not read: each that is found is as one
    that comes, and the others go."""
    columns = LABEL.c
    inside = [columns.by_hand == 0, columns.close_at.is_not(None), columns.opened_at >= part.span.start_us]
    if part.span.end_us is not None:
        inside.append(columns.close_at <= part.span.end_us)
    rows = await _labels(connection, object_id, part, sa.not_(sa.and_(*inside)))
    changes = await asyncio.to_thread(merge_labels, rows, part.intervals, part.span)
    count = sa.select(columns.project_id, columns.code, sa.func.count()).where(*_opened_within(object_id, part))
    sizes = (await connection.execute(count.group_by(columns.project_id, columns.code))).all()
    before = sum(size for project_id, code, size in sizes if (project_id, code) in part.found)
    return _replaced(rows, changes, part.span)._replace(before=before)


def _replaced(rows: Iterable[Mapping[str, Any]], changes: Changes, span: Range) -> Replaced:
    inside = [row for row in rows if span.holds(row["opened_at"])]
    moved = sum(_moves_out(changes, row, span) for row in inside)
    came = sum(span.holds(row["opened_at"]) for row in changes.inserts)
    behind = moved + len(changes.inserts) - came
    return Replaced(len(inside), len(inside) + came - len(changes.deletes) - moved, behind)


def _moves_out(changes: Changes, row: Any, span: Range) -> bool:
    opened_us = changes.updates.get(row["id"], {}).get("opened_at")
    return opened_us is not None and not span.holds(opened_us)


def _opened_within(object_id: int, part: LabelPart) -> list[sa.ColumnElement[bool]]:
    """Rows of the labels of a part that begin in its range; and perhaps of others with one's script, one's code."""
    where = [*_of_keys(object_id, part), LABEL.c.opened_at >= part.span.start_us]
    return where if part.span.end_us is None else [*where, LABEL.c.opened_at <= part.span.end_us]


def _of_keys(object_id: int, part: LabelPart) -> list[sa.ColumnElement[bool]]:
    columns = LABEL.c
    scripts, codes = {key[0] for key in part.found}, {key[1] for key in part.found}
    return [columns.object_id == object_id, one_of(columns.project_id, scripts), one_of(columns.code, codes)]


async def _labels(
    connection: AsyncConnection, object_id: int, part: LabelPart, *more: sa.ColumnElement[bool]
) -> list[dict[str, Any]]:
    """The rows that reach into the range, and those that were closed by hand."""
    columns, span = LABEL.c, part.span
    reaches = sa.or_(columns.close_at.is_(None), columns.close_at >= span.start_us)
    if span.end_us is not None:
        reaches = sa.and_(reaches, columns.opened_at <= span.end_us)
    where = [*_of_keys(object_id, part), sa.or_(reaches, columns.by_hand == 1), *more]
    query = sa.select(LABEL).where(*where).order_by(columns.opened_at, columns.id)
    rows = (dict(row) for row in (await connection.execute(query)).mappings())
    return [row for row in rows if (row["project_id"], row["code"]) in part.found]


async def _apply(connection: AsyncConnection, kind: KeptKind, changes: Changes, quotas: EventQuotas) -> None:
    table = kind.table
    alike: defaultdict[tuple[str, ...], list[dict[str, Any]]] = defaultdict(list)
    for row_id, values in changes.updates.items():
        alike[tuple(sorted(values))].append({**values, "row_id": row_id})
    for rows in alike.values():  # one statement for all that change the same columns
        mine = table.c.id == sa.bindparam("row_id")
        named: dict[str, Any] = {name: sa.bindparam(name) for name in rows[0] if name != "row_id"}
        await connection.execute(table.update().where(mine).values(named), rows)
    await _delete(connection, kind, changes.deletes, quotas)
    if changes.inserts:
        found = await connection.execute(table.insert().returning(*table.c), _alike(changes.inserts))
        await quotas.add(connection, kind, [dict(row) for row in found.mappings()])


async def _delete(connection: AsyncConnection, kind: KeptKind, ids: Sequence[int], quotas: EventQuotas) -> None:
    if ids:
        await quotas.take(connection, kind, ids)
    for some in _pieces(ids):
        await connection.execute(kind.table.delete().where(one_of(kind.table.c.id, some)))


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


async def collected_count(connection: AsyncConnection, object_id: int) -> int:
    """How many records ``collected`` reads."""
    record, project = COLLECTOS.table, COLLECT.table
    there = sa.join(record, project, project.c.id == record.c.project_id)
    mine = (record.c.object_id == object_id, record.c.is_available == 1)
    query = sa.select(sa.func.count()).select_from(there).where(*mine)
    return int((await connection.execute(query)).scalar_one())


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
