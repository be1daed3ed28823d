"""A SELECT over the rows of series: groups, functions, windows, and the rows of the answer."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec.structs import replace

from terrazzo.influxql.conditions import Span, mask_of
from terrazzo.influxql.digests import DigestTable, merged_digests
from terrazzo.influxql.evaluation import Evaluation
from terrazzo.influxql.planning import calls_in, check, column_names, expanded, walk
from terrazzo.influxql.syntax import Call, Column, Cut, Expr, Ref, Select, Wildcard
from terrazzo.influxql.transforms import Stream
from terrazzo.influxql.values import is_tag, value_of
from terrazzo.influxql.vectors import (
    FLAG,
    NUMBER,
    TEXT,
    Mask,
    Places,
    Rows,
    Table,
    Times,
    Vector,
    aligned,
    merged,
    nothing,
)
from terrazzo.influxql.windows import Windows


class ResultSeries(NamedTuple):
    """One series of an answer; ``columns`` begin with time, of which ``times`` has the values."""

    name: str
    tags: Mapping[str, str]
    columns: Sequence[str]
    times: Times
    vectors: Sequence[Vector]

    def as_table(self) -> Table:
        """The series as that of a measurement, for a SELECT around this one."""
        columns = dict(zip(self.columns[1:], self.vectors, strict=True))
        owners = np.zeros(len(self.times), np.int32)
        order = np.argsort(self.times, kind="stable")
        return Table(self.name, self.tags, Rows(self.times, columns, owners, [self.tags]).take(order))


class Question(msgspec.Struct, frozen=True):
    """A SELECT as it is answered.

    Args:
        where: what its condition says beside the time.
        span: its range of time. ``now_ns`` ends windows where that has no end.
        most_windows: how many it may have in all series together.
    """

    select: Select
    where: Expr | None
    span: Span
    windows: Windows | None
    now_ns: int
    most_windows: int


class _Table(Protocol):
    """The series that rows, or a digest, are of."""

    @property
    def name(self) -> str: ...

    @property
    def tags(self) -> Mapping[str, str]: ...


T = TypeVar("T", bound=_Table)
_Values = Callable[[Evaluation, Sequence[T]], tuple[Times, list[Vector]]]
"""The times and the columns of a group's tables."""


def answer(question: Question, tables: Sequence[Table]) -> list[ResultSeries]:
    """The series of the answer.

    Raises:
        QueryError: the SELECT makes no sense, or has too many windows.
    """
    select = replace(question.select, columns=_without_time(question.select.columns))
    check(select)
    tags = _tags_of(tables)
    if question.where is not None:
        tables = [_filtered(table, question.where, tags) for table in tables]
    tables = [table for table in tables if len(table.rows.times)]
    dimensions = _dimensions(select, tags)
    select = _named(select, tables, [tag for tag in tags if tag not in dimensions])
    calls = calls_in([column.expr for column in select.columns])

    def values(evaluation: Evaluation, members: Sequence[Table]) -> tuple[Times, list[Vector]]:
        rows = merged(members)
        return _aggregated(evaluation, rows) if calls else _raw(select, rows, tags)

    return _answered(question, select, tables, tags, values)


def answer_of_digests(question: Question, tables: Sequence[DigestTable]) -> list[ResultSeries]:
    """The same of digests, for a SELECT that needs no more, and whose condition holds for all rows.

    Raises:
        QueryError: as ``answer``.
    """
    select = replace(question.select, columns=_without_time(question.select.columns))
    check(select)

    def values(evaluation: Evaluation, members: Sequence[DigestTable]) -> tuple[Times, list[Vector]]:
        digest = merged_digests(members)
        return _together(evaluation, [evaluation.stream(column.expr, digest) for column in select.columns])

    tables = [table for table in tables if table.digest.fields]
    return _answered(question, select, tables, _tags_of(tables), values)


def _answered(
    question: Question, select: Select, tables: Sequence[T], tags: Sequence[str], values: _Values[T]
) -> list[ResultSeries]:
    """The series of the groups of tables."""
    dimensions = _dimensions(select, tags)
    names = ["time", *column_names(select.columns)]
    groups = _groups(tables, dimensions)
    evaluation = Evaluation(
        select=select,
        span=question.span,
        windows=question.windows,
        now_ns=question.now_ns,
        tags=tags,
        most_windows=question.most_windows // max(1, len(groups)),
    )
    found = []
    for (name, values_of_tags), members in groups:
        times, vectors = values(evaluation, members)
        if select.is_descending:
            order = np.argsort(-times, kind="stable")
            times, vectors = times[order], [vector.take(order) for vector in vectors]
        found.append(ResultSeries(name, dict(zip(dimensions, values_of_tags, strict=True)), names, times, vectors))
    return _cut_series([_cut(series, select.cut) for series in found if len(series.times)], select.cut)


def _tags_of(tables: Sequence[_Table]) -> list[str]:
    return sorted({tag for table in tables for tag in table.tags})


def _without_time(columns: Sequence[Column]) -> tuple[Column, ...]:
    return tuple(column for column in columns if not (isinstance(column.expr, Ref) and column.expr.name == "time"))


def _filtered(table: Table, where: Expr, tags: Collection[str]) -> Table:
    mask = mask_of(where, table.rows, tags)
    return table if mask.all() else table._replace(rows=table.rows.take(mask))


