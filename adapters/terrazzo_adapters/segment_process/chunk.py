"""Records of one series that are to be one segment, as they are handed to whoever makes it."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

_ORDER = Struct(">QQ")


class Chunk(NamedTuple):
    """``orders``: each record's time (UTC microseconds) and arrival number, 8 bytes each, big-endian; ascending."""

    orders: bytes
    bodies: Sequence[bytes]

    @property
    def first_us(self) -> int:
        """The first record's time."""
        return int.from_bytes(self.orders[:8])

    @property
    def last_us(self) -> int:
        """The last record's time."""
        return int.from_bytes(self.orders[-_ORDER.size : -8])

    def records(self) -> list[tuple[int, int, bytes]]:
        """Time, arrival number and body of each."""
        return [(*order, body) for order, body in zip(_ORDER.iter_unpack(self.orders), self.bodies, strict=True)]
