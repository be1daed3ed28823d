"""Bodies to columns, decoding only names that are asked for: all at once where they are flat maps of MessagePack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.columns.column import PointColumn, build_column, joined
from terrazzo_adapters.columns.flat_maps import FlatMaps, find_values
from terrazzo_adapters.columns.points import carrying, values_reader

_WALKED = 16_384  # bodies that are walked together: each operation of a step takes some ten microseconds
_LEAST_WALKED = 400  # in a step: fewer are decoded as fast one by one
_MOST_BYTES = 4 << 20


def decode_columns(times_us: NDArray[np.int64], bodies: Sequence[bytes], keys: Sequence[str]) -> dict[str, PointColumn]:
    """The columns of ``keys`` from times (UTC microseconds) and bodies, in order; without empty ones."""
    found: dict[str, list[PointColumn]] = {key: [] for key in keys}
    for part in _parts(bodies):
        for key, column in zip(keys, _columns(times_us[part], bodies[part], keys), strict=True):
            if len(column.times_us):
                found[key].append(column)
    return {key: each[0] if len(each) == 1 else joined(each) for key, each in found.items() if each}


def _columns(times_us: NDArray[np.int64], bodies: Sequence[bytes], keys: Sequence[str]) -> Sequence[PointColumn]:
    maps = _maps(bodies, keys)
    if maps is not None:
        try:
            return [maps.column(number, times_us) for number in range(len(keys))]
        except UnicodeDecodeError:
            pass  # that body has no points: the reader of values knows which
    return [build_column(times_us, values) for values in values_reader(tuple(keys))(bodies)]


def which_carry(bodies: Sequence[bytes], keys: Sequence[str]) -> NDArray[np.bool_]:
    """Which bodies carry at least one of the names, be it null."""
    found = np.zeros(len(bodies), np.bool_)
    for part in _parts(bodies):
        maps = _maps(bodies[part], keys)
        found[part] = carrying(bodies[part], frozenset(keys)) if maps is None else maps.carrying()
    return found


def _maps(bodies: Sequence[bytes], keys: Sequence[str]) -> FlatMaps | None:
    is_worth = keys and len(bodies) >= _LEAST_WALKED and bodies[0][:1] != b"{"
    return find_values(bodies, keys, least=_LEAST_WALKED) if is_worth else None


def _parts(bodies: Sequence[bytes]) -> Iterator[slice]:
    """Some bodies at a time: fewer where they are long."""
    start = 0
    while start < len(bodies):
        stop = min(start + _WALKED, len(bodies))
        while stop > start + 1 and sum(map(len, bodies[start:stop])) > _MOST_BYTES:
            stop = start + (stop - start) // 2
        yield slice(start, stop)
        start = stop
