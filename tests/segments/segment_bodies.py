"""Records for tests of segments: bodies of every kind."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import strategies as st

Records = list[tuple[int, int, bytes]]

T0 = 1_700_000_000_000_000
LATEST_US = 2**63 - 1

_numbers = st.one_of(
    st.integers(-(2**63), 2**64 - 1),
    st.integers(-100, 100),
    st.floats(width=64),
    st.integers(-10_000, 10_000).map(lambda number: number / 100),
    st.sampled_from([1e5, -0.0, 0.0, 2**53 + 1, -(2**63), 2**63 - 1, 2**63, float("nan"), float("-inf"), 5e-324]),
)
values = st.one_of(_numbers, st.booleans(), st.none(), st.text(max_size=12))
names = st.one_of(st.sampled_from("abcde"), st.text(max_size=8))
_nested: st.SearchStrategy[Any] = st.recursive(
    values,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=3)),
    max_leaves=8,
)

flat_maps = st.dictionaries(names, values, max_size=6).map(msgspec.msgpack.encode)
nested_maps = st.dictionaries(names, _nested, max_size=4).map(msgspec.msgpack.encode)
json_texts = st.dictionaries(names, values, max_size=6).map(msgspec.json.encode)
ODD = [
    b"",
    b"\x80",
    b"\x00",
    b"a\x00\x00",
    b"{}",
    b' {"a":1}',
    b'{"a":1e5,"b":-0.0,"c":1E+05,"d":00.5}',
    b'{"a":123456789012345678901234567890}',
    b'{"a":1,"a":2}',
    b'{"a": 1 , "b":2.50}\n',
    b"\x82\xa1a\x01\xa1a\x02",  # one name twice
    b"\x81\xa1a\xcd\x00\x01",  # an integer longer than it has to be
    b"\x81\xa1a\xca\x41\xac\x00\x00",  # a float of 32 bits
    b"\xde\x00\x01\xa1a\x01",  # a map longer than it has to be
    b"\x81\xa1a\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\x81\xa1a\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01",  # a NaN of its own
    b"\x81\x01\x02",  # a name that is no text
    b"\xc1",
    b"\x93\x01\x02\x03",
    b'{"a":' * 40 + b"1" + b"}" * 40,
    b"\x81\xa1a" * 600 + b"\x01",
    b"eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2R0NNIn0..5nmW9vY0u3D1wNeV.1HmKzvO4Dg.0kBnF4r0b3sJQ2tq3yXHVQ",
    msgspec.msgpack.encode(msgspec.msgpack.Ext(1, b"raw\x00")),
    b"\xff\xfe" * 30,
]
bodies = st.one_of(flat_maps, nested_maps, json_texts, st.sampled_from(ODD), st.binary(max_size=40))
times_us = st.one_of(st.integers(0, LATEST_US), st.integers(T0, T0 + 50), st.sampled_from([0, LATEST_US]))
arrivals = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 40))


def in_order(found: dict[tuple[int, int], bytes]) -> Records:
    """Records of these orders and bodies, as a store has them."""
    return [(*order, found[order]) for order in sorted(found)]


def records(of: st.SearchStrategy[bytes], most: int = 40) -> st.SearchStrategy[Records]:
    """Some records, with any times, equal ones among them."""
    return st.dictionaries(st.tuples(times_us, arrivals), of, min_size=1, max_size=most).map(in_order)


def spaced(found: list[bytes], *, period_us: int = 30_000_000) -> Records:
    """Records at equal times from ``T0`` on."""
    return [(T0 + place * period_us, 7 * place, body) for place, body in enumerate(found)]
