"""The port's queries as InfluxQL.

InfluxDB orders by time alone. Records of several series that share a microsecond are sorted by arrival here; if such a
group lies across the edge of a page, the whole group is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from terrazzo.ports.store import Page, Record, StoreUnavailable
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.influxdb.lines import parse_body
from terrazzo_adapters.influxdb.naming import (
    ARRIVAL,
    BODY,
    KEPT,
    KINDS,
    SeriesKind,
    carrying,
    condition,
    fields_of,
    identifier,
    kind_of,
    literal,
    series_name,
    tag_values,
    tagged_head,
)
from terrazzo_adapters.influxdb.server import Refused, Series, Server

_STATEMENTS_A_REQUEST = 20
_NEWEST = 20  # records among which the newest of some names are looked for first
_PARTS, _FEW = 16, 200  # of a range, in the last one of which so few records are looked for first
_ROWS_AT_ONCE = 200  # that are read in the event loop, in a millisecond

LATEST_US = (2**63 - 1) // 1000 - 1
"""The last microsecond whose nanoseconds InfluxDB can hold."""

TimedRecord = tuple[int, int, Record]
"""A record with the key that it is sorted by: time, arrival."""


@dataclass(frozen=True, slots=True)
class SeriesSource:
    """The series of one measurement that a query is about, and its range, both ends inclusive.

    ``keys``: only records that carry one of these names; empty: all.
    """

    kind: SeriesKind
    series: tuple[str, ...]
    start_us: int
    end_us: int
    keys: tuple[str, ...] = ()

    def where(self, start_us: int, end_us: int) -> str:
        """The statement from FROM on, for a part of the range."""
        wanted = " OR ".join(map(condition, self.series))
        return (
            f'FROM "{self.kind.measurement}" WHERE ({wanted}){carrying(self.keys)}'
            f" AND time >= {start_us * 1000} AND time <= {end_us * 1000 + 999}"
        )


def sources(series: Sequence[str], start_us: int, end_us: int, keys: Sequence[str] = ()) -> list[SeriesSource]:
    """One source for each measurement; names that are no series have no records."""
    by_kind: dict[SeriesKind, list[str]] = {}
    for name in dict.fromkeys(series):
        try:
            by_kind.setdefault(kind_of(name), []).append(name)
        except ValueError:
            continue
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    if start_us > end_us:
        return []
    return [SeriesSource(kind, tuple(names), start_us, end_us, tuple(keys)) for kind, names in by_kind.items()]


async def page(
    server: Server,
    series: Sequence[str],
    start_us: int,
    end_us: int,
    *,
    offset: int,
    limit: int,
    keys: Sequence[str] = (),
) -> Page:
    """Records of a range, newest first, and the exact total."""
    asked = sources(series, start_us, end_us, keys)
    if len(asked) == 1 and limit > 0:
        return await _page_of_one(server, asked[0], offset, limit)
    count = await total(server, series, start_us, end_us, keys)
    if offset >= count or limit <= 0:
        return Page([], count)
    return Page(await _newest(server, sources(series, start_us, end_us, keys), offset=offset, limit=limit), count)


async def _page_of_one(server: Server, source: SeriesSource, offset: int, limit: int) -> Page:
    """The total and the records, unless records of one time lie across the page's edge.

    By one request; of names by two at a time, as the server works on one statement of a request after the other.
    """
    if source.keys:
        counted, rows = await asyncio.gather(
            server.query(_count_of(source, source.start_us, source.end_us)), _newest_rows(server, source, offset, limit)
        )
    else:
        span = source.start_us, source.end_us
        statements = [_count_of(source, *span), _rows_of(source, *span, _around(offset, limit))]
        counted, rows = await server.query_each(statements)
    count = _counted(counted)
    if offset >= count:
        return Page([], count)
    found = await _chosen(server, source, await _timed(rows, source.kind), offset=offset, limit=limit)
    return Page([record for _, _, record in found], count)


async def _newest_rows(server: Server, source: SeriesSource, offset: int, limit: int) -> Sequence[Series]:
    """The rows that ``_around`` asks for: as a rule they lie in the end of a range, which the server reads sooner."""
    bounds, wanted = _around(offset, limit), limit + 1 + bool(offset)
    late_us = source.end_us - (source.end_us - source.start_us) // _PARTS
    if offset + limit <= _FEW:
        found = await server.query(_rows_of(source, late_us, source.end_us, bounds))
        if sum(len(series["values"]) for series in found) == wanted:
            return found
    return await server.query(_rows_of(source, source.start_us, source.end_us, bounds))


async def total(server: Server, series: Sequence[str], start_us: int, end_us: int, keys: Sequence[str] = ()) -> int:
    """The number of records in a range."""
    asked = sources(series, start_us, end_us, keys)
    return sum(await asyncio.gather(*(_count(server, source, source.start_us, source.end_us) for source in asked)))


async def latest(server: Server, series: Sequence[str], limit: int, keys: Sequence[str] = ()) -> list[Record]:
    """The newest ``limit`` records of all the series."""
    return await _newest(server, sources(series, 0, LATEST_US, keys), offset=0, limit=limit) if limit > 0 else []


async def latest_each(server: Server, series: str, keys: Sequence[str], until_us: int) -> dict[str, Record]:
    """For each name the newest record that carries it, of those that are not later than ``until_us``: one of the newest
    of all as a rule, else it is looked for."""
    is_of_all = until_us >= LATEST_US and series.startswith("m/")
    found = await _carriers(server, series, keys) if is_of_all else {}
    keys = [key for key in keys if key not in found]
    for begin in range(0, len(keys), _STATEMENTS_A_REQUEST):
        some = keys[begin : begin + _STATEMENTS_A_REQUEST]
        asked = [(key, source) for key in some for source in sources([series], 0, until_us, [key])]
        statements = [_rows_of(source, source.start_us, source.end_us, _around(0, 1)) for _, source in asked]
        answers = await server.query_each(statements) if statements else []
        for (key, source), rows in zip(asked, answers, strict=True):
            for _, _, record in await _chosen(server, source, await _timed(rows, source.kind), offset=0, limit=1):
                found[key] = record
    return found


async def _carriers(server: Server, series: str, keys: Sequence[str]) -> dict[str, Record]:
    """For each name that one of the newest records carries the newest of these, as far as names are searched for."""
    found: dict[str, Record] = {}
    for record in await latest(server, [series], _NEWEST):
        for key in parse_points(record.body).keys() & set(filter(None, keys)):
            found.setdefault(key, record)
    return found


async def _newest(server: Server, asked: Sequence[SeriesSource], *, offset: int, limit: int) -> list[Record]:
    if len(asked) == 1:
        found = await _newest_of_one(server, asked[0], offset=offset, limit=limit)
    else:
        each = [await _newest_of_one(server, source, offset=0, limit=offset + limit) for source in asked]
        merged = sorted((found for part in each for found in part), key=_order, reverse=True)
        found = merged[offset : offset + limit]
    return [record for _, _, record in found]


async def _newest_of_one(server: Server, source: SeriesSource, *, offset: int, limit: int) -> list[TimedRecord]:
    rows = await _rows(server, source, source.start_us, source.end_us, _around(offset, limit))
    return await _chosen(server, source, rows, offset=offset, limit=limit)


def _around(offset: int, limit: int) -> str:
    """The newest records with one more on each side, which shows whether a group is cut."""
    before = 1 if offset else 0
    return f"ORDER BY time DESC LIMIT {limit + before + 1} OFFSET {offset - before}"


async def _chosen(
    server: Server, source: SeriesSource, rows: list[TimedRecord], *, offset: int, limit: int
) -> list[TimedRecord]:
    """Of the records that ``_around`` asks for those that are meant; a group that is cut is read whole."""
    before = 1 if offset else 0
    inside = rows[before : before + limit]
    if not inside:
        return []
    newest_us, oldest_us = inside[0][0], inside[-1][0]
    above, below = rows[:before], rows[before + limit :]
    if all(row[0] != newest_us for row in above) and all(row[0] != oldest_us for row in below):
        return sorted(inside, key=_order, reverse=True)
    newer = await _count(server, source, newest_us + 1, source.end_us)
    groups = await _rows(server, source, oldest_us, newest_us, "")
    groups.sort(key=_order, reverse=True)
    return groups[offset - newer : offset - newer + limit]


async def first_after(server: Server, series: Sequence[str], time_us: int, keys: Sequence[str] = ()) -> Record | None:
    """The first record strictly later than ``time_us``."""
    firsts: list[TimedRecord] = []
    for source in sources(series, time_us + 1, LATEST_US, keys):
        rows = await _rows(server, source, source.start_us, source.end_us, _oldest(2))
        if len(rows) == 2 and rows[0][0] == rows[1][0]:
            rows = await _rows(server, source, rows[0][0], rows[0][0], "")
        firsts += rows
    return min(firsts, key=_order)[2] if firsts else None


async def scan(server: Server, asked: Sequence[SeriesSource], start_us: int, limit: int) -> tuple[list[Record], int]:
    """About ``limit`` records from ``start_us`` on, oldest first, and the time at which the next ones begin.

    The records of one microsecond are never split, so that the next ones begin at a later one.
    """
    found: list[TimedRecord] = []
    next_us = LATEST_US + 1
    for source in asked:
        rows = await _rows(server, source, max(start_us, source.start_us), source.end_us, _oldest(limit))
        if len(rows) == limit:
            last_us = rows[-1][0]
            if rows[0][0] == last_us:
                rows = await _rows(server, source, last_us, last_us, "")
                last_us += 1
            next_us = min(next_us, last_us)
        found += rows
    records = [each[2] for each in sorted(found, key=_order) if each[0] < next_us]
    return records, next_us


def _oldest(limit: int) -> str:
    return f"ORDER BY time ASC LIMIT {limit}"


def _order(found: TimedRecord) -> tuple[int, int]:
    return found[0], found[1]


def _rows_of(source: SeriesSource, start_us: int, end_us: int, bounds: str) -> str:
    columns = ", ".join(f'"{name}"' for name in (BODY, ARRIVAL, *source.kind.tags))
    return f"SELECT {columns} {source.where(start_us, end_us)} {bounds}"


async def _rows(server: Server, source: SeriesSource, start_us: int, end_us: int, bounds: str) -> list[TimedRecord]:
    return await _timed(await server.query(_rows_of(source, start_us, end_us, bounds)), source.kind)


async def _timed(answer: Sequence[Series], kind: SeriesKind) -> list[TimedRecord]:
    if sum(len(series["values"]) for series in answer) <= _ROWS_AT_ONCE:
        return _records(answer, kind)
    return await asyncio.to_thread(_records, answer, kind)


def _records(answer: Sequence[Series], kind: SeriesKind) -> list[TimedRecord]:
    found: list[TimedRecord] = []
    for series in answer:
        for ns, body, arrival, *tags in series["values"]:
            name = series_name(kind, dict(zip(kind.tags, tags, strict=True)))
            found.append((ns // 1000, arrival, Record(name, ns // 1000, parse_body(body))))
    return found


async def _count(server: Server, source: SeriesSource, start_us: int, end_us: int) -> int:
    return _counted(await server.query(_count_of(source, start_us, end_us)))


def _count_of(source: SeriesSource, start_us: int, end_us: int) -> str:
    """A statement that counts the records; those that carry one name by that name's fields, which filters nothing."""
    if len(source.keys) != 1:
        return f'SELECT count("{ARRIVAL}") {source.where(start_us, end_us)}'
    counts = ", ".join(f"count({identifier(name)})" for name in fields_of(source.keys[0]))
    return f"SELECT {counts} {replace(source, keys=()).where(start_us, end_us)}"


