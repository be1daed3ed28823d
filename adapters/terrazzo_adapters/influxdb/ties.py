"""The tie-breaker: it keeps records of one series and microsecond apart, which InfluxDB would overwrite silently.

The n-th record of a series and microsecond gets ``tie`` n. The next n is known for what this process wrote lately; a
series' newest time is known for all series, and anything later is the first of its microsecond; for the rest (late
records, the first ones after a restart) the server is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from terrazzo_adapters.influxdb.lines import LinePoint, parse_tie
from terrazzo_adapters.influxdb.naming import ARRIVAL, KINDS, TIE, condition, kind_of, series_name
from terrazzo_adapters.influxdb.server import Server

_MOST_REMEMBERED = 200_000
_NEAR_US = 1_000_000
_STATEMENTS_A_REQUEST = 200

SeriesTime = tuple[str, int]
"""A series and a microsecond."""


class Ties:
    """Assigns tie-breakers, to one batch at a time, each after the one before was written or given up."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._newest_us: dict[str, int] | None = None
        self._next: dict[SeriesTime, int] = {}

    async def assign(self, points: Sequence[LinePoint]) -> None:
        """Sets ``tie`` of the points that have none.

        Raises:
            StoreUnavailable: the server had to be asked and did not answer; no point was changed.
        """
        if all(point.tie >= 0 for point in points):
            return
        newest_us = await self._load_newest()
        if len(self._next) > _MOST_REMEMBERED:
            self._next.clear()
        await self._ask(sorted({moment for moment in map(_moment, points) if self._is_unknown(moment, newest_us)}))
        for point in points:
            if point.tie < 0:
                moment = _moment(point)
                point.tie = self._next.get(moment, 0)
                self._next[moment] = point.tie + 1
                newest_us[point.series] = max(point.time_us, newest_us.get(point.series, -1))

    def assign_all(self, series: str, start_us: int, end_us: int, points: Sequence[LinePoint]) -> None:
        """Sets ``tie`` of points that will be the only ones of a series in a range, both ends inclusive."""
        for moment in [each for each in self._next if each[0] == series and start_us <= each[1] <= end_us]:
            del self._next[moment]
        for point in points:
            moment = _moment(point)
            point.tie = self._next.get(moment, 0)
            self._next[moment] = point.tie + 1
        if self._newest_us is not None and points:
            newest_us = max(point.time_us for point in points)
            self._newest_us[series] = max(newest_us, self._newest_us.get(series, -1))

    def _is_unknown(self, moment: SeriesTime, newest_us: dict[str, int]) -> bool:
        return moment not in self._next and moment[1] <= newest_us.get(moment[0], -1)

    async def _load_newest(self) -> dict[str, int]:
        if self._newest_us is None:
            newest_us: dict[str, int] = {}
            for kind in KINDS:
                statement = f'SELECT last("{ARRIVAL}") FROM "{kind.measurement}" GROUP BY *'  # ours  # nosec B608
                for series in await self._server.query(statement):
                    name = series_name(kind, series.get("tags", {}))
                    newest_us[name] = max(newest_us.get(name, -1), series["values"][0][0] // 1000)
            self._newest_us = newest_us
        return self._newest_us

    async def _ask(self, moments: Sequence[SeriesTime]) -> None:
        """Reads from the server which ties these moments, which are sorted, have."""
        found: dict[SeriesTime, int] = dict.fromkeys(moments, 0)
        spans = _spans(moments)
        for first in range(0, len(spans), _STATEMENTS_A_REQUEST):
            statements = [_statement(*span) for span in spans[first : first + _STATEMENTS_A_REQUEST]]
            for series in await self._server.query(";".join(statements)):
                _note_ties(series, found)
        self._next.update(found)


def _moment(point: LinePoint) -> SeriesTime:
    return point.series, point.time_us


def _spans(moments: Sequence[SeriesTime]) -> list[tuple[str, int, int]]:
    """Ranges (series, start, end) that cover the moments; near ones of one series are in one range."""
    spans: list[tuple[str, int, int]] = []
    for series, time_us in moments:
        if spans and spans[-1][0] == series and time_us - spans[-1][2] <= _NEAR_US:
            spans[-1] = (series, spans[-1][1], time_us)
        else:
            spans.append((series, time_us, time_us))
    return spans


def _statement(series: str, start_us: int, end_us: int) -> str:
    kind = kind_of(series)
    columns = ", ".join(f'"{name}"' for name in (ARRIVAL, TIE, *kind.tags))
    return (
        f'SELECT {columns} FROM "{kind.measurement}" WHERE {condition(series)}'  # names are quoted  # nosec B608
        f" AND time >= {start_us * 1000} AND time <= {end_us * 1000 + 999}"
    )


def _note_ties(series: dict[str, Any], found: dict[SeriesTime, int]) -> None:
    kind = next(kind for kind in KINDS if kind.measurement == series["name"])
    for ns, _, tie, *tags in series["values"]:
        moment = series_name(kind, dict(zip(kind.tags, tags, strict=True))), ns // 1000
        if moment in found:
            found[moment] = max(found[moment], parse_tie(tie, ns) + 1)
