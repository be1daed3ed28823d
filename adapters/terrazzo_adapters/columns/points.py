"""Parses a record's body into names and values."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from terrazzo.ports.store import Value

MOST_TOGETHER, MOST_TOGETHER_BYTES = 1_024, 1 << 20
"""Bodies that are decoded at once, some milliseconds, and their bytes."""

_DEEPEST = 32
_PLAIN = {int, float, str, bool, type(None)}
_from_json = msgspec.json.Decoder()
_from_msgpack = msgspec.msgpack.Decoder()


def parse_points(body: bytes) -> dict[str, Value]:
    """The points of a body; names of nested objects are joined with ``.``. A body that is no object has none.

    Numbers that are not finite become null: no chart and no JSON can hold them.
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


ValuesReader = Callable[[Sequence[bytes]], Sequence[Sequence[Value]]]
"""Gives the values of the names that it was made for: of each name those of all bodies, null where one has none."""


@lru_cache(maxsize=256)
def values_reader(keys: tuple[str, ...]) -> ValuesReader:
    """Makes a function that reads the values of these names from bodies.

    It decodes many bodies at once and skips other names: ten times as fast as ``parse_points``.
    """
    chosen = None if any("." in key for key in keys) else _chosen(keys)  # of nested maps only all of it tells
    if chosen is None:
        return lambda bodies: _values(bodies, keys)
    structs, fields = _structs_reader(chosen), chosen.__struct_fields__

    def read(bodies: Sequence[bytes]) -> Sequence[Sequence[Value]]:
        columns: list[list[Value]] = [[] for _ in fields]
        for some in _together(bodies):
            try:
                found = structs(some)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
                told = _values(some, keys)
            else:
                told = [[None if each is UNSET else each for each in map(attrgetter(field), found)] for field in fields]
            for column, values in zip(columns, told, strict=True):
                column += values
        return columns

    return read


def _structs_reader(chosen: type[msgspec.Struct]) -> Callable[[Sequence[bytes]], list[Any]]:
    """Makes a function that decodes bodies, all of them JSON or all MessagePack; raises where one doesn't fit."""
    from_msgpack = msgspec.msgpack.Decoder(list[chosen]).decode  # type: ignore[valid-type]
    from_json = msgspec.json.Decoder(chosen).decode

    def read(bodies: Sequence[bytes]) -> list[Any]:
        return list(map(from_json, bodies)) if _are_json(bodies) else from_msgpack(_as_list(bodies))

    return read


def _are_json(bodies: Sequence[bytes]) -> bool:
    """Whether all are objects of JSON.

    Raises:
        UnicodeDecodeError: something in one of them is no text, be it skipped.
    """
    if {body[:1] for body in bodies} != {b"{"}:
        return False
    text = b"".join(bodies)
    return text.isascii() or bool(text.decode())


def carrying(bodies: Sequence[bytes], keys: Set[str]) -> Sequence[bool]:
    """Which bodies carry at least one of the names, be it null."""
    chosen = None if any("." in key for key in keys) else _carrying_reader(tuple(sorted(keys)))
    found: list[bool] = []
    for some in _together(bodies):
        told = None if chosen is None else chosen(some)
        found += [not keys.isdisjoint(parse_points(body)) for body in some] if told is None else told
    return found


@lru_cache(maxsize=256)
def _carrying_reader(keys: tuple[str, ...]) -> Callable[[Sequence[bytes]], Sequence[bool] | None]:
    chosen = _chosen(keys)
    if chosen is None:
        return lambda _: None
    structs, fields = _structs_reader(chosen), chosen.__struct_fields__

    def read(bodies: Sequence[bytes]) -> Sequence[bool] | None:
        try:
            found = structs(bodies)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None
        columns = [[value is not UNSET for value in map(attrgetter(field), found)] for field in fields]
        return columns[0] if len(columns) == 1 else [any(row) for row in zip(*columns, strict=True)]

    return read


def _chosen(keys: tuple[str, ...]) -> type[msgspec.Struct] | None:
    """A map of which only these names are looked at; None: names that msgspec doesn't take (a quotation mark)."""
    names = [f"value_{place}" for place in range(len(keys))]
    fields = [(name, Value | UnsetType, UNSET) for name in names]
    try:
        return msgspec.defstruct("Chosen", fields, rename=dict(zip(names, keys, strict=True)), gc=False)
    except ValueError:
        return None


def _together(bodies: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    """The bodies in pieces that are decoded at once: others want the interpreter, too."""
    for start in range(0, len(bodies), MOST_TOGETHER):
        yield from _halved(bodies[start : start + MOST_TOGETHER])


def _halved(bodies: Sequence[bytes]) -> Iterator[Sequence[bytes]]:
    if len(bodies) == 1 or sum(map(len, bodies)) <= MOST_TOGETHER_BYTES:
        yield bodies
    else:
        half = len(bodies) // 2
        yield from _halved(bodies[:half])
        yield from _halved(bodies[half:])


def _as_list(bodies: Sequence[bytes]) -> bytes:
    """Bodies as one body. One that is cut, or has more behind it, makes another number of them, which is an error."""
    return b"".join((b"\xdd", len(bodies).to_bytes(4), *bodies))


def _values(bodies: Sequence[bytes], keys: tuple[str, ...]) -> Sequence[Sequence[Value]]:
    points = list(map(parse_points, bodies))
    return [[each.get(key) for each in points] for key in keys]


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
