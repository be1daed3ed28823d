"""Damage is found by checksums and named by part; decoders of hostile bytes raise ``Damaged``, and take no memory."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from contextlib import suppress

import msgspec
import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from pcodec import ChunkConfig, standalone
from segment_bodies import spaced

from terrazzo_adapters.columns.column import PointColumn
from terrazzo_adapters.segments import Packing, Segment, SegmentDamaged, encode
from terrazzo_adapters.segments.chunks import decode_chunk, encode_chunk
from terrazzo_adapters.segments.columns import decode_column, encode_column
from terrazzo_adapters.segments.head import decode_head
from terrazzo_adapters.segments.numeric import decode_floats, decode_integers, encode_floats, encode_integers
from terrazzo_adapters.segments.packing import MOST_FRAME_BYTES, Damaged, decode_frame, encode_frame
from terrazzo_adapters.segments.rollups import decode_rollup, encode_rollup, make_rollup
from terrazzo_adapters.segments.shapes import Shape, Shapes, decode_shapes
from terrazzo_adapters.segments.templates import decode_template, encode_template, find_templates
from terrazzo_adapters.segments.texts import decode_texts, encode_texts, make_texts
from terrazzo_adapters.segments.times import decode_times, encode_times
from terrazzo_adapters.segments.values import decode_values, encode_values, make_values

COUNT = 300  # in two and a half hours: dense enough for rollups
RECORDS = spaced(
    [
        msgspec.msgpack.encode({"a": n / 100, "b": n % 7, "c": f"text {n % 5}", "d": n % 3 == 0})
        for n in range(COUNT - 1)
    ]
    + [b"kept as it is"]
)
PARTS = encode(RECORDS, mosaic=True, packing=Packing.CHEAP)


def read_all(segment: Segment) -> object:
    for name in segment.names:
        segment.column(name)
        segment.summary(name)
        segment.rollup(name)
    return segment.times_us, segment.tally, segment.bodies(0, segment.count)


@pytest.mark.parametrize("part", PARTS)
def test_a_flipped_bit_is_found_wherever_it_is(part: bytes) -> None:
    for place in range(0, len(PARTS[part]), max(1, len(PARTS[part]) // 40)):
        damaged = bytearray(PARTS[part])
        damaged[place] ^= 1 << place % 8
        parts = {**PARTS, part: bytes(damaged)}
        with pytest.raises(SegmentDamaged) as raised:
            read_all(Segment(parts.get))
        assert raised.value.part == part


@pytest.mark.parametrize("part", PARTS)
def test_a_part_that_is_cut_or_missing_is_found(part: bytes) -> None:
    for cut in (None, b"", PARTS[part][:-1], PARTS[part] + b"\0"):
        parts = {name: data for name, data in {**PARTS, part: cut}.items() if data is not None}
        with pytest.raises(SegmentDamaged) as raised:
            read_all(Segment(parts.get))
        assert raised.value.part == part


def test_what_is_not_damaged_is_read_beside_it() -> None:
    segment = Segment({**PARTS, b"va": b"?", b"b0": b"?"}.get)
    assert segment.tally.carrying({"a"}) == COUNT - 1
    assert segment.column("b").numbers.tolist() == [n % 7 for n in range(COUNT - 1)]
    assert segment.times_us.tolist() == [time_us for time_us, _, _ in RECORDS]
    with pytest.raises(SegmentDamaged):
        segment.column("a")


def test_a_head_of_a_later_version_says_so() -> None:
    later = PARTS[b""][:3] + b"\x63" + PARTS[b""][4:-4]
    with pytest.raises(SegmentDamaged, match="version 99"):
        Segment({**PARTS, b"": later + zlib.crc32(later).to_bytes(4, "little")}.get)


def test_a_bomb_takes_no_memory() -> None:
    bomb = b"\x01" + zstandard.ZstdCompressor(level=1).compress(bytes(MOST_FRAME_BYTES + 1))
    assert len(bomb) < 100_000
    with pytest.raises(Damaged):
        decode_frame(bomb)
    with pytest.raises(Damaged):
        decode_frame(b"\x01" + zstandard.ZstdCompressor(level=1).compress(bytes(1_000)), 999)
    many = b"\x01" + standalone.simple_compress(np.arange(1_000_000), ChunkConfig(compression_level=1))
    with pytest.raises(Damaged):
        decode_integers(many, 5)


_orders = np.arange(9, dtype=np.int64)
_column = encode_column(make_values([1, 2.5, None, True, "x"]), _orders[:5], 4, Packing.CHEAP)
_rollup = make_rollup(PointColumn(np.arange(240) * 30_000_000, np.zeros(240, np.uint8), np.arange(240) / 3, []))
assert _rollup is not None
_payloads = [f'{{"a":{n / 4},"b":"{"xy"[n % 2]}","c":{["null", n][n % 2]}}}'.encode() for n in range(9)]
_template = encode_template(find_templates(_payloads)[0].template, _orders, Packing.CHEAP)


def read_template(data: bytes) -> object:
    template = decode_template(data, _orders)
    return template.render(), [template.column(each.hole) for each in template.names or () if each.hole >= 0]


DECODERS: list[tuple[Callable[[bytes], object], bytes]] = [
    (decode_head, PARTS[b""]),
    (decode_frame, encode_frame(b"abc" * 100, Packing.CHEAP)),
    (lambda data: decode_integers(data, 9), encode_integers(_orders, Packing.CHEAP)),
    (lambda data: decode_floats(data, 9), encode_floats(_orders / 3, Packing.CHEAP)),
    (lambda data: decode_floats(data, 9), encode_floats(_orders / 4, Packing.CHEAP)),
    (lambda data: decode_times(data, 9).arrivals(), encode_times(_orders, _orders.astype(np.uint64), Packing.CHEAP)),
    (lambda data: decode_texts(data, 3), encode_texts(make_texts(["a", "b", "a"]), Packing.CHEAP)),
    (lambda data: decode_values(data, 9), encode_values(make_values([1, 2.5, None, True, "x"]), Packing.CHEAP)),
    (lambda data: decode_column(data, 9).decode(), _column),
    (lambda data: decode_rollup(data, 240).starts_us, encode_rollup(_rollup, Packing.CHEAP)),
    (
        lambda data: decode_shapes(data, 9, 3),
        Shapes([Shape(True, (0, 2)), Shape(False, ())], _orders % 2).encode(Packing.CHEAP),
    ),
    (read_template, _template),
    (lambda data: decode_chunk(data, 3), encode_chunk([b"a", b"", b"bcd" * 40], Packing.CHEAP)),
]


@pytest.mark.parametrize(("decode", "whole"), DECODERS, ids=range(len(DECODERS)))
@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_hostile_bytes_are_refused_and_nothing_else(
    decode: Callable[[bytes], object], whole: bytes, data: st.DataObject
) -> None:
    """Whoever forges a checksum as well gets no further than ``Damaged``."""
    decode(whole)
    forged = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 4))):
        forged[data.draw(st.integers(0, len(forged) - 1))] = data.draw(st.integers(0, 255))
    for attempt in (
        bytes(forged),
        bytes(forged[: data.draw(st.integers(0, len(forged)))]),
        data.draw(st.binary(max_size=60)),
    ):
        with suppress(Damaged):
            decode(attempt)
