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
from terrazzo_adapters.segments.mosaic import read_bodies
from terrazzo_adapters.segments.numeric import encode_integers
from terrazzo_adapters.segments.packing import Packing
from terrazzo_adapters.segments.parts import HEAD, SHAPES, TIMES, body_part, rollup_part, template_part, value_part
from terrazzo_adapters.segments.rollups import encode_rollup, make_rollup
from terrazzo_adapters.segments.segment import Segment
from terrazzo_adapters.segments.shapes import Shape, Shapes
from terrazzo_adapters.segments.templates import decode_template, encode_template, find_templates
from terrazzo_adapters.segments.times import encode_times
from terrazzo_adapters.segments.values import make_values

Records = Sequence[tuple[int, int, bytes]]
"""Records of one series: time (UTC microseconds), arrival number, body; in that order."""

MOST_BYTES = 128 * 2**20
"""Of the bodies of a segment together."""

_MOST_NAMES = 2_048  # columns of a segment; each costs the reader a part
_MOST_SETS = 256  # of names, in the head
_MOST_SHAPES = 4_096
_MAP_STARTS = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])  # fixmap, map 16, map 32


class _Content(NamedTuple):
    """How the bodies are packed: parts of their own, which bodies are kept as they are, and what all carry."""

    is_mosaic: bool
    parts: Mapping[bytes, bytes]
    kept: NDArray[np.bool_]
    names: list[str] | None
    tally: HourTally | None
    templates: int


def encode(records: Records, *, mosaic: bool, packing: Packing) -> dict[bytes, bytes]:
    """The parts of a segment by their names; ``b""`` is the head.

    Args:
        records: of one series, in order of time, then arrival; at least one.
        mosaic: whether they are of a mosaic series, which has a column for each name.

    Raises:
        ValueError: they are none, too many (``MOST_RECORDS``), too large (``MOST_BYTES``), or not in order.
    """
    _check(records)
    times_us = np.array([time_us for time_us, _, _ in records], np.int64)
    arrivals = np.array([arrival for _, arrival, _ in records], np.uint64)
    bodies = [body for _, _, body in records]
    if mosaic or (bodies[0] and bodies[0][0] in _MAP_STARTS):
        others = np.zeros(len(bodies), np.bool_)  # that have to be kept as they are
        for _ in range(2):
            content = _named(bodies, others, times_us, packing)
            if content is None:
                break
            parts = _parts(times_us, arrivals, bodies, content, packing)
            made = Segment(parts.get).bodies(0, len(bodies))
            if made == bodies:
                return parts
            others |= [one != other for one, other in zip(made, bodies, strict=True)]
    return _parts(times_us, arrivals, bodies, _payloads(bodies, times_us, packing), packing)


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
    content: _Content,
    packing: Packing,
) -> dict[bytes, bytes]:
    kept = [bodies[place] for place in np.flatnonzero(content.kept).tolist()]
    chunks = list(cut_chunks(kept, packing))
    parts = {TIMES: encode_times(times_us, arrivals, packing), **content.parts}
    parts.update({body_part(number): encode_chunk(chunk, packing) for number, chunk in enumerate(chunks)})
    head = Head(
        count=len(times_us),
        first_us=int(times_us[0]),
        first_arrival=int(arrivals[0]),
        last_us=int(times_us[-1]),
        last_arrival=int(arrivals[-1]),
        is_mosaic=content.is_mosaic,
        names=content.names,
        tally=content.tally,
        chunks=[len(chunk) for chunk in chunks],
        templates=content.templates,
        parts={name: zlib.crc32(part) for name, part in parts.items()},
    )
    return {HEAD: encode_head(head), **parts}


def _payloads(bodies: Sequence[bytes], times_us: NDArray[np.int64], packing: Packing) -> _Content:
    """Bodies that are texts, by templates as far as these give back the same bytes."""
    ids = np.zeros(len(bodies), np.int64)
    parts: dict[bytes, bytes] = {}
    orders: Counter[tuple[str, ...]] = Counter()
    unnamed = np.ones(len(bodies), np.bool_)
    for template, records in find_templates(bodies):
        part = encode_template(template, times_us[records], packing)
        stored = decode_template(part, times_us[records])
        if stored.render() != [bodies[place] for place in records.tolist()]:
            continue
        number = len(parts) + 1
        ids[records] = number
        parts[template_part(number)] = part
        if stored.names is not None:
            orders[tuple(each.name for each in stored.names)] += len(records)
            unnamed[records] = False
    templates = len(parts)
    if templates:
        parts[SHAPES] = encode_integers(ids, packing)
    tally = None
    if np.count_nonzero(unnamed) <= len(bodies) // 8:  # more of them take longer than a reader who asks for it
        orders.update(tuple(parse_points(bodies[place])) for place in np.flatnonzero(unnamed).tolist())
        tally = _short_tally(orders)
    return _Content(False, parts, ids == 0, None if tally is None else sorted(tally.names), tally, templates)


def _short_tally(orders: Mapping[tuple[str, ...], int]) -> HourTally | None:
    """The tally, if it is short enough for the head."""
    if len({name for names in orders for name in names}) > _MOST_NAMES:
        return None
    tally = tally_of(orders)
    return tally if len(tally.sets) <= _MOST_SETS else None


def _named(
    bodies: Sequence[bytes], others: NDArray[np.bool_], times_us: NDArray[np.int64], packing: Packing
) -> _Content | None:
    """Bodies that are maps, by columns of their names, but for ``others``; None where they have too many."""
    points, flat = read_bodies(bodies)
    flat &= ~others
    kinds = list(zip(flat.tolist(), map(tuple, points), strict=True))
    counts = Counter(kinds)
    names = sorted({name for _, carried in counts for name in carried})
    if len(names) > _MOST_NAMES or len(counts) > _MOST_SHAPES:
        return None
    place = {name: number for number, name in enumerate(names)}
    number_of = {kind: number for number, kind in enumerate(counts)}
    forms = [Shape(rendered, tuple(place[name] for name in carried)) for rendered, carried in counts]
    shapes = Shapes(forms, np.array([number_of[kind] for kind in kinds], np.int64))
    orders: Counter[tuple[str, ...]] = Counter()
    for (_, carried), count in counts.items():
        orders[carried] += count
    parts = {SHAPES: shapes.encode(packing), **_columns(points, names, shapes, times_us, packing)}
    return _Content(True, parts, ~shapes.rendered, names, _short_tally(orders), 0)


def _columns(
    points: Sequence[Mapping[str, Value]],
    names: Sequence[str],
    shapes: Shapes,
    times_us: NDArray[np.int64],
    packing: Packing,
) -> dict[bytes, bytes]:
    columns: dict[bytes, bytes] = {}
    alike: dict[str, Sequence[Value]] = {}
    if len(shapes.shapes) == 1:
        alike = dict(zip(points[0], zip(*(each.values() for each in points), strict=True), strict=True))
    for place, name in enumerate(names):
        carriers = shapes.carriers(place)
        places = np.arange(len(times_us)) if carriers is None else np.flatnonzero(carriers)
        values = make_values(alike.get(name) or [points[record][name] for record in places.tolist()])
        columns[value_part(name)] = encode_column(values, times_us[places], int(places[-1]), packing)
        rollup = make_rollup(values.points(times_us[places]))
        if rollup is not None:
            columns[rollup_part(name)] = encode_rollup(rollup, packing)
    return columns
