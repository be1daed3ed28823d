"""Charts of reports that are stored as arrays: thinned out as those of objects are, and of so many reports at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from api_rig import open_rig
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.api.operations.history import read_curves
from terrazzo.api.operations.history.thin_curve import ThinCurve
from terrazzo.ports.store import Record
from terrazzo_adapters.columns.column import PointColumn
from terrazzo_adapters.columns.extremes import Extremes

POINTS = st.lists(
    st.tuples(st.integers(0, 60), st.floats(-4, 4, allow_nan=False).map(lambda value: round(value))), max_size=60
)


@given(points=POINTS, bucket_us=st.integers(1, 30), origin_us=st.integers(0, 10))
def test_the_points_are_those_that_a_store_chooses(
    points: list[tuple[int, int]], bucket_us: int, origin_us: int
) -> None:
    points.sort(key=lambda point: point[0])
    curve = ThinCurve(bucket_us=bucket_us, origin_us=origin_us)
    for time_us, value in points:
        curve.add(time_us, float(value))
    extremes = Extremes(["x"], bucket_us=bucket_us, origin_us=origin_us)
    if points:
        times_us, values = zip(*points, strict=True)
        column = np.array(times_us), np.zeros(len(points), np.uint8), np.array(values, np.float64)
        extremes.add({"x": PointColumn(*column, ())})
    assert curve.finish() == tuple(extremes.finish().get("x", ([], [])))


async def test_a_chart_of_arrays_reads_so_many_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_rig(tmp_path) as rig:
        form = {"format": "array", "names": ["T", "W"]}
        config = await rig.add_config(payload=form)
        await rig.add_terminal("t1", config_id=config)
        series = rig.services.registry.series_name("t1")
        bodies = [b"[%d, %d]" % (number, 50 - number) for number in range(50)]
        await rig.platform.store.append(
            [Record(f"g/{series}/r", 1_700_000_000_000_000 + n, body) for n, body in enumerate(bodies)]
        )
        asked = {
            "terminal_id": "t1",
            "keys": "*",
            "start_time": "2023-11-14 00:00:00",
            "end_time": "2023-11-15 00:00:00",
        }
        chart = await rig.call("get_grid_chart", points=4, **asked)
        assert {name: curve["values"] for name, curve in chart["data"].items()} == {"T": [0, 49], "W": [50, 1]}
        monkeypatch.setattr(read_curves, "MOST_READ", 49)
        refused = await rig.ask("get_grid_chart", points=4, **asked)
        assert (refused["code"], refused["info"]) == (
            10401,
            "start_time: more than 49 reports that a decoder or a list of names reads; ask for less",
        )
