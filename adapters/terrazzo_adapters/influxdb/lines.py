"""Encodes records as line protocol.

Each record has its exact body as a string, because fields can't give it back: they know neither nesting, null, empty
objects, the order of keys nor integers above 2**53. Its points are fields too, for charts: numbers as floats under
their own name, whether they were written 1 or 1.5, strings as ``<point>|text``, booleans as ``<point>|flag``, so that a
point may change its type without InfluxDB refusing it.

In mosaic records, which are searched by the names that they carry, null and the empty text have a field
``<name>|empty``, and no name is left out because the record or the text is long.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import msgspec

from terrazzo.ports.store import Value
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.influxdb.naming import ARRIVAL, BODY, EMPTY, FLAG, TEXT, field_name, line_field, line_head

TIES_A_TAG = 1000
"""A microsecond has that many nanoseconds; the next thousand records go to another value of the tag ``tie``."""

_MOST_FIELDS = 256  # of one record; the others are in the body alone
_LONGEST_NAME = 256
_LONGEST_TEXT = 1024
_DEEPEST = 32
_BASE64 = "base64:"


class LinePoint(msgspec.Struct, array_like=True):
    """A record to be written. ``tie``: its number among those of its series and microsecond; -1: not assigned yet."""

    series: str
    time_us: int
    body: bytes
    arrival: int
    tie: int = -1


def encode_line(point: LinePoint, *, writer: str, without: set[str] | None) -> str:
    """One line of line protocol.

    Args:
        writer: tells several processes that write to one database apart.
        without: fields to leave out; None leaves out all but body and arrival.
    """
    head = line_head(point.series, tie_tag(point.tie, writer))
    fields = f"{BODY}={quoted(body_text(point.body))},{ARRIVAL}={point.arrival}i"
    if without is not None:
        charted = mosaic_fields(point.body) if point.series.startswith("m/") else chart_fields(point.body)
        for name in without & charted.keys() if without else ():
            del charted[name]
        fields += "".join([f",{line_field(name)}={value}" for name, value in charted.items()])
    return f"{head} {fields} {time_ns(point)}"


def time_ns(point: LinePoint) -> int:
    """The time of a point's line in UTC nanoseconds: its microsecond, with the tie-breaker as the last three digits."""
    return point.time_us * 1000 + point.tie % TIES_A_TAG


def tie_tag(tie: int, writer: str) -> str:
    """The value of the tag ``tie``: empty unless there is a ``writer``, or more than 1,000 records in a microsecond."""
    overflow = tie // TIES_A_TAG
    return f"{writer}.{overflow}" if overflow else writer


def parse_tie(tag: str | None, ns: int) -> int:
    """The tie-breaker of a stored point, from its tag ``tie`` and its time in nanoseconds."""
    _, dot, overflow = (tag or "").rpartition(".")
    return (int(overflow) if dot else 0) * TIES_A_TAG + ns % 1000


def body_text(body: bytes) -> str:
    """A body as text: JSON as it is, all else in Base64."""
    if body[:1] == b"{" and b"\0" not in body:
        try:
            return body.decode()
        except UnicodeDecodeError:
            pass
    return _BASE64 + base64.b64encode(body).decode()


def parse_body(text: str) -> bytes:
    """The reverse of ``body_text``."""
    return base64.b64decode(text[len(_BASE64) :]) if text.startswith(_BASE64) else text.encode()


def quoted(text: str) -> str:
    """A text as the value of a string field in line protocol, in quotation marks."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def chart_fields(body: bytes) -> dict[str, str]:
    """The fields that charts use, unescaped, and their values; none for a body that is no object."""
    try:
        decoded = msgspec.json.decode(body) if body[:1] == b"{" else msgspec.msgpack.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    fields: dict[str, str] = {}
    if isinstance(decoded, dict):
        _collect(decoded, "", _DEEPEST, fields)
    return fields


def mosaic_fields(body: bytes) -> dict[str, str]:
    """As ``chart_fields``, but every name that the record carries has a field: see ``naming.carrying``."""
    return dict(_mosaic_field(*item) for item in parse_points(body).items() if item[0])


def _mosaic_field(name: str, value: Value) -> tuple[str, str]:
    text, suffix = _value(value[:_LONGEST_TEXT].replace("\0", "") if isinstance(value, str) else value)
    if text in ("", '""'):
        return field_name(name, EMPTY), "true"
    return field_name(name, suffix), text


def _collect(points: dict[Any, Any], prefix: str, depth: int, fields: dict[str, str]) -> None:
    for name, value in points.items():
        if len(fields) == _MOST_FIELDS:
            return
        if isinstance(value, dict):
            if depth:
                _collect(value, f"{prefix}{name}.", depth - 1, fields)
            continue
        text, suffix = _value(value)
        path = f"{prefix}{name}"
        if text and path and len(path) <= _LONGEST_NAME:
            fields[field_name(path, suffix)] = text


def _value(value: Any) -> tuple[str, str]:
    """A value in line protocol, and the suffix of its field; empty if it has no field."""
    kind = type(value)
    if kind is float:
        return repr(value) if math.isfinite(value) else "", ""
    if kind is int:
        return _whole_number(value), ""
    if kind is str and len(value) <= _LONGEST_TEXT and "\0" not in value:
        return quoted(value), TEXT
    if kind is bool:
        return "true" if value else "false", FLAG
    return "", ""


def _whole_number(value: int) -> str:
    try:
        return repr(float(value))
    except OverflowError:
        return ""
