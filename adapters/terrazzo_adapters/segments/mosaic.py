"""Bodies of mosaic records that follow from the values of their names: MessagePack maps as the mapping writes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from terrazzo.ports.store import Value

_encode = msgspec.msgpack.Encoder().encode
_LONGEST = 2**63


def is_rendered(body: bytes, points: Mapping[str, Value]) -> bool:
    """Whether ``render`` makes this body of these points."""
    return _is_held(points.values()) and _encode(points) == body


def _is_held(values: Iterable[Value]) -> bool:
    """Whether columns hold the values exactly: of integers, those of 64 bits."""
    return all(type(value) is not int or -_LONGEST <= value < _LONGEST for value in values)


def render(names: Sequence[str], columns: Sequence[Sequence[Value]], count: int) -> list[bytes]:
    """The bodies of ``count`` records that carry ``names`` in this order; for each name its values."""
    if not columns:
        return [_encode({})] * count
    return [_encode(dict(zip(names, values, strict=True))) for values in zip(*columns, strict=True)]
