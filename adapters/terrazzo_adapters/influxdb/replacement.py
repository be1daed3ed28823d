"""Records in the place of others, on a server that has no transactions.

What is to be there stands on disk here before the first DELETE, and is carried out again and again until the server has
all of it. So whatever dies in between, the end is the whole replacement.
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
    """All that one series is to have in a range, both ends inclusive.

    ``heads``: what the lines of the measurement's series began with before: none of them may be lost.
    """

    series: str
    start_us: int
    end_us: int
    points: list[LinePoint]
    heads: list[str]


async def make_replacement(
    server: Server, series: str, start_us: int, end_us: int, points: list[LinePoint]
) -> PendingReplacement:
    """Made ready to be carried out, after the server was asked whether it would take the oldest record.

    Raises:
        NotReplaceable: it is InfluxDB 3, or a record is older than the server keeps any.
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
    """Makes it so, however far an earlier attempt came; returns what the server will never take.

    Raises:
        StoreUnavailable: the server is away; or it doesn't show all that it took.
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
