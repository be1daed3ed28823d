"""Records to line protocol.

Each record has its exact body as a string, because fields can't give it back: they know neither nesting, null, empty
objects, the order of keys nor integers above 2**53. Beside it stand the points as fields, for charts: numbers as
floats under their own name, whether they were written 1 or 1.5, strings as ``<point>|text``, booleans as
``<point>|flag``, so that a point may change its type without InfluxDB refusing it.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterator
from typing import Any

import msgspec

from terrazzo_adapters.influxdb.naming import ARRIVAL, BODY, field_name, line_field, line_head

TIES_A_TAG = 1000
"""A microsecond has that many nanoseconds; the next thousand records go to another value of the tag ``tie``."""

_MOST_FIELDS = 256  # of one record; the others are in the body alone
_LONGEST_NAME = 256
_LONGEST_TEXT = 1024
_DEEPEST = 32
_BASE64 = "base64:"


class Point(msgspec.Struct, array_like=True):
    """A record on its way to InfluxDB. ``tie``: its place among those of its series and microsecond, -1: not known."""

    series: str
    time_us: int
    body: bytes
    arrival: int
    tie: int = -1


def encode_line(point: Point, *, writer: str, without: set[str] | None) -> str:
    """One line.

    Args:
        writer: tells several processes that write to one database apart.
        without: fields to leave out; None leaves out all but body and arrival.
    """
    tie = tie_tag(point.tie, writer)
    fields = [f"{BODY}={quoted(body_text(point.body))}", f"{ARRIVAL}={point.arrival}i"]
    if without is not None:
        fields += [f"{line_field(name)}={value}" for name, value in chart_fields(point.body) if name not in without]
    return f"{line_head(point.series, tie)} {','.join(fields)} {time_ns(point)}"


def time_ns(point: Point) -> int:
    """The point's time with its tie-breaker."""
    return point.time_us * 1000 + point.tie % TIES_A_TAG


def tie_tag(tie: int, writer: str) -> str:
    """The value of the tag ``tie``, mostly empty."""
    overflow = tie // TIES_A_TAG
    return f"{writer}.{overflow}" if overflow else writer


def parse_tie(tag: str | None, ns: int) -> int:
    """The ``tie`` of a stored point."""
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
    """The way back."""
    return base64.b64decode(text[len(_BASE64) :]) if text.startswith(_BASE64) else text.encode()


def quoted(text: str) -> str:
    """A string field's value."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def chart_fields(body: bytes) -> list[tuple[str, str]]:
    """The names and values of the fields that charts can use; none for a body that is no object."""
    try:
        decoded = msgspec.json.decode(body) if body[:1] == b"{" else msgspec.msgpack.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return []
    if not isinstance(decoded, dict):
        return []
    fields: dict[str, str] = {}
    for name, value in _flat(decoded, "", _DEEPEST):
        if len(fields) == _MOST_FIELDS:
            break
        field = _field(name, value)
        if field is not None:
            fields[field[0]] = field[1]
    return list(fields.items())


def _flat(points: dict[Any, Any], prefix: str, depth: int) -> Iterator[tuple[str, Any]]:
    for name, value in points.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            if depth:
                yield from _flat(value, f"{path}.", depth - 1)
        else:
            yield path, value


def _field(name: str, value: Any) -> tuple[str, str] | None:
    if not name or len(name) > _LONGEST_NAME:
        return None
    if isinstance(value, bool):
        return field_name(name, "|flag"), "true" if value else "false"
    if isinstance(value, str) and len(value) <= _LONGEST_TEXT and "\0" not in value:
        return field_name(name, "|text"), quoted(value)
    if isinstance(value, int | float):
        number = _float(value)
        return None if number is None else (field_name(name), number)
    return None


def _float(value: float) -> str | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return repr(number) if math.isfinite(number) else None
