"""What terminals send, good and bad: JSON and MessagePack into points, or a reason."""

from __future__ import annotations

import json
import math

import msgpack
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from terrazzo.domain.payload import MAX_DEPTH, Reject, RejectKind, decode, flatten

names = st.text(st.characters(codec="utf-8"), max_size=8)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=12),
)
points = st.dictionaries(names, st.recursive(scalars, lambda inner: st.dictionaries(names, inner, max_size=3)))


def outcome_of(payload: bytes):
    try:
        return decode(payload)
    except Reject as reject:
        return reject


def nested(depth: int) -> bytes:
    return b'{"a":' * depth + b"1" + b"}" * depth


@given(points)
def test_json_and_messagepack_of_the_same_points_read_alike(sent):
    assert decode(json.dumps(sent).encode()) == sent
    assert decode(json.dumps(sent, indent=1, ensure_ascii=False).encode()) == sent
    assert decode(msgpack.packb(sent)) == sent


@given(
    st.binary(max_size=40) | st.binary(max_size=40).map(lambda tail: b'{"a":' + tail) | st.binary().map(b"\x82".__add__)
)
@settings(max_examples=500)
def test_no_bytes_raise_anything_but_a_reject(payload):
    assert isinstance(outcome_of(payload), dict | Reject)


@pytest.mark.parametrize(
    ("payload", "kind", "reason"),
    [
        (b"", RejectKind.MALFORMED, "empty"),
        (b"Temperature 21", RejectKind.MALFORMED, "first byte 0x54"),
        (b"\xef\xbb\xbf{}", RejectKind.MALFORMED, "first byte 0xef"),
        (b'{"a":1', RejectKind.MALFORMED, "truncated"),
        (b'{"a":1} {"b":2}', RejectKind.MALFORMED, "trailing"),
        (b'{"a":"\xff"}', RejectKind.MALFORMED, "UTF-8"),
        (b'{"a":NaN}', RejectKind.MALFORMED, "malformed"),
        (b'{"a":Infinity}', RejectKind.MALFORMED, "malformed"),
        (b'{"a":1e999}', RejectKind.MALFORMED, "range"),
        (b"[1,2]", RejectKind.SHAPE, "the payload is an array"),
        (b'"on"', RejectKind.SHAPE, "the payload is a string"),
        (b"21.5", RejectKind.SHAPE, "the payload is a number"),
        (b"null", RejectKind.SHAPE, "the payload is null"),
        (b'{"a":[1]}', RejectKind.SHAPE, "a: an array"),
        (b'{"a":{"b":[1]}}', RejectKind.SHAPE, "a.b: an array"),
        (b'{"a":[1],"a":2}', RejectKind.SHAPE, "occurs twice"),
        (b'{"n":9223372036854775808}', RejectKind.SHAPE, "n: an integer beyond 64 bits"),
        (b'{"n":{"m":-9223372036854775809}}', RejectKind.SHAPE, "n.m: an integer beyond 64 bits"),
        (b'{"n":' + b"1" * 5000 + b"}", RejectKind.MALFORMED, "out of range"),
        (nested(100), RejectKind.SHAPE, "deeper than 32"),
        (nested(MAX_DEPTH + 1), RejectKind.SHAPE, "deeper than 32"),
        (nested(100_000), RejectKind.SHAPE, "deeper than 32"),
        (b'{"a":' * 100_000, RejectKind.SHAPE, "deeper than 32"),
        (b"\x81\xa1a" * 100_000, RejectKind.SHAPE, "deeper than 32"),
        (b"\x81\xa1a\x01\x02", RejectKind.MALFORMED, "trailing"),
        (b"\x82\xa1a\x01", RejectKind.MALFORMED, "truncated"),
        (b"\xdf\xff\xff\xff\xff", RejectKind.MALFORMED, "truncated"),
        (b"\x81\xa1\xff\x01", RejectKind.MALFORMED, "UTF-8"),
        (msgpack.packb({"a": math.nan}), RejectKind.SHAPE, "a: nan"),
        (msgpack.packb({"a": {"b": -math.inf}}), RejectKind.SHAPE, "a.b: -inf"),
        (msgpack.packb({"a": 2**64 - 1}), RejectKind.SHAPE, "a: an integer beyond 64 bits"),
        (msgpack.packb({"a": b"raw"}), RejectKind.SHAPE, "a: binary data"),
        (msgpack.packb({"a": msgpack.ExtType(5, b"x")}), RejectKind.SHAPE, "a: an extension type"),
        (msgpack.packb({"a": msgpack.Timestamp(1, 2)}), RejectKind.SHAPE, "a: an extension type"),
        (msgpack.packb({1: 2}), RejectKind.SHAPE, "a point name is a number"),
        (msgpack.packb({"a": {b"b": 2}}), RejectKind.SHAPE, "a.: a point name is binary data"),
        (b"\x81\x81\x01\x02\x03", RejectKind.MALFORMED, "hashable"),
        (b"\x93\x01\x02\x03", RejectKind.MALFORMED, "first byte 0x93"),
    ],
    ids=lambda value: repr(value[:16]) if isinstance(value, bytes) else None,
)
def test_bad_payloads_say_what_is_wrong(payload, kind, reason):
    with pytest.raises(Reject, match=reason) as caught:
        decode(payload)
    assert caught.value.kind is kind
    assert len(str(caught.value)) < 300


def test_the_deepest_payload_that_is_allowed():
    assert decode(nested(MAX_DEPTH))


def test_a_string_of_a_mebibyte_is_a_value():
    text = "x" * 2**20
    assert decode(json.dumps({"a": text}).encode()) == {"a": text}


def test_of_a_name_that_occurs_twice_the_last_value_counts():
    assert decode(b'{"a":1,"a":2}') == {"a": 2}
    assert decode(b'{"a":{"b":1},"a":{"b":2}}') == {"a": {"b": 2}}
    assert decode(b"\x82\xa1a\x01\xa1a\x02") == {"a": 2}


def test_flatten_names_nested_points_with_dots():
    sent = {"a": 1, "b": {"c": 2, "d": {"e": None}, "empty": {}}, "f": "x"}
    assert flatten(sent) == {"a": 1, "b.c": 2, "b.d.e": None, "f": "x"}


@given(points)
def test_flat_points_have_no_objects_left(sent):
    assert not any(isinstance(value, dict) for value in flatten(sent).values())