def _dimensions(select: Select, tags: Sequence[str]) -> list[str]:
    found: set[str] = set()
    for each in select.tags:
        if isinstance(each, Wildcard):
            found.update(tag for tag in tags if each.pattern is None or each.pattern.finds(tag))
        else:
            found.add(each)
    return sorted(found)


def _named(select: Select, tables: Sequence[Table], tags: Sequence[str]) -> Select:
    """With the names of fields in place of wildcards."""
    if not any(isinstance(expr, Wildcard) for expr in walk(column.expr for column in select.columns)):
        return select
    kinds: dict[str, int] = {}
    for table in tables:
        for name, column in table.rows.columns.items():
            kinds[name] = kinds.get(name, 0) | sum(
                1 << kind for kind in (NUMBER, FLAG, TEXT) if (column.kinds == kind).any()
            )
    fields = sorted(name for name, kind in kinds.items() if kind)
    numeric = {name for name in fields if kinds[name] & 1 << NUMBER}
    others = {name for name in fields if name not in numeric}
    return expanded(select, fields, numeric, others, tags)


def _groups(tables: Sequence[T], dimensions: Sequence[str]) -> list[tuple[tuple[str, tuple[str, ...]], list[T]]]:
    groups: dict[tuple[str, tuple[str, ...]], list[T]] = {}
    for table in tables:
        key = table.name, tuple(table.tags.get(tag, "") for tag in dimensions)
        groups.setdefault(key, []).append(table)
    return sorted(groups.items(), key=lambda each: each[0])


# Rows as they are


def _raw(select: Select, rows: Rows, tags: Collection[str]) -> tuple[Times, list[Vector]]:
    """The rows that have one of the fields."""
    there = _has_field([column.expr for column in select.columns], rows, tags)
    rows = rows if there.all() else rows.take(there)
    return rows.times, [value_of(column.expr, rows, tags) for column in select.columns]


def _has_field(exprs: Sequence[Expr], rows: Rows, tags: Collection[str]) -> Mask:
    there = np.zeros(len(rows.times), np.bool_)
    for expr in walk(exprs):
        if isinstance(expr, Ref) and not is_tag(expr.name, expr.cast, tags):
            there |= rows.column(expr.name).is_there
    return there


# Functions


def _aggregated(evaluation: Evaluation, rows: Rows) -> tuple[Times, list[Vector]]:
    columns = evaluation.select.columns
    chosen = next((column.expr for column in columns if isinstance(column.expr, Call)), None)
    plain = [column for column in columns if not calls_in([column.expr])]
    if plain and isinstance(chosen, Call):
        return _with_plain(evaluation, rows, chosen, columns)
    return _together(evaluation, [evaluation.stream(column.expr, rows) for column in columns])


def _together(evaluation: Evaluation, streams: Sequence[Stream]) -> tuple[Times, list[Vector]]:
    """The rows of an answer from its columns."""
    if len(streams) == 1:
        return _dense(streams[0], evaluation.select)
    return _side_by_side(streams, is_descending=evaluation.select.is_descending)


def _with_plain(
    evaluation: Evaluation, rows: Rows, chosen: Call, columns: Sequence[Column]
) -> tuple[Times, list[Vector]]:
    """A point of each window, and what else its row has."""
    stream, places = evaluation.chosen(chosen, rows)
    assert stream.rows is not None
    around, count = rows.take(stream.rows), len(stream.times)
    vectors = []
    for column in columns:
        if column.expr is chosen:
            vectors.append(stream.vector)
        else:
            vectors.append(_placed(value_of(column.expr, around, evaluation.tags), places, count))
    return stream.times, vectors


def _dense(stream: Stream, select: Select) -> tuple[Times, list[Vector]]:
    """Without the rows that have no value, where such are not wanted."""
    if select.interval_ns and select.fill.kind == "none":
        stream = stream.take(stream.vector.is_there)
    return stream.times, [stream.vector]


def _side_by_side(streams: Sequence[Stream], *, is_descending: bool) -> tuple[Times, list[Vector]]:
    """Rows of the values that have the same time."""
    if is_descending:
        streams = [stream.take(slice(None, None, -1)) for stream in streams]
    named = {str(place): stream.times for place, stream in enumerate(streams)}
    times, places = aligned(named)
    return times, [_placed(stream.vector, places[str(place)], len(times)) for place, stream in enumerate(streams)]


def _placed(vector: Vector, places: Places | None, count: int) -> Vector:
    if places is None:
        return vector
    found = nothing(count)
    found.kinds[places], found.numbers[places] = vector.kinds, vector.numbers
    return Vector(found.kinds, found.numbers, vector.texts)


# Limits


def _cut(series: ResultSeries, cut: Cut) -> ResultSeries:
    """The rows that LIMIT and OFFSET leave."""
    if not cut.limit and not cut.offset:
        return series
    part = slice(cut.offset, cut.offset + cut.limit if cut.limit else None)
    vectors = [vector.take(part) for vector in series.vectors]
    return series._replace(times=series.times[part], vectors=vectors)


def _cut_series(found: Sequence[ResultSeries], cut: Cut) -> list[ResultSeries]:
    """The series that SLIMIT and SOFFSET leave, and of them those that have rows."""
    end = cut.series_offset + cut.series_limit if cut.series_limit else None
    return [series for series in found[cut.series_offset : end] if len(series.times)]