def _counted(answer: Sequence[Series]) -> int:
    """The number of records: a record has one field of a name at the most, whatever its type."""
    return sum(int(count or 0) for series in answer for count in series["values"][0][1:])


async def series_names(server: Server, prefix: str) -> list[str]:
    """The names that start with ``prefix``, sorted."""
    names: set[str] = set()
    for kind in KINDS:
        start = f"{kind.letter}/"
        if not (start.startswith(prefix) or prefix.startswith(start)):
            continue
        tags = ", ".join(f'"{tag}"' for tag in kind.tags)
        where = _narrowed(kind, prefix)  # quotes the prefix
        statement = f'SELECT last("{ARRIVAL}") FROM "{kind.measurement}"{where} GROUP BY {tags}'  # nosec B608
        names |= {series_name(kind, series.get("tags", {})) for series in await server.query(statement)}
    return sorted(name for name in names if name.startswith(prefix))


def _narrowed(kind: SeriesKind, prefix: str) -> str:
    """The condition that leaves out other terminals, if the prefix has a terminal's full name."""
    if len(kind.tags) < 2 or prefix.count("/") < 2:
        return ""
    tag = kind.tags[0]
    return f" WHERE {identifier(tag)} = {literal(tag_values(prefix)[tag])}"


async def drop_before(server: Server, time_us: int) -> None:
    """Deletes all records earlier than ``time_us``."""
    if server.generation >= 3:
        raise StoreUnavailable("InfluxDB 3 has no DELETE: give the database a retention period instead")
    ns = min(max(time_us, 0), LATEST_US) * 1000
    for kind in KINDS:
        kept = await _heads(server, kind, ns)
        await server.query(f'DELETE FROM "{kind.measurement}" WHERE time < {ns}')  # a name of ours  # nosec B608
        if lost := kept - await _heads(server, kind, ns):
            await bring_back(server, lost, ns)


