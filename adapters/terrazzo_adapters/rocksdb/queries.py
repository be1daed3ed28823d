"""The port's queries, for the process that writes and for others that only read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from rocksdict import Snapshot

from terrazzo.ports.store import (
    ANY_SIZE,
    MOST_BUCKETS,
    Buckets,
    Curve,
    Figures,
    Fn,
    Page,
    Points,
    Record,
    Undivided,
)
from terrazzo.times import LATEST_US
from terrazzo_adapters.keyvalue.notes import read_notes
from terrazzo_adapters.rocksdb import reads

if TYPE_CHECKING:
    from terrazzo_adapters.rocksdb.charts import ColumnPiece

P = ParamSpec("P")
T = TypeVar("T")


class Queries(ABC):
    """The queries of ``TimeSeriesStore``, each on one snapshot."""

    @abstractmethod
    async def _read(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Runs ``query`` on a snapshot, on another thread."""

    async def _read_rows(self, query: Callable[Concatenate[Snapshot, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """The same for a query that goes through many records in Python."""
        return await self._read(query, *args, **kwargs)

    async def series(self, prefix: str) -> list[str]:
        """The names that start with ``prefix``, sorted."""
        return await self._read(reads.series_names, prefix)

    async def notes(self, prefix: str) -> dict[str, bytes]:
        """The notes whose names start with ``prefix``, sorted."""
        return await self._read(read_notes, prefix)

    async def latest(
        self, series: Sequence[str], limit: int, *, keys: Sequence[str] = (), most_bytes: int = ANY_SIZE
    ) -> list[Record]:
        """The newest ``limit`` records of the series together."""
        return await self._read(reads.latest, series, limit, frozenset(keys), most_bytes)

    async def latest_each(
        self, series: str, keys: Sequence[str], *, until_us: int = LATEST_US, most_bytes: int = ANY_SIZE
    ) -> dict[str, Record]:
        """For each name the newest record that carries it, of those that are not later than ``until_us``."""
        return await self._read(reads.latest_each, series, frozenset(keys), until_us, most_bytes)

    async def first_after(self, series: Sequence[str], time_us: int, *, keys: Sequence[str] = ()) -> Record | None:
        """The first record strictly later than ``time_us``."""
        return await self._read(reads.first_after, series, time_us, frozenset(keys))

    async def page(
        self,
        series: Sequence[str],
        start_us: int,
        end_us: int,
        *,
        offset: int,
        limit: int,
        keys: Sequence[str] = (),
        most_bytes: int = ANY_SIZE,
        whole: bool = True,
    ) -> Page:
        """A page of a range, newest first, with the exact total."""
        asked = {"offset": offset, "limit": limit, "most_bytes": most_bytes}
        return await self._read(reads.page, series, start_us, end_us, keys=frozenset(keys), whole=whole, **asked)

    async def scan(
        self, series: Sequence[str], start_us: int, end_us: int, *, keys: Sequence[str] = ()
    ) -> AsyncGenerator[list[Record], None]:
        """All records of a range, oldest first, each piece from a snapshot of its own."""
        after, wanted = b"", frozenset(keys)
        while True:
            piece = await self._read_rows(reads.scan, series, start_us, end_us, keys=wanted, after=after)
            if piece.records:
                yield piece.records
            if not piece.after:
                return
            after = piece.after

    async def names(self, series: str, start_us: int, end_us: int) -> list[str]:
        """The names that the records of a range carry, sorted."""
        return await self._read_rows(reads.carried_names, series, start_us, end_us)

    async def columns(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int
    ) -> AsyncGenerator[Mapping[str, Points], None]:
        """The points of a range as arrays, oldest first, each piece from a snapshot of its own."""
        async for piece in self._stretches(series, keys, start_us, end_us, None):
            yield {key: each for key, each in piece.items() if isinstance(each, Points)}

    async def digests(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, *, undivided: Undivided
    ) -> AsyncGenerator[Mapping[str, Points | Figures], None]:
        """The same, with figures of what is undivided where segments have them."""
        async for piece in self._stretches(series, keys, start_us, end_us, undivided):
            yield piece

    async def _stretches(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, undivided: Undivided | None
    ) -> AsyncGenerator[Mapping[str, Points | Figures], None]:
        def ask(view: Snapshot, start_us: int) -> ColumnPiece:
            from terrazzo_adapters.rocksdb import charts  # its library is heavy

            return charts.column_piece(view, series, keys, start_us, end_us, undivided)

        next_us: int | None = start_us
        while next_us is not None:
            piece = await self._read(ask, next_us)
            for columns in piece.columns:
                yield {key: each if isinstance(each, Figures) else Points(*each) for key, each in columns.items()}
            next_us = piece.next_us

    async def resample(
        self,
        series: str,
        keys: Sequence[str],
        start_us: int,
        end_us: int,
        *,
        bucket_us: int,
        fn: Fn | None = None,
        origin_us: int = 0,
        offset: int = 0,
        limit: int = MOST_BUCKETS,
    ) -> Buckets:
        """The points of a range in buckets, newest first."""

        def ask(view: Snapshot) -> Buckets:
            from terrazzo_adapters.rocksdb import charts  # its library is heavy

            resampler = charts.Resampler(keys, bucket_us=bucket_us, fn=fn, origin_us=origin_us)
            charts.feed(resampler, view, series, keys, start_us=start_us, end_us=end_us)
            return resampler.finish(offset=offset, limit=limit)

        return await self._read(ask)

    async def extremes(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, *, bucket_us: int, origin_us: int = 0
    ) -> dict[str, Curve]:
        """Of each bucket the first, lowest, highest and last point."""

        def ask(view: Snapshot) -> dict[str, Curve]:
            from terrazzo_adapters.rocksdb import charts  # its library is heavy

            extremes = charts.Extremes(keys, bucket_us=bucket_us, origin_us=origin_us)
            charts.feed(extremes, view, series, keys, start_us=start_us, end_us=end_us)
            return extremes.finish()

        return await self._read(ask)
