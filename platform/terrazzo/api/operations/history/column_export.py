"""Time series as files of typed columns: gone through twice, for the types and for the values.

Each piece is made on a thread; the store holds nothing between two pieces.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from datetime import tzinfo
from typing import NamedTuple

from terrazzo.compute_thread import ComputeThread
from terrazzo.mosaic.column_files import ColumnEncoder, ColumnFormat, column_encoder
from terrazzo.mosaic.typed_columns import ColumnType, TypeTally
from terrazzo.ports.store import Points, TimeSeriesStore

TOPIC = "topic"
"""The column of a grid's topics; a point of that name is ``topic_1``."""

_ROWS_AT_ONCE = 20_000


class ColumnSource(NamedTuple):
    """Which points. ``series``: names of the store by topic; one without a topic has no such column.

    ``keys``: the names; empty: all.
    """

    series: Mapping[str, str]
    start_us: int
    end_us: int
    keys: Sequence[str]

    @property
    def has_topics(self) -> bool:
        """Whether rows say which topic they are of."""
        return "" not in self.series


async def column_pieces(
    store: TimeSeriesStore, computing: ComputeThread, source: ColumnSource, format: ColumnFormat, zone: tzinfo
) -> AsyncGenerator[bytes, None]:
    """The file, in pieces; series one after the other, each oldest first.

    Raises:
        UnforeseenType: a late record has a point of another type than all before.
    """
    types = await _types(store, computing, source)
    shown = {_shown(name, source): type for name, type in types.items()}
    every: dict[str, ColumnType] = {TOPIC: "text", **shown} if source.has_topics else shown
    encoder = await computing.run(column_encoder, format, every, zone)
    for topic, series in source.series.items():
        batch = _Batch(topic, source)
        async with aclosing(store.columns(series, list(types), source.start_us, source.end_us)) as found:
            async for columns in found:
                if batch.add(columns) >= _ROWS_AT_ONCE:
                    yield await computing.run(batch.encode, encoder)
        yield await computing.run(batch.encode, encoder)
    yield await computing.run(encoder.end)


async def _types(store: TimeSeriesStore, computing: ComputeThread, source: ColumnSource) -> dict[str, ColumnType]:
    """The types of the columns, in the order of the keys, or sorted."""
    tally = TypeTally()
    for series in source.series.values():
        keys = source.keys or await store.names(series, source.start_us, source.end_us)
        async with aclosing(store.columns(series, keys, source.start_us, source.end_us)) as found:
            async for columns in found:
                await computing.run(tally.add, columns)
    types = tally.types()
    return {name: types.get(name, "number") for name in source.keys or sorted(types)}


def _shown(name: str, source: ColumnSource) -> str:
    """What the column of a name is called: ``time`` and ``topic`` are taken."""
    return f"{name}_1" if name == "time" or (name == TOPIC and source.has_topics) else name


class _Batch:
    """Points that become the next rows of a file."""

    def __init__(self, topic: str, source: ColumnSource) -> None:
        self._texts = {TOPIC: topic} if source.has_topics else {}
        self._source = source
        self._pieces: dict[str, list[Points]] = {}
        self._rows = 0

    def add(self, columns: Mapping[str, Points]) -> int:
        """Adds a piece of a store's columns; returns how many rows there are at least."""
        for name, points in columns.items():
            self._pieces.setdefault(name, []).append(points)
        self._rows += max(len(points.times_us) for points in columns.values())
        return self._rows

    def encode(self, encoder: ColumnEncoder) -> bytes:
        """The bytes of the rows, which are forgotten."""
        from terrazzo.influxql.vectors import table_of  # its library is heavy

        pieces, self._pieces, self._rows = self._pieces, {}, 0
        if not pieces:
            return b""
        rows = table_of("", {}, pieces).rows
        times_us = rows.times // 1_000
        columns = {_shown(name, self._source): Points(times_us, *vector) for name, vector in rows.columns.items()}
        return encoder.encode(columns, times_us, self._texts)
