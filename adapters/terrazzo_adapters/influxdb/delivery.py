"""``BatchDelivery``: writes a batch to the server, and repeats without what the server refuses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Sequence

from terrazzo_adapters.influxdb.lines import LinePoint, encode_line
from terrazzo_adapters.influxdb.naming import ARRIVAL, BODY
from terrazzo_adapters.influxdb.server import Refused, Server
from terrazzo_adapters.influxdb.ties import Ties

_log = logging.getLogger(__name__)
_REQUEST_BYTES = 4 * 1024 * 1024
_MOST_FIELDS_LEFT_OUT = 1000
_LINES_A_TURN = 200  # of the event loop: about 2 ms


class BatchDelivery:
    """Writes one batch at a time. Every method raises ``StoreUnavailable`` while the server is away."""

    def __init__(self, server: Server, writer: str) -> None:
        self._server = server
        self._writer = writer
        self._ties = Ties(server)
        self._connecting = asyncio.Lock()
        self._left_out: set[str] = set()
        self.reason = ""
        """What the server said when it last refused records."""

    @property
    def has_all_fields(self) -> bool:
        """Whether all fields were written; some are left out if another program has given them another type."""
        return not self._left_out

    async def connect(self) -> None:
        """Checks once that the server is an InfluxDB and has the database."""
        async with self._connecting:
            if not self._server.generation:
                await self._server.connect()

    async def prepare(self, points: Sequence[LinePoint]) -> bool:
        """Assigns the points their tie-breakers; False if they had them."""
        if all(point.tie >= 0 for point in points):
            return False
        await self.connect()
        await self._ties.assign(points)
        return True

    def prepare_all(self, series: str, start_us: int, end_us: int, points: Sequence[LinePoint]) -> None:
        """Assigns tie-breakers to points that will be the only ones of a series in a range, both ends inclusive."""
        self._ties.assign_all(series, start_us, end_us, points)

    async def deliver(self, points: Sequence[LinePoint]) -> list[LinePoint]:
        """Writes the points; returns those that the server will never take."""
        await self.connect()
        await self.prepare(points)
        refused: list[LinePoint] = []
        for chunk in _chunks(points):
            refused += await self._write(chunk, self._left_out)
        return refused

    async def _write(self, points: Sequence[LinePoint], without: set[str] | None) -> list[LinePoint]:
        """Writes the points, and again without what the server refuses. Writing twice changes nothing."""
        lines = await self._lines(points, without)
        try:
            await self._server.write("\n".join(lines))
        except Refused as error:
            if error.expired:
                self.reason = str(error)
                return _oldest(points, error.expired)
            if without is not None:
                return await self._write(points, self._without_conflict(error))
            if len(points) == 1:
                self.reason = str(error)
                return list(points)
            middle = len(points) // 2
            return await self._write(points[:middle], None) + await self._write(points[middle:], None)
        return []

    async def _lines(self, points: Sequence[LinePoint], without: set[str] | None) -> list[str]:
        lines: list[str] = []
        for start in range(0, len(points), _LINES_A_TURN):
            part = points[start : start + _LINES_A_TURN]
            lines += [encode_line(point, writer=self._writer, without=without) for point in part]
            await asyncio.sleep(0)
        return lines

    def _without_conflict(self, error: Refused) -> set[str] | None:
        """The fields to leave out after a type conflict; None: all but the body, which is always written."""
        _log.warning("InfluxDB refuses fields, charts will lack them: %s", error)
        field = error.field
        if field in (None, BODY, ARRIVAL) or field in self._left_out or len(self._left_out) >= _MOST_FIELDS_LEFT_OUT:
            return None
        self._left_out.add(field)
        return self._left_out


def _oldest(points: Sequence[LinePoint], count: int) -> list[LinePoint]:
    """The ``count`` oldest points: those that a retention policy refused, as it refuses by time alone."""
    return sorted(points, key=lambda point: point.time_us)[:count]


def _chunks(points: Sequence[LinePoint]) -> Iterator[Sequence[LinePoint]]:
    """Splits points into requests of a size that servers accept by default."""
    start = size = 0
    for place, point in enumerate(points):
        size += 2 * len(point.body) + 200
        if size > _REQUEST_BYTES and place > start:
            yield points[start:place]
            start, size = place, 2 * len(point.body) + 200
    yield points[start:]
