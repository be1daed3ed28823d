"""Buckets by InfluxDB's own functions, where these suffice: for numbers and booleans, not for texts or last values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from terrazzo.ports.store import MOST_BUCKETS, Buckets, Fn, TooManyBuckets, Value
from terrazzo_adapters.influxdb.naming import EMPTY, FLAG, TEXT, field_name, identifier
from terrazzo_adapters.influxdb.queries import SeriesSource
from terrazzo_adapters.influxdb.server import Series, Server

_NUMERIC: Mapping[Fn, tuple[str, ...]] = {
    "mean": ("sum", "count"),
    "sum": ("sum",),
    "min": ("min",),
    "max": ("max",),
}
_KEYS_A_REQUEST = 20

BucketRows = dict[int, Sequence[Any]]
"""The values of an answer's row, by the start of its bucket in UTC microseconds."""


class BucketQuestion(NamedTuple):
    """A range of records in buckets of ``bucket_us`` microseconds, one of which begins at ``origin_us``."""

    source: SeriesSource
    bucket_us: int
    origin_us: int

    def select(self, columns: str, condition: str = "") -> str:
        """The InfluxQL statement that computes ``columns`` for each bucket that has points."""
        where = self.source.where(self.source.start_us, self.source.end_us)
        offset_us = self.origin_us % self.bucket_us
        return f"SELECT {columns} {where}{condition} GROUP BY time({self.bucket_us}u, {offset_us}u) fill(none)"


async def resample(
    server: Server, window: BucketQuestion, keys: Sequence[str], *, fn: Fn | None, offset: int, limit: int
) -> Buckets | None:
    """The buckets, newest first; None if InfluxDB can't compute them and the records have to be read.

    Raises:
        TooManyBuckets: choose longer ones.
    """
    if fn == "last":
        return None
    columns: dict[str, dict[int, Value]] = {}
    for first in range(0, len(keys), _KEYS_A_REQUEST):
        found = await _columns(server, window, keys[first : first + _KEYS_A_REQUEST], fn)
        if found is None:
            return None
        columns |= found
    starts = sorted(set().union(*columns.values()), reverse=True)
    if len(starts) > MOST_BUCKETS:
        raise TooManyBuckets(f"the range has more than {MOST_BUCKETS:,} buckets: choose longer ones or a shorter range")
    shown = starts[offset : offset + max(0, limit)]
    return Buckets(shown, {key: [columns[key].get(start) for start in shown] for key in keys}, len(starts))


async def _columns(
    server: Server, window: BucketQuestion, keys: Sequence[str], fn: Fn | None
) -> dict[str, dict[int, Value]] | None:
    """The buckets of each name, by one request, and one more where there are booleans; None where there are texts."""
    function = fn or "mean"
    texts, empty, has_flags, table = await server.query_each(
        [*(_count(each, window.source, keys) for each in (TEXT, EMPTY, FLAG)), _numbers(window, keys, (function,))]
    )
    if fn is None and (texts or empty):
        return None
    rows = _rows(table)
    if not has_flags:
        return {key: _alone(rows, place) for place, key in enumerate(keys)}
    functions = _NUMERIC[function]
    more = [] if functions == (function,) else [_numbers(window, keys, functions)]
    answers = [_rows(found) for found in await server.query_each([*_flags(window, keys), *more])]
    counts, rows = answers[: 2 * len(keys)], answers[-1] if more else rows
    columns: dict[str, dict[int, Value]] = {}
    for place, key in enumerate(keys):
        trues, falses = counts[2 * place : 2 * place + 2]
        part = slice(place * len(functions), (place + 1) * len(functions))
        columns[key] = _values(function, {start: row[part] for start, row in rows.items()}, trues, falses)
    return columns


def _numbers(window: BucketQuestion, keys: Sequence[str], functions: Sequence[str]) -> str:
    """A statement that computes the functions of the numbers of each name."""
    return window.select(", ".join(f"{each}({_field(key)})" for key in keys for each in functions))


def _alone(rows: BucketRows, place: int) -> dict[int, Value]:
    """The value of each bucket that has numbers, of which one is computed."""
    return {start: float(row[place]) for start, row in rows.items() if row[place] is not None}


def _count(suffix: str, source: SeriesSource, keys: Sequence[str]) -> str:
    """A statement that is answered with nothing where none of the names has points of the type with this suffix."""
    columns = ", ".join(f"count({_field(key, suffix)})" for key in keys)
    return f"SELECT {columns} {source.where(source.start_us, source.end_us)}"


def _flags(window: BucketQuestion, keys: Sequence[str]) -> list[str]:
    """For each name two statements: how often it is true, and how often false."""
    return [
        window.select(f"count({_field(key, FLAG)})", f" AND {_field(key, FLAG)} = {state}")
        for key in keys
        for state in ("true", "false")
    ]


def _rows(found: Sequence[Series]) -> BucketRows:
    return {row[0] // 1000: row[1:] for series in found for row in series["values"]}


def _values(fn: Fn, numbers: BucketRows, trues: BucketRows, falses: BucketRows) -> dict[int, Value]:
    """The value of each bucket by its start in UTC microseconds; booleans count as the numbers 1 and 0."""
    values: dict[int, Value] = {}
    for start in numbers.keys() | trues.keys() | falses.keys():
        row = numbers.get(start, ())
        ones, zeros = (table.get(start, (0,))[0] for table in (trues, falses))
        has_number = any(each is not None for each in row) and (fn != "mean" or bool(row[1]))
        if has_number or ones or zeros:
            values[start] = _value(fn, row if has_number else (), ones, zeros)
    return values


def _value(fn: Fn, row: Sequence[Any], ones: int, zeros: int) -> float:
    if fn in ("min", "max"):
        candidates = [*row, *([1.0] if ones else []), *([0.0] if zeros else [])]
        return float(min(candidates) if fn == "min" else max(candidates))
    total = (row[0] if row else 0) + ones
    if fn == "sum":
        return float(total)
    return float(total / ((row[1] if row else 0) + ones + zeros))


def _field(key: str, suffix: str = "") -> str:
    return identifier(field_name(key, suffix))
