"""``QueueIndex``: numbers and sizes in bytes of the messages in a bridge's queue; which to drop when it is full."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from itertools import islice
from typing import Literal

Overflow = Literal["drop_oldest", "drop_newest"]


@dataclass(frozen=True, slots=True)
class Capacity:
    """The limits of a queue, and what to drop when it is full and has no QoS 0 message left to drop."""

    messages: int
    bytes: int
    overflow: Overflow


class QueueIndex:
    """Numbered messages in order, within a capacity. Numbers rise by one and are never used again."""

    def __init__(self, capacity: Capacity) -> None:
        self._capacity = capacity
        self._sizes: OrderedDict[int, int] = OrderedDict()
        self._qos0: deque[int] = deque()  # may name messages that are gone
        self.bytes = 0
        self.last = 0  # the highest number given out
        self.on_the_way = 0  # messages up to this number were sent and are not dropped

    def __len__(self) -> int:
        return len(self._sizes)

    def __contains__(self, number: int) -> bool:
        return number in self._sizes

    @property
    def first(self) -> int:
        """The lowest number that waits; one more than the last number if none does."""
        return next(iter(self._sizes), self.last + 1)

    def restore(self, number: int, *, qos: int, size: int) -> None:
        """Enters a message that an earlier process left."""
        self._sizes[number] = size
        self.bytes += size
        self.last = number
        if not qos:
            self._qos0.append(number)

    def admit(self, *, qos: int, size: int) -> tuple[int | None, list[int]]:
        """A number for a new message, None if there is no room, and the numbers of the messages dropped to make room.

        The oldest QoS 0 messages are dropped first. A QoS 0 message never displaces one of QoS 1.
        """
        dropped: list[int] = []
        if size > self._capacity.bytes:  # no use in dropping anything
            return None, dropped
        while not self._fits(size):
            victim = self._victim(qos)
            if victim is None:
                return None, dropped
            self.remove(victim)
            dropped.append(victim)
        self.restore(self.last + 1, qos=qos, size=size)
        return self.last, dropped

    def _fits(self, size: int) -> bool:
        return len(self._sizes) < self._capacity.messages and self.bytes + size <= self._capacity.bytes

    def _victim(self, qos: int) -> int | None:
        while self._qos0:
            number = self._qos0.popleft()
            if number in self._sizes and number > self.on_the_way:
                return number
        if not qos or self._capacity.overflow == "drop_newest":
            return None
        # Of those on the way there are at most as many as the window holds.
        return next((number for number in islice(self._sizes, 70_000) if number > self.on_the_way), None)

    def remove(self, number: int) -> bool:
        """Removes a message; False if it is not there any more."""
        size = self._sizes.pop(number, None)
        if size is None:
            return False
        self.bytes -= size
        return True
