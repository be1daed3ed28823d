"""A SELECT over the store: which series, which of their fields, and how many points at the most."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing

from msgspec.structs import replace

from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.influx.measurements import TAGS, Measurements, SeriesRef
from terrazzo.influxql.conditions import Span, cut_time, may_hold, must_hold
from terrazzo.influxql.digests import Digest, DigestMaker, DigestTable
from terrazzo.influxql.errors import QueryError
from terrazzo.influxql.moments import zone_named
from terrazzo.influxql.planning import Needs, check, needs_of, rewound, takes_digests
from terrazzo.influxql.select import Question, ResultSeries, answer, answer_of_digests
from terrazzo.influxql.syntax import Measurement, Select, Wildcard
from terrazzo.influxql.vectors import Table, table_of
from terrazzo.influxql.windows import Windows
from terrazzo.memory_shares import Holding
from terrazzo.ports.store import MOST_BUCKETS, Figures, Points
from terrazzo.times import LATEST_US

_POINT_BYTES = 40  # as it is read, and as it is computed with


class SelectReader:
    """Answers the SELECTs of one request.

    Args:
        holding: the memory of the points that are read.
        is_gone: whether nobody waits for the answer any more.
        now_ns: the present, the same for the whole request.
    """

    def __init__(
        self,
        services: Services,
        measurements: Measurements,
        holding: Holding,
        *,
        is_gone: Callable[[], bool],
        now_ns: int,
    ) -> None:
        self._services = services
        self._measurements = measurements
        self._holding = holding
        self._is_gone = is_gone
        self._now_ns = now_ns
        self._points = 0
        self._most_points = services.limits.influx_points

    async def answer(self, select: Select, database: str) -> list[ResultSeries]:
        """The series of the answer.

        Raises:
            QueryError: it can't be answered, or only by more points than may be read.
            StoreUnavailable: the store can't.
        """
        self._points = 0
        return await self._answer(select, database, Span(), ())

    async def _answer(
        self, select: Select, database: str, outer: Span, dimensions: tuple[str | Wildcard, ...]
    ) -> list[ResultSeries]:
        """The series of a SELECT, within the range of the one around it, and grouped by its tags too."""
        check(select)
        zone = zone_named(select.zone)
        span, where = cut_time(select.where, self._now_ns, zone)
        span = span.within(outer)
        if select.interval_ns and not span.has_end:
            span = Span(span.start_ns, max(self._now_ns, span.start_ns))
        select = replace(select, tags=(*select.tags, *(each for each in dimensions if each not in select.tags)))
        windows = Windows(select.interval_ns, select.offset_ns, zone) if select.interval_ns else None
        question = Question(select, where, span, windows, self._now_ns, MOST_BUCKETS)
        tables: list[Table] = []
        refs: list[SeriesRef] = []
        for source in select.sources:
            if isinstance(source, Select):
                found = await self._answer(source, database, span, select.tags)
                tables += [series.as_table() for series in found]
            else:
                every = await self._measurements.find(source, self._database(source, database))
                refs += [ref for ref in every if may_hold(where, ref.tags)]
        needs = needs_of(select, where, TAGS.get(database, ()))
        if not tables:
            digests = await self._digests(question, refs, needs)
            if digests is not None:
                return await self._services.computing.run(answer_of_digests, question, digests)
        for ref in refs:
            tables.append(await self._table(ref, needs, rewound(select, span)))
        return await self._services.computing.run(answer, question, tables)

    @staticmethod
    def _database(source: Measurement, database: str) -> str:
        found = source.database or database
        if found not in TAGS:
            raise QueryError(f"database not found: {found[:100]}" if found else "database name required")
        return found

    async def _digests(self, question: Question, refs: Sequence[SeriesRef], needs: Needs) -> list[DigestTable] | None:
        """The series in few figures; None where these don't tell all that is asked for."""
        tags = {tag for ref in refs for tag in ref.tags}
        if not takes_digests(question.select, tags) or not all(must_hold(question.where, ref.tags) for ref in refs):
            return None
        before, found = self._points, []
        for ref in refs:
            digest = await self._digest(ref, sorted(needs.names), question)
            if digest is None:
                self._points = before
                self._holding.resize(before * _POINT_BYTES)
                return None
            found.append(DigestTable(ref.measurement, ref.tags, digest))
        return found

    async def _digest(self, ref: SeriesRef, names: Sequence[str], question: Question) -> Digest | None:
        start_us, end_us = _microseconds(rewound(question.select, question.span))
        maker = DigestMaker(question.windows)
        if start_us > end_us:
            return maker.finish()
        pieces = self._services.store.digests(ref.series, names, start_us, end_us, undivided=maker.undivided)
        async with aclosing(pieces) as found:
            async for piece in found:
                self._count(sum(map(_length, piece.values())))
                if not await self._services.computing.run(_add, maker, piece):
                    return None
        digest = await self._services.computing.run(maker.finish)
        if digest is not None:
            self._services.influx_series["digest"] += 1
        return digest

    async def _table(self, ref: SeriesRef, needs: Needs, span: Span) -> Table:
        start_us, end_us = _microseconds(span)
        self._services.influx_series["rows"] += 1
        if start_us > end_us:
            return Table(ref.measurement, ref.tags, table_of("", ref.tags, {}).rows)
        store = self._services.store
        every = await store.names(ref.series, start_us, end_us) if needs.wildcards else []
        names = needs.names_of(every)
        pieces: dict[str, list[Points]] = {}
        async for columns in store.columns(ref.series, names, start_us, end_us):
            for name, points in columns.items():
                pieces.setdefault(name, []).append(points)
            self._count(sum(len(points.times_us) for points in columns.values()))
        return await self._services.computing.run(table_of, ref.measurement, ref.tags, pieces)

    def _count(self, points: int) -> None:
        self._points += points
        if self._points > self._most_points:
            info = f"max-select-point limit exceeded: ({self._points}/{self._most_points}), limits.influx_points"
            raise QueryError(info)
        if self._is_gone():
            raise QueryError("query interrupted")
        self._holding.grow(points * _POINT_BYTES)


def _microseconds(span: Span) -> tuple[int, int]:
    """The range that is read, both ends inclusive."""
    return max(0, -(-span.start_ns // 1_000)), min(LATEST_US, span.end_ns // 1_000)


def _length(piece: Points | Figures) -> int:
    return len(piece.times_us) if isinstance(piece, Points) else len(piece.starts_us)


def _add(maker: DigestMaker, piece: Mapping[str, Points | Figures]) -> bool:
    return all(maker.add(name, each) for name, each in piece.items())
