"""Bodies to columns, decoding only names that are asked for: all at once where they are flat maps of MessagePack."""

from __future__ import annotations

from collections.abc import Sequence, Set

import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Value
from terrazzo_adapters.columns.bodies import Bodies
from terrazzo_adapters.columns.column import PointColumn, build_column, joined
from terrazzo_adapters.columns.flat_maps import FlatMaps, find_values
from terrazzo_adapters.columns.points import MOST_TOGETHER, MOST_TOGETHER_BYTES, carrying, values_reader

_WALKED = 16_384  # bodies that are walked together: each operation of a step takes some ten microseconds
_LEAST_WALKED = 400  # in a step: fewer are decoded as fast one by one
_MOST_BYTES = 4 << 20
_BRACE = ord("{")


def decode_columns(times_us: NDArray[np.int64], bodies: Bodies, keys: Sequence[str]) -> dict[str, PointColumn]:
    """The columns of ``keys`` from times (UTC microseconds) and bodies, in order; without empty ones."""
    found: dict[str, list[PointColumn]] = {key: [] for key in keys}
    for part in bodies.parts(_WALKED, _MOST_BYTES):
        for key, column in zip(keys, _columns(times_us[part], bodies.part(part), keys), strict=True):
            if len(column.times_us):
                found[key].append(column)
    return {key: joined(each) for key, each in found.items() if each}


def _columns(times_us: NDArray[np.int64], bodies: Bodies, keys: Sequence[str]) -> Sequence[PointColumn]:
    maps = _maps(bodies, keys)
    if maps is not None:
        try:
            return [maps.column(number, times_us) for number in range(len(keys))]
        except UnicodeDecodeError:
            pass  # that body has no points: the reader of values knows which
    return [build_column(times_us, values) for values in _values(bodies, keys)]


def _values(bodies: Bodies, keys: Sequence[str]) -> Sequence[Sequence[Value]]:
    """Of each name the values in all bodies, some of which are taken apart at a time: more would need new memory."""
    read, found = values_reader(tuple(keys)), [list[Value]() for _ in keys]
    for part in bodies.parts(MOST_TOGETHER, MOST_TOGETHER_BYTES):
        for values, more in zip(found, read(bodies.part(part).each()), strict=True):
            values += more
    return found


def which_carry(bodies: Bodies, keys: Sequence[str]) -> NDArray[np.bool_]:
    """Which bodies carry at least one of the names, be it null."""
    found = np.zeros(bodies.count, np.bool_)
    for part in bodies.parts(_WALKED, _MOST_BYTES):
        some = bodies.part(part)
        maps = _maps(some, keys)
        found[part] = _carrying(some, frozenset(keys)) if maps is None else maps.carrying()
    return found


def _carrying(bodies: Bodies, keys: Set[str]) -> list[bool]:
    found: list[bool] = []
    for part in bodies.parts(MOST_TOGETHER, MOST_TOGETHER_BYTES):
        found += carrying(bodies.part(part).each(), keys)
    return found


def _maps(bodies: Bodies, keys: Sequence[str]) -> FlatMaps | None:
    is_worth = keys and bodies.count >= _LEAST_WALKED and bodies.data[bodies.starts[0]] != _BRACE
    return find_values(bodies, keys, least=_LEAST_WALKED) if is_worth else None
