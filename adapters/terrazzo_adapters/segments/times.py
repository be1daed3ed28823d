"""The times and arrival numbers of a segment's records."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.segments.numeric import decode_integers, decode_unsigned, encode_integers
from terrazzo_adapters.segments.packing import Damaged, Packing

_pair = msgspec.msgpack.Decoder(tuple[bytes, bytes])


class Orders(NamedTuple):
    """For each record its time (UTC microseconds); its arrival number, which is asked for seldom, is decoded then."""

    times_us: NDArray[np.int64]
    numbers: bytes

    def arrivals(self) -> NDArray[np.uint64]:
        """For each record its arrival number.

        Raises:
            Damaged: they are not of as many records.
        """
        return decode_unsigned(self.numbers, len(self.times_us))


def encode_times(times_us: NDArray[np.int64], arrivals: NDArray[np.uint64], packing: Packing) -> bytes:
    """Times and arrival numbers as bytes."""
    return msgspec.msgpack.encode((encode_integers(times_us, packing), encode_integers(arrivals, packing)))


def decode_times(data: bytes, count: int) -> Orders:
    """The reverse of ``encode_times``.

    Raises:
        Damaged: they are not of ``count`` records, or not in order of time.
    """
    try:
        times, numbers = _pair.decode(data)
    except msgspec.MsgspecError as error:
        raise Damaged(f"times: {error}") from error
    orders = Orders(decode_integers(times, count), numbers)
    if (orders.times_us[1:] < orders.times_us[:-1]).any():
        raise Damaged("times: not in order")
    orders.times_us.flags.writeable = False
    return orders
