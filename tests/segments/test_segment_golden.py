"""Segments that earlier versions have written are read; none of their files may ever change."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec
import pytest
from golden_segments import Golden
from test_segment import check_points

from terrazzo_adapters.segments import Segment

FOLDER = Path(__file__).parent / "golden"
DIGESTS = {
    "version-1.msgpack": "d43e5b81dad135fe6384cde8b87b205fb82dfb139aa288116e1edd61ad458037",
    "version-1-rollups.msgpack": "fe2cd21bec5ab8b56a092fb2f006298472cb2985adf0bd3c34f8305b3740121f",
}


def test_no_file_has_changed() -> None:
    found = {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in FOLDER.iterdir()}
    assert found == DIGESTS


@pytest.mark.parametrize("name", DIGESTS)
def test_golden_segments_are_read(name: str) -> None:
    every = msgspec.msgpack.decode((FOLDER / name).read_bytes(), type=list[Golden])
    assert len(every) >= 10
    for golden in every:
        segment = Segment(golden.parts.get)
        orders = zip(segment.times_us.tolist(), segment.arrivals.tolist(), strict=True)
        bodies = segment.bodies(0, segment.count)
        assert [(*order, body) for order, body in zip(orders, bodies, strict=True)] == golden.records
        check_points(segment, golden.records)
