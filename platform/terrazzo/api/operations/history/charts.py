"""Curves to draw: of many points the few that a chart must show, minima and maxima exactly."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from terrazzo.api.kernel.fields import Flag, Key, Moment, Topics
from terrazzo.api.kernel.long_answers.lists import answer_within
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.history.grid import grid_series
from terrazzo.api.operations.history.mosaic import Keys, values_of_each
from terrazzo.api.operations.history.read_curves import curves_of_reports
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports.store import Curve, TimeSeriesStore
from terrazzo.reasons import say

Points = Annotated[int, Meta(ge=4, le=100_000, description="at most that many of each variable")]

_HOUR_US = 3_600_000_000
_LEAST_PARTS = 4  # a bucket is at most a third longer than it would be otherwise
_A_BUCKET = 4  # the first, lowest, highest and last point of each


class ChartRequest(msgspec.Struct, kw_only=True):
    """Both ends are inclusive."""

    keys: Keys
    start_time: Moment
    end_time: Moment
    points: Points = 2000


class MosaicChart(ChartRequest):
    """An object's variables. ``before``: 1: tells what each was before, where its curve begins later than the range."""

    object_id: Key
    before: Flag = 0


class GridChart(ChartRequest):
    """A terminal's points, those of nested objects named with dots."""

    terminal_id: Key
    topic: Topics = msgspec.field(default_factory=Topics)


class ChartCurve(msgspec.Struct):
    """Oldest first. ``times``: milliseconds since 1970, UTC."""

    times: list[int]
    values: list[float]


class ValueBefore(msgspec.Struct):
    """The newest number before a range. ``time``: milliseconds since 1970, UTC."""

    time: int
    value: float


class Chart(msgspec.Struct):
    """A curve for each variable, empty where it has no numbers in the range.

    ``before``, where it is asked for: what those variables were before the range that have no number in the first of
    the equal parts of which the first, lowest, highest and last point is told; one that had no number is not in it.
    """

    data: dict[str, ChartCurve]
    before: dict[str, ValueBefore] | UnsetType = UNSET

    def plain_columns(self) -> bytes:
        """The curves as arrays of float64, little-endian, one after the other.

        8 bytes ``TZCOL1`` and two zeros; the length of the head as a number of 4 bytes, and 4 zeros; the head, JSON
        with spaces to a multiple of 8: ``{"columns": [{"key": ..., "points": n}]}``, and ``before`` as the result has
        it; then for each column n times and n values.
        """
        listed = [{"key": key, "points": len(curve.values)} for key, curve in self.data.items()]
        more = {} if isinstance(self.before, UnsetType) else {"before": self.before}
        head = msgspec.json.encode({"columns": listed, **more})
        head += b" " * (-len(head) % 8)
        parts = [COLUMN_MAGIC, len(head).to_bytes(8, "little"), head]
        for curve in self.data.values():
            parts += (_doubles(curve.times), _doubles(curve.values))
        return b"".join(parts)


COLUMN_MAGIC = b"TZCOL1\0\0"


def _doubles(numbers: Sequence[float]) -> bytes:
    return struct.pack(f"<{len(numbers)}d", *numbers)


async def handle_get_mosaic_chart(services: Services, actor: Actor, request: MosaicChart) -> Chart:
    """The curves of an object's variables."""
    series = f"m/{await find_object(services, actor, request.object_id)}"
    chart = await _chart(services, [series], request)
    if request.before:
        chart.before = await _before(services, series, chart, request)
    return chart


async def _before(services: Services, series: str, chart: Chart, request: ChartRequest) -> dict[str, ValueBefore]:
    """What those variables were before that the first bucket has nothing of."""
    start_us = request.start_time.time_us
    bucket_us, origin_us = _buckets(request, 1)
    first_ms = (origin_us + bucket_us) // 1000
    late = [key for key, curve in chart.data.items() if not curve.times or curve.times[0] >= first_ms]
    if not late:
        return {}
    most = services.limits.answer_bytes
    with answer_within(most):
        newest = await services.store.latest_each(series, late, until_us=start_us - 1, most_bytes=most)
    values = await values_of_each(newest)
    return {
        key: ValueBefore(newest[key].time_us // 1000, float(value))
        for key, value in values.items()
        if isinstance(value, bool | int | float) and isfinite(value)
    }


async def handle_get_grid_chart(services: Services, actor: Actor, request: GridChart) -> Chart:
    """The curves of a terminal's points; one that comes on several topics is one curve."""
    return await _chart(services, await grid_series(services, actor, request), request)


async def _chart(services: Services, series: Sequence[str], request: ChartRequest) -> Chart:
    start_us, end_us = request.start_time.time_us, request.end_time.time_us
    if start_us > end_us:
        raise BadParameter("start_time", say("is_after_end_time"))
    bucket_us, origin_us = _buckets(request, len(series))
    wanted, store = request.keys.names, services.store
    plain = [name for name in series if not services.report_reader.reads(name)]
    each: list[Mapping[str, Curve]] = [
        await curves_of_reports(services, name, wanted, start_us, end_us, bucket_us=bucket_us, origin_us=origin_us)
        for name in series
        if name not in plain
    ]
    keys = wanted or sorted(
        {*await _names(store, plain, start_us, end_us), *(name for found in each for name in found)}
    )
    for name in plain:
        each.append(await store.extremes(name, keys, start_us, end_us, bucket_us=bucket_us, origin_us=origin_us))
    found, pauses = {}, LoopPauses()
    for key in keys:
        found[key] = _joined([curves[key] for curves in each if key in curves])
        await pauses.pause()
    return Chart(found)


def _buckets(request: ChartRequest, series: int) -> tuple[int, int]:
    most = max(1, request.points // _A_BUCKET // max(1, series))
    return buckets_of(request.start_time.time_us, request.end_time.time_us, most)


def buckets_of(start_us: int, end_us: int, most: int) -> tuple[int, int]:
    """The length of at most so many equal buckets of a range (both ends inclusive), and where the first begins.

    Long ones are of whole hours or quarters of hours: stores keep the figures of these.
    """
    for part_us in (_HOUR_US, _HOUR_US // 4):
        first_us = start_us // part_us * part_us
        whole_us = -(-((end_us - first_us) // most + 1) // part_us) * part_us
        if whole_us >= _LEAST_PARTS * part_us:
            return whole_us, first_us
    return (end_us - start_us) // most + 1, start_us


async def _names(store: TimeSeriesStore, series: Sequence[str], start_us: int, end_us: int) -> list[str]:
    """All names that the records of a range carry."""
    found = [await store.names(name, start_us, end_us) for name in series]
    return sorted({name for names in found for name in names})


def _joined(curves: Sequence[Curve]) -> ChartCurve:
    if len(curves) == 1:
        return ChartCurve([time_us // 1000 for time_us in curves[0].times_us], curves[0].values)
    points = [point for curve in curves for point in zip(curve.times_us, curve.values, strict=True)]
    points.sort(key=lambda point: point[0])
    return ChartCurve([time_us // 1000 for time_us, _ in points], [value for _, value in points])


OPERATIONS = (
    Operation(
        name="get_mosaic_chart",
        summary="Curves of an object's variables, thinned out so that every minimum and maximum stays",
        request=MosaicChart,
        result=Chart,
        permission=Role.VIEWER,
        handler=handle_get_mosaic_chart,
    ),
    Operation(
        name="get_grid_chart",
        summary="Curves of a terminal's points, thinned out so that every minimum and maximum stays",
        request=GridChart,
        result=Chart,
        permission=Role.VIEWER,
        handler=handle_get_grid_chart,
    ),
)
