"""Curves of reports that aren't stored as objects of points: read as their configuration says, and thinned out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite

import msgspec

from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.history.thin_curve import ThinCurve
from terrazzo.domain.payload import Points, Reject
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports.store import Curve
from terrazzo.reasons import say

MOST_READ = 20_000  # reports of a series, each of which is read anew: a decoder takes some thousands a second for all


async def curves_of_reports(
    services: Services,
    series: str,
    keys: Sequence[str],
    start_us: int,
    end_us: int,
    *,
    bucket_us: int,
    origin_us: int,
) -> Mapping[str, Curve]:
    """The curves of a series by name; of all names where ``keys`` is empty. ``origin_us``: where a bucket begins.

    Raises:
        BadParameter: there are more reports than are read for one chart.
    """
    curves: dict[str, ThinCurve] = {key: ThinCurve(bucket_us=bucket_us, origin_us=origin_us) for key in keys}
    count, pauses = 0, LoopPauses()
    async for records in services.store.scan([series], start_us, end_us):
        count += len(records)
        if count > MOST_READ:
            raise BadParameter("start_time", say("too_many_reports_to_read", most=MOST_READ))
        for record in await services.report_reader.read(records):
            for name, value in (await _points(services, record.body)).items():
                if name not in curves and not keys:
                    curves[name] = ThinCurve(bucket_us=bucket_us, origin_us=origin_us)
                if name in curves and isinstance(value, bool | int | float) and isfinite(value):
                    curves[name].add(record.time_us, float(value))
            await pauses.pause()
    return {name: Curve(*curve.finish()) for name, curve in curves.items()}


async def _points(services: Services, body: bytes) -> Points:
    """The points of a report by their dotted names; none where it can't be read."""
    try:
        return await services.report_reader.points_of(body)
    except (Reject, msgspec.MsgspecError):
        return {}
