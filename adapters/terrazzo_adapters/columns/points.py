"""A record's body to names and values."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from terrazzo.store import Value

_DEEPEST = 32
_from_json = msgspec.json.Decoder()
_from_msgpack = msgspec.msgpack.Decoder()


def parse_points(body: bytes) -> dict[str, Value]:
    """What the record carries: names of nested objects are joined with ``.``; nothing in a body that is no object.

    Numbers that are not finite are null: no chart and no JSON can hold them.
    """
    try:
        decoded = _from_json.decode(body) if body[:1] == b"{" else _from_msgpack.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return {}
    if not isinstance(decoded, dict):
        return {}
    for name, value in decoded.items():
        kind = type(value)
        if type(name) is not str or not (kind is int or kind is str or (kind is float and math.isfinite(value))):
            return _flattened(decoded)
    return decoded


def _flattened(decoded: dict[Any, Any]) -> dict[str, Value]:
    points: dict[str, Value] = {}
    _collect(decoded, "", _DEEPEST, points)
    return points


def _collect(decoded: dict[Any, Any], prefix: str, depth: int, points: dict[str, Value]) -> None:
    for name, value in decoded.items():
        path = f"{prefix}{name}"
        if isinstance(value, dict):
            if depth:
                _collect(value, f"{path}.", depth - 1, points)
        elif isinstance(value, float) and not math.isfinite(value):
            points[path] = None
        elif value is None or isinstance(value, float | int | str):
            points[path] = value
