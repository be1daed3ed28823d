"""Replaces the records of a range, on a server that has no transactions.

The new records are on disk here before the first DELETE, and the replacement is repeated until the server has all of
them. So whatever crashes in between, it ends complete.
"""

from __future__ import annotations

import time

import msgspec

from terrazzo.ports.store import NotReplaceable, StoreUnavailable
from terrazzo_adapters.influxdb import queries
from terrazzo_adapters.influxdb.delivery import BatchDelivery
from terrazzo_adapters.influxdb.lines import LinePoint
from terrazzo_adapters.influxdb.naming import KEPT, kind_of, line_head
from terrazzo_adapters.influxdb.server import Refused, Server


class PendingReplacement(msgspec.Struct, array_like=True):
    """All records that one series is to have in a range, both ends inclusive.

    ``heads``: the line heads of the measurement's series before it; none of them may be lost.
    """

    series: str
    start_us: int
    end_us: int
    points: list[LinePoint]
    heads: list[str]


async def make_replacement(
    server: Server, series: str, start_us: int, end_us: int, points: list[LinePoint]
) -> PendingReplacement:
    """Prepares a replacement, after the server has shown that it takes the oldest record.

    Raises:
        NotReplaceable: it is InfluxDB 3, or a record is older than the server's retention.
    """
    if server.generation >= 3:
        raise NotReplaceable("InfluxDB 3 has no DELETE, so that no record can be replaced")
    if points:
        oldest_us = min(point.time_us for point in points)
        try:
            await server.write(f"{line_head(series, '')} {KEPT}=true {oldest_us * 1000}")
        except Refused as error:
            raise NotReplaceable(f"InfluxDB would never take the new records: {error}") from None
    return PendingReplacement(series, start_us, end_us, points, sorted(await queries.heads(server, kind_of(series))))


async def carry_out(server: Server, delivery: BatchDelivery, wanted: PendingReplacement) -> list[LinePoint]:
    """Deletes the range and writes the points, however far an earlier attempt came; returns those refused for good.

    Raises:
        StoreUnavailable: the server is away, or doesn't show all that it took.
    """
    await delivery.connect()
    await queries.delete(server, wanted.series, wanted.start_us, wanted.end_us)
    refused = await delivery.deliver(wanted.points) if wanted.points else []
    lost = set(wanted.heads) - await queries.heads(server, kind_of(wanted.series))
    if lost:
        await queries.bring_back(server, lost, time.time_ns())
    taken = len(wanted.points) - len(refused)
    shown = await queries.total(server, [wanted.series], wanted.start_us, wanted.end_us)
    if shown < taken:
        raise StoreUnavailable(f"InfluxDB took {taken} records of {wanted.series} and shows {shown}")
    return refused
