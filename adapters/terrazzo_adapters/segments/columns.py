"""One name's column: its summary, and its values."""

from __future__ import annotations

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo_adapters.segments.packing import Damaged, Packing
from terrazzo_adapters.segments.summary import Summary, make_summary
from terrazzo_adapters.segments.values import Values, decode_values, encode_values


class Column(msgspec.Struct, array_like=True, frozen=True):
    """A column as it is stored; its values are decoded when they are asked for."""

    summary: Summary
    values: bytes

    def decode(self) -> Values:
        """The values of the records that carry the name, in order.

        Raises:
            Damaged: they are not.
        """
        values = decode_values(self.values, self.summary.carried)
        if len(values) != self.summary.carried:
            raise Damaged(f"{len(values)} values where {self.summary.carried} are due")
        return values


_decoder = msgspec.msgpack.Decoder(Column)


def encode_column(values: Values, times_us: NDArray[np.int64], last_place: int, packing: Packing) -> bytes:
    """A column as bytes, from the values and times (UTC microseconds) of the records that carry the name.

    ``last_place``: of the last of them among all records.
    """
    summary = make_summary(values.points(times_us), carried=len(values), last_place=last_place)
    return msgspec.msgpack.encode(Column(summary, encode_values(values, packing)))


def decode_column(data: bytes, most: int) -> Column:
    """The reverse of ``encode_column``, for a segment of ``most`` records.

    Raises:
        Damaged: it is no column.
    """
    try:
        column = _decoder.decode(data)
    except msgspec.MsgspecError as error:
        raise Damaged(f"column: {error}") from error
    if not 0 < column.summary.carried <= most or not 0 <= column.summary.last_place < most:
        raise Damaged("column: counts that don't fit")
    return column
