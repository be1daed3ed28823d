"""Line protocol: against influxdb-client, which writes it independently, and through a real server."""

from __future__ import annotations

import asyncio
import re

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from influxdb_client import Point as OraclePoint
from influxdb_client import WritePrecision

from terrazzo.ports.store import Page, Record
from terrazzo_adapters.influxdb.lines import LinePoint, body_text, encode_line, parse_body
from terrazzo_adapters.influxdb.naming import kind_of, series_name, tag_values

T0 = 1_700_000_000_000_000

odd_text = st.text(st.sampled_from("aé温😀 ,=\"'\\\n\r\t|%_.#/{}\0"), max_size=6)
names = st.one_of(odd_text, st.sampled_from(["time", "body", "arrival", "terminal", "tie", "_x", "P", "P|text"]))
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    odd_text,
)
values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3), max_leaves=6
)
payloads = st.dictionaries(names, values, max_size=5)
bodies = st.one_of(
    payloads.map(msgspec.json.encode),
    payloads.map(msgspec.msgpack.encode),
    st.binary(max_size=20),
    st.sampled_from([b"{}", b"", b"\x80", b'{ "P" : 1 }\n', b'{"a":{"b":1},"a.b":2}', b'{"n":1' + b"0" * 400 + b"}"]),
)


@given(bodies)
def test_a_body_survives_as_text(body):
    text = body_text(body)
    assert "\0" not in text
    assert parse_body(text) == body


plain = st.text(
    st.characters(codec="utf-8", exclude_categories=["C", "Z"], exclude_characters="\\%|_"), min_size=1, max_size=8
)
points = st.dictionaries(
    plain.filter(lambda name: name not in {"time", "body", "arrival", "tie", "kept", "terminal", "channel", "object"}),
    st.floats(allow_nan=False, allow_infinity=False),
    max_size=4,
)


@given(
    uid=plain.map(lambda uid: uid.replace("/", "")).filter(bool),
    channel=plain,
    payload=points,
    tie=st.integers(0, 2500),
)
def test_a_line_is_what_influxdb_client_makes_of_it(uid, channel, payload, tie):
    body = msgspec.json.encode(payload)
    line = encode_line(LinePoint(f"g/{uid}/{channel}", T0, body, 42, tie), writer="", without=set())
    oracle = OraclePoint("grid").tag("terminal", uid).tag("channel", channel)
    if tie >= 1000:
        oracle.tag("tie", f".{tie // 1000}")
    oracle.field("body", body.decode()).field("arrival", 42)
    for name, value in payload.items():
        oracle.field(name, value)
    oracle.time(T0 * 1000 + tie % 1000, WritePrecision.NS)
    assert parts(line) == parts(oracle.to_line_protocol())


LINE = re.compile(r"((?:\\.|[^\\ ])+) (.+) (\d+)", re.DOTALL)
FIELD = re.compile(r'((?:\\.|[^\\,= ])+)=("(?:\\.|[^\\"])*"|[^,"]*)(?:,|$)', re.DOTALL)


def parts(line: str) -> tuple[list[str], list[tuple[str, str]], str]:
    """A line in an order of its own: the oracle sorts tags and fields, and writes floats without ``.0``."""
    head, text, time = LINE.fullmatch(line).groups()
    fields = FIELD.findall(text)
    assert ",".join(f"{name}={value}" for name, value in fields) == text
    values = [(name, str(float(value)) if value[-1].isdigit() else value) for name, value in fields]
    return sorted(re.split(r"(?<!\\),", head)), sorted(values), time


series = st.one_of(
    st.builds("g/{}/{}".format, odd_text.map(lambda uid: uid.replace("/", "")), odd_text),
    st.builds("m/{}".format, odd_text),
    st.builds("x/{}".format, odd_text),
)


@given(series)
def test_a_series_is_found_again_from_its_tags(name):
    assert series_name(kind_of(name), tag_values(name)) == name


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(batch=st.lists(st.tuples(series, bodies), min_size=1, max_size=8))
def test_any_record_reads_back_exactly(new_influx_location, batch):
    asyncio.run(reads_back(new_influx_location(), [Record(name, T0 + n, body) for n, (name, body) in enumerate(batch)]))


async def reads_back(location, batch) -> None:
    store = await location.open()
    try:
        await store.append(batch)
        assert store.stats().spool_batches == 0
        names = sorted({record.series for record in batch})
        assert await store.page(names, T0, T0 + 99, offset=0, limit=99) == Page(batch[::-1], len(batch))
        assert await store.series("") == names
    finally:
        await store.close()
