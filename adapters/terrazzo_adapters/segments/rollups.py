"""One name's rollup: its numbers by UTC hour."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo.ports.store import Figures
from terrazzo_adapters.columns.column import FLAG, TEXT, PointColumn
from terrazzo_adapters.columns.resample import first_equal, run_starts
from terrazzo_adapters.columns.rollup import HOUR_US
from terrazzo_adapters.segments.numeric import (
    decode_floats,
    decode_integers,
    encode_floats,
    encode_integers,
    find_scaled,
)
from terrazzo_adapters.segments.packing import Damaged, Packing

LEAST_POINTS = 50
"""For each hour, on average: with fewer the points themselves are read as fast, and a rollup takes more bytes."""

_EXACT = 2**53
_LAST_HOUR = (2**63 - 1) // HOUR_US  # which the last time ends before its end


class _Stored(msgspec.Struct, array_like=True):
    """``values`` and ``offsets`` (microseconds since the hour began): those of all first points, then all lowest, …"""

    kind: int
    count: int
    hours: bytes
    counts: bytes
    sums: bytes
    values: bytes
    offsets: bytes


_decoder = msgspec.msgpack.Decoder(_Stored)


def make_rollup(column: PointColumn, slot_us: int = HOUR_US) -> Figures | None:
    """The rollup of a name's points by hours or parts of them; None where it would not say all, or is not worth it."""
    times_us, numbers, kinds = column.times_us, column.numbers, column.kinds
    if not len(numbers) or kinds[0] == TEXT or (kinds != kinds[0]).any() or (times_us[1:] == times_us[:-1]).any():
        return None
    slots = times_us // slot_us
    starts = run_starts(slots)
    sums = _sums(numbers, starts)
    if len(numbers) * HOUR_US < LEAST_POINTS * slot_us * len(starts) or not np.isfinite(sums).all():
        return None
    ends = np.append(starts[1:], len(slots))
    lowest = first_equal(numbers, np.minimum.reduceat(numbers, starts), starts, ends)
    highest = first_equal(numbers, np.maximum.reduceat(numbers, starts), starts, ends)
    places = np.stack((starts, lowest, highest, ends - 1))
    return Figures(int(kinds[0]), slots[starts] * slot_us, ends - starts, sums, numbers[places], times_us[places])


def _sums(numbers: NDArray[np.float64], starts: NDArray[np.intp]) -> NDArray[np.float64]:
    """The sum of each run: of decimals as their digits say, which is as near and takes fewer bytes."""
    found = find_scaled(numbers)
    if found is not None and int(np.abs(found.integers).max()) * len(numbers) < _EXACT:
        return np.add.reduceat(found.integers, starts) / 10.0**found.decimals
    with np.errstate(over="ignore", invalid="ignore"):
        return np.add.reduceat(numbers, starts)


def encode_rollup(rollup: Figures, packing: Packing) -> bytes:
    """A rollup as bytes."""
    offsets = rollup.times_us - rollup.starts_us
    return msgspec.msgpack.encode(
        _Stored(
            kind=rollup.kind,
            count=len(rollup.starts_us),
            hours=encode_integers(rollup.starts_us // HOUR_US, packing),
            counts=encode_integers(rollup.counts, packing),
            sums=encode_floats(rollup.sums, packing),
            values=encode_floats(rollup.values.ravel(), packing),
            offsets=encode_integers(offsets.ravel(), packing),
        )
    )


def decode_rollup(data: bytes, most: int) -> Figures:
    """The reverse of ``encode_rollup``, for a segment of ``most`` records.

    Raises:
        Damaged: it is no rollup.
    """
    try:
        stored = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise Damaged(f"rollup: {error}") from error
    if not 0 < stored.count <= most or not 0 <= stored.kind <= FLAG:
        raise Damaged("rollup: counts that don't fit")
    hours, counts = (decode_integers(each, stored.count) for each in (stored.hours, stored.counts))
    values = decode_floats(stored.values, 4 * stored.count).reshape(4, -1)
    offsets = decode_integers(stored.offsets, 4 * stored.count).reshape(4, -1)
    if not 0 <= hours[0] <= hours[-1] <= _LAST_HOUR or (hours[1:] <= hours[:-1]).any():
        raise Damaged("rollup: hours that are not in order")
    if counts.min() < 1 or counts.max() > most or not 0 <= offsets.min() <= offsets.max() < HOUR_US:
        raise Damaged("rollup: counts or times that don't fit")
    sums = decode_floats(stored.sums, stored.count)
    starts_us = hours * HOUR_US
    return frozen(Figures(stored.kind, starts_us, counts, sums, values, starts_us + offsets))


def frozen(rollup: Figures) -> Figures:
    """The same, which nobody can change any more."""
    for array in rollup[1:]:
        array.flags.writeable = False
    return rollup
