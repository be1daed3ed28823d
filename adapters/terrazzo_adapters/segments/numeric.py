"""Integers and floats: equal ones once, decimals as scaled integers, all else by pcodec.

The first byte is the form: 0 all equal, 1 pcodec, 16 + n floats that are integers divided by 10 ** n.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pcodec import ChunkConfig, standalone

from terrazzo_adapters.segments.packing import Damaged, Packing

Number = TypeVar("Number", np.int64, np.uint64, np.float64)

_EQUAL, _PCODEC, _SCALED = 0, 1, 16
_MOST_DECIMALS = 9
_EXACT = 2.0**53  # up to here a float tells every whole number
_SAMPLE = 32
_LEVELS = {Packing.CHEAP: ChunkConfig(compression_level=4), Packing.TIGHT: ChunkConfig(compression_level=8)}


def encode_integers(values: NDArray[np.int64] | NDArray[np.uint64], packing: Packing) -> bytes:
    """Integers of 64 bits; none is no byte."""
    if not len(values):
        return b""
    if (values == values[0]).all():
        return bytes([_EQUAL]) + values[:1].astype(values.dtype.newbyteorder("<")).tobytes()
    return _compressed(values, packing)


def decode_integers(data: bytes, count: int) -> NDArray[np.int64]:
    """The reverse of ``encode_integers`` for signed ones.

    Raises:
        Damaged: they are not ``count`` integers.
    """
    return _decode(data, np.zeros(count, np.int64))


def decode_unsigned(data: bytes, count: int) -> NDArray[np.uint64]:
    """The reverse of ``encode_integers`` for unsigned ones; raises as ``decode_integers``."""
    return _decode(data, np.zeros(count, np.uint64))


def encode_floats(values: NDArray[np.float64], packing: Packing) -> bytes:
    """Floats, bit by bit; none is no byte."""
    if not len(values):
        return b""
    bits = values.view(np.int64)
    if (bits == bits[0]).all():
        return bytes([_EQUAL]) + values[:1].astype("<f8").tobytes()
    found = find_scaled(values)
    if found is not None:
        return bytes([_SCALED + found.decimals]) + encode_integers(found.integers, packing)
    return _compressed(values, packing)


class Scaled(NamedTuple):
    """Floats as integers that, divided by 10 ** ``decimals``, are these floats to the bit."""

    decimals: int
    integers: NDArray[np.int64]


def find_scaled(values: NDArray[np.float64]) -> Scaled | None:
    """The values as integers with as few decimals as possible; None if that can't be."""
    for decimals in _candidates(values):
        integers = scale(values, decimals)
        if integers is not None:
            return Scaled(decimals, integers)
    return None


def _candidates(values: NDArray[np.float64]) -> range:
    """The numbers of decimals that the first values leave possible."""
    sample = values[:_SAMPLE]
    least = next((n for n in range(_MOST_DECIMALS + 1) if scale(sample, n) is not None), _MOST_DECIMALS + 1)
    return range(least, _MOST_DECIMALS + 1)


def scale(values: NDArray[np.float64], decimals: int) -> NDArray[np.int64] | None:
    """The integers that, divided by 10 ** ``decimals``, are these floats to the bit; None if there are none."""
    with np.errstate(over="ignore", invalid="ignore"):
        rounded = np.rint(values * 10.0**decimals)
    if not (np.abs(rounded) < _EXACT).all():  # a NaN is not less than anything
        return None
    scaled = rounded.astype(np.int64)
    return scaled if np.array_equal(_unscaled(scaled, decimals).view(np.int64), values.view(np.int64)) else None


def _unscaled(scaled: NDArray[np.int64], decimals: int) -> NDArray[np.float64]:
    return scaled / 10.0**decimals


def decode_floats(data: bytes, count: int) -> NDArray[np.float64]:
    """The reverse of ``encode_floats``.

    Raises:
        Damaged: they are not ``count`` floats.
    """
    if data and _SCALED <= data[0] <= _SCALED + _MOST_DECIMALS:
        return _unscaled(decode_integers(data[1:], count), data[0] - _SCALED)
    return _decode(data, np.zeros(count, np.float64))


def _compressed(values: NDArray[Any], packing: Packing) -> bytes:
    compressed: bytes = standalone.simple_compress(np.ascontiguousarray(values), _LEVELS[packing])
    return bytes([_PCODEC]) + compressed


def _decode(data: bytes, values: NDArray[Number]) -> NDArray[Number]:
    """Fills ``values``, whose length is what is expected: what the bytes say of theirs takes no memory."""
    if not data:
        if len(values):
            raise Damaged(f"no numbers where {len(values)} are due")
        return values
    if data[0] == _EQUAL and len(data) == 9:
        values[:] = np.frombuffer(data, values.dtype.newbyteorder("<"), offset=1)
        return values
    if data[0] != _PCODEC:
        raise Damaged(f"numbers of form {data[0]}")
    _decompress(data[1:], values)
    return values


def _decompress(data: bytes, values: NDArray[Number]) -> None:
    try:
        progress = standalone.simple_decompress_into(data, values)
    except (RuntimeError, TypeError, ValueError) as error:
        raise Damaged(f"pcodec: {error}") from error
    if progress.n_processed != len(values) or not progress.finished:
        raise Damaged(f"pcodec: {progress.n_processed} numbers where {len(values)} are due")