async def delete(server: Server, series: str, start_us: int, end_us: int) -> None:
    """Deletes all records of a series in a range, both ends inclusive. It may hide other series (``bring_back``)."""
    for source in sources([series], start_us, end_us):
        await server.query(f"DELETE {source.where(source.start_us, source.end_us)}")


async def heads(server: Server, kind: SeriesKind) -> set[str]:
    """The line heads of all series of a kind that are in the server's index."""
    answer = await server.query(f'SHOW SERIES FROM "{kind.measurement}"')
    return {row[0] for series in answer for row in series["values"]}


async def _heads(server: Server, kind: SeriesKind, start_ns: int) -> set[str]:
    """The line heads of the series that have records from a time on, as far as the server knows."""
    statement = f'SELECT last("{ARRIVAL}") FROM "{kind.measurement}" WHERE time >= {start_ns} GROUP BY *'  # nosec B608
    return {tagged_head(kind, series.get("tags", {})) for series in await server.query(statement)}


async def bring_back(server: Server, lost: set[str], ns: int) -> None:
    """Makes hidden series visible again.

    InfluxDB 1.6.7 hides a series that was emptied once and filled again when a later DELETE empties another. Its points
    are still there, and any write to the series shows them again: here of a field that nobody reads, and that the next
    DELETE removes.
    """
    try:
        await server.write("\n".join(f"{head} {KEPT}=true {ns}" for head in sorted(lost)))
    except Refused as error:
        raise StoreUnavailable(f"{len(lost)} series show their records only when more arrive: {error}") from error
