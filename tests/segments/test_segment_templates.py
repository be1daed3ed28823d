"""Texts by templates: whatever varies in them, bytes and points are those of the bodies."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from segment_bodies import T0, Records, spaced
from test_segment import check_points, sealed

from terrazzo_adapters.segments import Packing, encode

_digits = st.text("0123456789", min_size=1, max_size=6)
_number_texts = st.one_of(
    st.integers(-300, 300).map(str),
    st.integers(-10_000, 10_000).map(lambda number: repr(number / 100)),
    st.integers(-10_000, 10_000).map(lambda number: f"{number / 100:.2f}"),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["1e5", "-0.0", "-0", "0", "00", "1E+05", "1.5e-05", "12345678901234567", "0.1234567890123456789"]),
    st.sampled_from(["null", "true", "false", "nulltrue", "-null", "1.2.3", "192.168.0.1", "01", "-", ".5", "5."]),
    st.tuples(_digits, _digits).map(".".join),
)
_inside = st.one_of(
    _digits,
    st.sampled_from(["run", "stop", "", "true", "é", "\\u00b0C", "\\\\", '\\"', "2026-11-23T10:00:00Z", "a\x01b"]),
)
_string_texts = _inside.map(lambda text: f'"{text}"')
_keys = st.sampled_from(["a", "b", "P1", "P2", "x.y", "", "\\u0031"])


@st.composite
def payloads(draw: st.DrawFn) -> Records:
    """Records of some templates, with what varies drawn for each of them from a short list."""
    made: list[bytes] = []
    for _ in range(draw(st.integers(1, 3))):
        colon, comma = draw(st.sampled_from([(":", ","), (": ", ", "), (" :\n", "\t,")]))
        fields = [
            (draw(_keys), draw(st.lists(st.one_of(_number_texts, _string_texts), min_size=1, max_size=4)))
            for _ in range(draw(st.integers(1, 4)))
        ]
        rng = random.Random(draw(st.integers(0, 999)))
        for _ in range(draw(st.integers(8, 20))):
            inner = comma.join(f'"{key}"{colon}{rng.choice(texts)}' for key, texts in fields)
            made.append(f"{{{inner}}}".encode())
    random.Random(draw(st.integers(0, 9))).shuffle(made)
    return spaced(made)


@given(found=payloads(), packing=st.sampled_from(Packing))
@settings(max_examples=60, deadline=None)
def test_payloads_of_a_few_forms(found: Records, packing: Packing) -> None:
    segment = sealed(found, mosaic=False, packing=packing)
    bodies = [body for _, _, body in found]
    assert segment.bodies(0, len(found)) == bodies
    assert segment.bodies(3, 7) == bodies[3:7]
    check_points(segment, found)


@given(found=payloads())
@settings(max_examples=30, deadline=None)
def test_the_same_as_a_mosaic_series(found: Records) -> None:
    segment = sealed(found, mosaic=True)
    assert segment.bodies(0, len(found)) == [body for _, _, body in found]
    check_points(segment, found)


def _walk(place: int) -> float:
    return round(20 + place % 17 / 100, 2)


NOTATIONS: dict[str, Callable[[int], str]] = {
    "Python": lambda place: json.dumps({"t": _walk(place), "u": -_walk(place * 3), "n": place}),
    "JavaScript": lambda place: f'{{"t":{_walk(place):g},"u":{-_walk(place * 3):g}}}',
    "printf": lambda place: f'{{"t":{_walk(place):.3f},"u":{_walk(place):08.2f}}}',
    "literals": lambda place: json.dumps({"t": _walk(place) if place % 5 else None, "on": place % 3 == 0}),
    "texts": lambda place: f'{{"state":"{["run", "stop", "wait"][place % 3]}","mode":"{"ab"[place % 2]}","t":{place}}}',
    "nested": lambda place: f'{{"a":{{"b":{_walk(place)},"c":{{"d":{place}}}}},"e":[{place},{place}]}}',
    "time": lambda place: f'{{"Time":{(T0 + place * 30_000_000) // 1000},"t":{_walk(place)}}}',
    "date": lambda place: f'{{"Time":"2026-11-23 08:{place // 60 % 60:02}:{place % 60:02}","t":{_walk(place)}}}',
    "spaces": lambda place: f'{{\r\n  "t" : {_walk(place)} ,\r\n  "n":\t{place}\r\n}}\n',
}


@pytest.mark.parametrize("notation", NOTATIONS)
def test_usual_notations_take_templates(notation: str) -> None:
    found = spaced([NOTATIONS[notation](place).encode() for place in range(1_000)])
    parts = encode(found, mosaic=False, packing=Packing.CHEAP)
    assert b"b0" not in parts
    assert b"g2" not in parts
    assert sum(map(len, parts.values())) < 6_000
    segment = sealed(found, mosaic=False)
    assert segment.bodies(0, 1_000) == [body for _, _, body in found]
    check_points(segment, found)


def test_unique_texts_are_kept_as_they_are() -> None:
    rng = random.Random(1)
    found = spaced([json.dumps({"id": rng.randbytes(8).hex(), "t": place}).encode() for place in range(2_000)])
    segment = sealed(found, mosaic=False)
    assert segment.bodies(0, 2_000) == [body for _, _, body in found]
