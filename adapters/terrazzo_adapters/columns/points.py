"""A record's body to names and values."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import msgspec

from terrazzo.store import Value

_DEEPEST = 32
_PLAIN = {int, float, str, bool, type(None)}
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
    values = decoded.values()
    types = set(map(type, values))
    if not types <= _PLAIN or not _are_text(decoded):
        return _flattened(decoded)
    floats = [value for value in values if type(value) is float] if float in types else []
    if not all(map(math.isfinite, floats)):
        return _flattened(decoded)
    return decoded


def _are_text(names: Iterable[Any]) -> bool:
    return set(map(type, names)) <= {str}


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
