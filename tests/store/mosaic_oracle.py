"""What a store must answer about the names in mosaic bodies: a SQLite table, its records decoded and looped over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite
from typing import Any

import msgpack
from store_oracle import Oracle

from terrazzo.ports.store import Buckets, Page, Points, Record


class MosaicOracle(Oracle):
    """``Oracle`` with ``keys``, and the questions for charts."""

    def _every(self, series: Sequence[str], start_us: int, end_us: int, keys: Sequence[str]) -> list[Record]:
        """Oldest first."""
        records = self.page(series, start_us, end_us, offset=0, limit=1_000_000).records[::-1]
        return [record for record in records if not keys or set(keys) & points(record).keys()]

    def latest_with(self, series: Sequence[str], limit: int, keys: Sequence[str]) -> list[Record]:
        return self._every(series, 0, 2**62, keys)[::-1][:limit]

    def latest_each(self, series: str, keys: Sequence[str], until_us: int = 2**62) -> dict[str, Record]:
        newest = {key: self._every([series], 0, until_us, [key])[-1:] for key in keys}
        return {key: records[0] for key, records in newest.items() if records}

    def first_after_with(self, series: Sequence[str], time_us: int, keys: Sequence[str]) -> Record | None:
        return next(iter(self._every(series, time_us + 1, 2**62, keys)), None)

    def page_with(
        self, series: Sequence[str], start_us: int, end_us: int, keys: Sequence[str], offset: int, limit: int
    ) -> Page:
        found = self._every(series, start_us, end_us, keys)[::-1]
        return Page(found[offset : offset + limit], len(found))

    def scan(self, series: Sequence[str], start_us: int, end_us: int, keys: Sequence[str]) -> list[Record]:
        return self._every(series, start_us, end_us, keys)

    def names(self, series: str, start_us: int, end_us: int) -> list[str]:
        return sorted({name for record in self._every([series], start_us, end_us, ()) for name in points(record)})

    def resample(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, bucket_us: int, **how: Any
    ) -> Buckets:
        records = self._every([series], start_us, end_us, ())
        return resampled(records, keys, bucket_us, **how)

    def columns(self, series: str, keys: Sequence[str], start_us: int, end_us: int) -> dict[str, list[tuple[int, Any]]]:
        """The points of each name that has some."""
        records = self._every([series], start_us, end_us, ())
        each = {key: [(record.time_us, points(record).get(key)) for record in records] for key in keys}
        found = {key: [point for point in every if point[1] is not None] for key, every in each.items()}
        return {key: every for key, every in found.items() if every}

    def extremes(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, bucket_us: int, origin_us: int
    ) -> dict[str, list[tuple[int, float]]]:
        records = self._every([series], start_us, end_us, ())
        curves = {key: list(extremes(records, key, bucket_us, origin_us)) for key in keys}
        return {key: curve for key, curve in curves.items() if curve}


def points(record: Record) -> dict[str, Any]:
    """Numbers that are not finite are no points."""
    found = msgpack.unpackb(record.body)
    return {key: None if isinstance(value, float) and not isfinite(value) else value for key, value in found.items()}


def resampled(
    records: Sequence[Record],
    keys: Sequence[str],
    bucket_us: int,
    fn: str | None,
    origin_us: int,
    offset: int,
    limit: int,
) -> Buckets:
    """By the definition, one value at a time."""
    buckets: dict[int, dict[str, list[Any]]] = {}
    for record in records:
        start_us = (record.time_us - origin_us) // bucket_us * bucket_us + origin_us
        for key, value in points(record).items():
            if key in keys and value is not None:
                buckets.setdefault(start_us, {}).setdefault(key, []).append(value)
    values = {start: {key: reduced(each, fn) for key, each in bucket.items()} for start, bucket in buckets.items()}
    filled = {start: bucket for start, bucket in values.items() if any(value is not None for value in bucket.values())}
    starts = sorted(filled, reverse=True)
    shown = starts[offset : offset + limit]
    return Buckets(shown, {key: [filled[start].get(key) for start in shown] for key in keys}, len(starts))


def reduced(values: list[Any], fn: str | None) -> Any:
    numbers = [float(value) for value in values if not isinstance(value, str)]
    if fn == "last" or (fn is None and not numbers):
        return values[-1]
    if not numbers:
        return None
    return {"min": min, "max": max, "sum": sum, "mean": mean}[fn or "mean"](numbers)


def mean(numbers: list[float]) -> float:
    return sum(numbers) / len(numbers)


def extremes(records: Sequence[Record], key: str, bucket_us: int, origin_us: int) -> Iterator[tuple[int, float]]:
    """First, lowest, highest and last of each bucket, in order; of equals the earliest."""
    buckets: dict[int, list[tuple[int, float]]] = {}
    for record in records:
        value = points(record).get(key)
        if value is not None and not isinstance(value, str):
            buckets.setdefault((record.time_us - origin_us) // bucket_us, []).append((record.time_us, float(value)))
    for _, bucket in sorted(buckets.items()):
        values = [value for _, value in bucket]
        chosen = {0, values.index(min(values)), values.index(max(values)), len(bucket) - 1}
        yield from (bucket[place] for place in sorted(chosen))


def same_buckets(found: Buckets, expected: Buckets) -> bool:
    """Sums of floats depend on their order."""
    return (
        found.starts_us == expected.starts_us
        and found.total == expected.total
        and all(same_values(found.columns[key], values) for key, values in expected.columns.items())
    )


def same_values(found: Sequence[Any], expected: Sequence[Any]) -> bool:
    return len(found) == len(expected) and all(map(same_value, found, expected))


def same_value(found: Any, expected: Any) -> bool:
    if isinstance(expected, float) and isinstance(found, float):
        return abs(found - expected) <= 1e-9 * max(1.0, abs(expected))
    return bool(found == expected)


def curves_as_points(curves: Mapping[str, Any]) -> dict[str, list[tuple[int, float]]]:
    return {key: list(zip(curve.times_us, curve.values, strict=True)) for key, curve in curves.items()}


def as_points(column: Points) -> list[tuple[int, Any]]:
    """Times and values of a column of the port."""
    read = (float, bool, lambda place: column.texts[int(place)])
    values = [read[kind](number) for kind, number in zip(column.kinds.tolist(), column.numbers.tolist(), strict=True)]
    return list(zip(column.times_us.tolist(), values, strict=True))


def same_points(found: Mapping[str, list[tuple[int, Any]]], expected: Mapping[str, list[tuple[int, Any]]]) -> bool:
    """Whether they are equal; whole numbers are as near as floats are."""
    plain = {key: [(time_us, _as_read(value)) for time_us, value in every] for key, every in expected.items()}
    return found == plain and _types(found) == _types(plain)


def _as_read(value: Any) -> Any:
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _types(points: Mapping[str, list[tuple[int, Any]]]) -> dict[str, list[type]]:
    return {key: [type(value) for _, value in every] for key, every in points.items()}
