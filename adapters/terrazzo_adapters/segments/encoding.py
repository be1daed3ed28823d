"""Makes a segment of records."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Value
from terrazzo_adapters.columns.name_tally import HourTally, tally_of
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.segments.chunks import cut_chunks, encode_chunk
from terrazzo_adapters.segments.columns import encode_column
from terrazzo_adapters.segments.head import MOST_RECORDS, Head, encode_head
from terrazzo_adapters.segments.mosaic import is_rendered
from terrazzo_adapters.segments.packing import Packing
from terrazzo_adapters.segments.segment import HEAD, SHAPES, TIMES, Segment, body_part, value_part
from terrazzo_adapters.segments.shapes import Shape, Shapes
from terrazzo_adapters.segments.times import encode_times
from terrazzo_adapters.segments.values import make_values

Records = Sequence[tuple[int, int, bytes]]
"""Records of one series: time (UTC microseconds), arrival number, body; in that order."""

MOST_BYTES = 128 * 2**20
"""Of the bodies of a segment together."""

_MOST_NAMES = 2_048  # columns of a segment; each costs the reader a part
_MOST_SETS = 256  # of names, in the head
_MOST_SHAPES = 4_096


class _Carried(NamedTuple):
    """What the records of a mosaic series carry: the points of each, its shape, and all names, sorted."""

    points: Sequence[Mapping[str, Value]]
    names: list[str]
    shapes: Shapes
    tally: HourTally | None


def encode(records: Records, *, mosaic: bool, packing: Packing) -> dict[bytes, bytes]:
    """The parts of a segment by their names; ``b""`` is the head.

    Args:
        records: of one series, in order of time, then arrival; at least one.
        mosaic: whether they are MessagePack maps of a mosaic series, which have a column for each name.

    Raises:
        ValueError: they are none, too many (``MOST_RECORDS``), too large (``MOST_BYTES``), or not in order.
    """
    _check(records)
    times_us = np.array([time_us for time_us, _, _ in records], np.int64)
    arrivals = np.array([arrival for _, arrival, _ in records], np.uint64)
    bodies = [body for _, _, body in records]
    carried = _carried(bodies) if mosaic else None
    parts = _parts(times_us, arrivals, bodies, carried, packing)
    if carried is not None and Segment(parts.get).bodies(0, len(bodies)) != bodies:
        parts = _parts(times_us, arrivals, bodies, None, packing)
    return parts


def _check(records: Records) -> None:
    if not 0 < len(records) <= MOST_RECORDS:
        raise ValueError(f"{len(records)} records: a segment has 1 to {MOST_RECORDS}")
    if sum(len(body) for _, _, body in records) > MOST_BYTES:
        raise ValueError(f"more than {MOST_BYTES} bytes of bodies")
    orders = [each[:2] for each in records]
    if any(before >= after for before, after in pairwise(orders)):
        raise ValueError("not in order of time and arrival")


def _parts(
    times_us: NDArray[np.int64],
    arrivals: NDArray[np.uint64],
    bodies: Sequence[bytes],
    carried: _Carried | None,
    packing: Packing,
) -> dict[bytes, bytes]:
    parts = {TIMES: encode_times(times_us, arrivals, packing)}
    if carried is not None:
        parts[SHAPES] = carried.shapes.encode(packing)
        parts.update(_columns(times_us, carried, packing))
        bodies = [body for body, rendered in zip(bodies, carried.shapes.rendered.tolist(), strict=True) if not rendered]
    chunks = list(cut_chunks(bodies, packing))
    parts.update({body_part(number): encode_chunk(chunk, packing) for number, chunk in enumerate(chunks)})
    head = Head(
        count=len(times_us),
        first_us=int(times_us[0]),
        first_arrival=int(arrivals[0]),
        last_us=int(times_us[-1]),
        last_arrival=int(arrivals[-1]),
        is_mosaic=carried is not None,
        names=None if carried is None else carried.names,
        tally=None if carried is None else carried.tally,
        chunks=[len(chunk) for chunk in chunks],
        parts={name: zlib.crc32(part) for name, part in parts.items()},
    )
    return {HEAD: encode_head(head), **parts}


def _carried(bodies: Sequence[bytes]) -> _Carried | None:
    """What mosaic bodies carry; None where that is too much for columns."""
    points = [parse_points(body) for body in bodies]
    kinds = [(is_rendered(body, each), tuple(each)) for body, each in zip(bodies, points, strict=True)]
    counts = Counter(kinds)
    names = sorted({name for _, carried in counts for name in carried})
    if len(names) > _MOST_NAMES or len(counts) > _MOST_SHAPES:
        return None
    place = {name: number for number, name in enumerate(names)}
    number_of = {kind: number for number, kind in enumerate(counts)}
    shapes = [Shape(rendered, tuple(place[name] for name in carried)) for rendered, carried in counts]
    ids = np.array([number_of[kind] for kind in kinds], np.int64)
    return _Carried(points, names, Shapes(shapes, ids), _tally(counts))


def _tally(counts: Counter[tuple[bool, tuple[str, ...]]]) -> HourTally | None:
    orders: Counter[tuple[str, ...]] = Counter()
    for (_, carried), count in counts.items():
        orders[carried] += count
    tally = tally_of(orders)
    return tally if len(tally.sets) <= _MOST_SETS else None


def _columns(times_us: NDArray[np.int64], carried: _Carried, packing: Packing) -> dict[bytes, bytes]:
    columns: dict[bytes, bytes] = {}
    for place, name in enumerate(carried.names):
        carriers = carried.shapes.carriers(place)
        places = np.arange(len(times_us)) if carriers is None else np.flatnonzero(carriers)
        values = make_values([carried.points[record][name] for record in places.tolist()])
        columns[value_part(name)] = encode_column(values, times_us[places], int(places[-1]), packing)
    return columns
