"""The bodies of many records as one piece of memory, and their times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]

BETWEEN = b"\n"
"""What stands between two bodies: those of JSON that have none in them can be decoded as lines."""

_BEHIND = bytes(16)  # words of eight bytes may be looked at that begin in the last body


class Bodies(msgspec.Struct, frozen=True):
    """Some bodies in ``data``, in any order there: where each begins, and how many bytes it has."""

    data: bytes
    starts: Places
    sizes: Places

    @classmethod
    def of(cls, bodies: Sequence[bytes]) -> Bodies:
        """These bodies, in this order."""
        return cls.of_joined(bodies, np.fromiter(map(len, bodies), np.int64, len(bodies)))

    @classmethod
    def of_joined(cls, joined: Sequence[bytes], sizes: Places) -> Bodies:
        """Those in some pieces, in each of which ``BETWEEN`` stands between its bodies."""
        ends = (sizes + len(BETWEEN)).cumsum()
        return cls(BETWEEN.join([*joined, _BEHIND]), ends - sizes - len(BETWEEN), sizes)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.starts)

    def part(self, which: slice | NDArray[np.intp]) -> Bodies:
        """Some of them."""
        return Bodies(self.data, self.starts[which], self.sizes[which])

    def each(self) -> list[bytes]:
        """One by one."""
        data = self.data
        return [data[start:end] for start, end in zip(self.starts.tolist(), (self.starts + self.sizes).tolist())]  # noqa: B905 - as long

    def parts(self, most: int, most_bytes: int) -> Iterator[slice]:
        """Some at a time: at most so many, and of so many bytes, but for one that is longer."""
        before = np.concatenate((np.zeros(1, np.int64), self.sizes.cumsum()))
        start = 0
        while start < self.count:
            fit = int(before.searchsorted(before[start] + most_bytes, "right")) - 1
            stop = max(start + 1, min(start + most, fit))
            yield slice(start, stop)
            start = stop


class TimedBodies(NamedTuple):
    """Records in order: times in UTC microseconds, and bodies."""

    times_us: NDArray[np.int64]
    bodies: Bodies

    def between(self, start_us: int, end_us: int) -> TimedBodies:
        """Those of a range, both ends inclusive."""
        times_us = self.times_us
        if not len(times_us) or (start_us <= times_us[0] and times_us[-1] <= end_us):
            return self
        part = slice(int(times_us.searchsorted(start_us, "left")), int(times_us.searchsorted(end_us, "right")))
        return TimedBodies(times_us[part], self.bodies.part(part))

    def in_order(self) -> TimedBodies:
        """The same by time, those of one time as they are."""
        if (self.times_us[1:] >= self.times_us[:-1]).all():
            return self
        order = np.argsort(self.times_us, kind="stable")
        return TimedBodies(self.times_us[order], self.bodies.part(order))
