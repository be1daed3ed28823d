"""The time-series store with a clock before its queries; what is appended goes through as it is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import AsyncGenerator, Mapping, Sequence
from time import perf_counter
from types import TracebackType
from typing import Any

import msgspec

from terrazzo.durations import BOUNDS_S, Durations
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
    StoreStats,
    TimeSeriesStore,
    Undivided,
)
from terrazzo.times import LATEST_US

QUERIES = (
    "notes",
    "series",
    "latest",
    "latest_each",
    "first_after",
    "page",
    "scan",
    "names",
    "columns",
    "digests",
    "resample",
    "extremes",
)


class _Timing:
    """Counts how long a context lasts; no generator, which takes four times as long."""

    __slots__ = ("_began_s", "_durations")

    def __init__(self, durations: Durations) -> None:
        self._durations = durations

    def __enter__(self) -> None:
        self._began_s = perf_counter()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._durations.add(perf_counter() - self._began_s)


class TimedStore:
    """A ``TimeSeriesStore`` in front of another: how long each query took, failed ones too, by its kind.

    Of a ``scan`` each piece counts by itself: what its reader does meanwhile is not the store's.
    """

    def __init__(self, store: TimeSeriesStore) -> None:
        self._store = store
        self._times = {query: Durations() for query in QUERIES}
        self._latest_times = self._times["latest"]
        self.append = store.append  # at each commit: without anything between
        self.replace = store.replace
        self.drop_before = store.drop_before
        self.check = store.check
        self.checkpoint = store.checkpoint
        self.close = store.close
        self.sizes = store.sizes
        self.watch = store.watch

    def _timed(self, query: str) -> _Timing:
        return _Timing(self._times[query])

    # As ``TimeSeriesStore`` says

    def stats(self) -> StoreStats:
        return msgspec.structs.replace(self._store.stats(), query_times=self._times)

    def kept(self) -> Mapping[int, tuple[int, int]]:
        return self._store.kept()

    def give_up(self, company_id: int, size: int) -> int:
        return self._store.give_up(company_id, size)

    @property
    def has_sizes(self) -> bool:
        return self._store.has_sizes

    @property
    def is_whole(self) -> bool:
        return self._store.is_whole

    @property
    def is_replaceable(self) -> bool:
        return self._store.is_replaceable

    async def notes(self, prefix: str) -> dict[str, bytes]:
        with self._timed("notes"):
            return await self._store.notes(prefix)

    async def series(self, prefix: str) -> list[str]:
        with self._timed("series"):
            return await self._store.series(prefix)

    async def latest(
        self, series: Sequence[str], limit: int, *, keys: Sequence[str] = (), most_bytes: int = ANY_SIZE
    ) -> list[Record]:
        began_s = perf_counter()  # without a context: clients ask for nothing as often, and it is short
        try:
            return await self._store.latest(series, limit, keys=keys, most_bytes=most_bytes)
        finally:
            took_s, times = perf_counter() - began_s, self._latest_times
            times.counts[bisect_left(BOUNDS_S, took_s)] += 1  # ``add``, which a call of its own is dear for
            times.sum_s += took_s

    async def latest_each(
        self, series: str, keys: Sequence[str], *, until_us: int = LATEST_US, most_bytes: int = ANY_SIZE
    ) -> Mapping[str, Record]:
        with self._timed("latest_each"):
            return await self._store.latest_each(series, keys, until_us=until_us, most_bytes=most_bytes)

    async def first_after(self, series: Sequence[str], time_us: int, *, keys: Sequence[str] = ()) -> Record | None:
        with self._timed("first_after"):
            return await self._store.first_after(series, time_us, keys=keys)

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
        asked: dict[str, Any] = {"offset": offset, "limit": limit, "keys": keys, "most_bytes": most_bytes}
        with self._timed("page"):
            return await self._store.page(series, start_us, end_us, whole=whole, **asked)

    async def scan(
        self, series: Sequence[str], start_us: int, end_us: int, *, keys: Sequence[str] = ()
    ) -> AsyncGenerator[list[Record], None]:
        pieces = self._store.scan(series, start_us, end_us, keys=keys)
        try:
            while True:
                with self._timed("scan"):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece
        finally:
            await pieces.aclose()

    async def names(self, series: str, start_us: int, end_us: int) -> list[str]:
        with self._timed("names"):
            return await self._store.names(series, start_us, end_us)

    async def columns(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int
    ) -> AsyncGenerator[Mapping[str, Points], None]:
        pieces = self._store.columns(series, keys, start_us, end_us)
        try:
            while True:
                with self._timed("columns"):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece
        finally:
            await pieces.aclose()

    async def digests(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, *, undivided: Undivided
    ) -> AsyncGenerator[Mapping[str, Points | Figures], None]:
        pieces = self._store.digests(series, keys, start_us, end_us, undivided=undivided)
        try:
            while True:
                with self._timed("digests"):
                    piece = await anext(pieces, None)
                if piece is None:
                    return
                yield piece
        finally:
            await pieces.aclose()

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
        with self._timed("resample"):
            return await self._store.resample(
                series,
                keys,
                start_us,
                end_us,
                bucket_us=bucket_us,
                fn=fn,
                origin_us=origin_us,
                offset=offset,
                limit=limit,
            )

    async def extremes(
        self, series: str, keys: Sequence[str], start_us: int, end_us: int, *, bucket_us: int, origin_us: int = 0
    ) -> Mapping[str, Curve]:
        with self._timed("extremes"):
            return await self._store.extremes(series, keys, start_us, end_us, bucket_us=bucket_us, origin_us=origin_us)
