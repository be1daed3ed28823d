"""Places for connections, shared out by address. Pure.

Who has not shown a good token (is not *proven*) has a share of its address, and gives way when all places are taken.
Who has is limited by the whole, and by what one address may have of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum

from terrazzo.ports.at_work import Work

RESERVE = 32  # places beyond the others in which only health is answered, one for an address


class Full(Enum):
    """Why there is no place."""

    ALL = "all"  # everybody's places are taken
    ADDRESS = "address"  # those of this address


class ConnectionSlot:
    """One place.

    Args:
        share: of which address; empty: of a trusted proxy, which no share but the whole bounds.
        weight: of all places; 0 for one client's request on a proxy's connection, which has a place itself.
        give_way: ends the connection.
        is_idle: whether nothing is under way on it.
    """

    __slots__ = ("_shares", "company_id", "give_way", "is_idle", "is_proven", "reading", "share", "weight")

    def __init__(
        self, shares: Shares, share: str, weight: int, give_way: Callable[[], None], is_idle: Callable[[], bool]
    ) -> None:
        self._shares: Shares | None = shares
        self.share = share
        self.weight = weight
        self.give_way = give_way
        self.is_idle = is_idle
        self.is_proven = not share
        self.reading: Work | None = None
        self.company_id = 0  # whose token was shown last; 0: nobody's

    def prove(self, company_id: int) -> None:
        """A good token of a company's user was shown."""
        self.company_id = company_id
        if not self.is_proven:
            self.is_proven = True
            if self._shares is not None:
                self._shares.on_proven(self)

    def leave(self) -> None:
        """The connection has ended; again does nothing."""
        self.give_way, self.is_idle = _nothing, _always  # which refer to the connection, as it does to its place
        shares, self._shares = self._shares, None
        if shares is not None:
            shares.on_left(self)


def _nothing() -> None:
    """Ends what has ended."""


def _always() -> bool:
    return True


class Shares:
    """Who has places.

    Args:
        most: of all together.
        unproven_of_address: how many of one address may be unproven.
        on_gave_way: told of each that gives way.
    """

    def __init__(self, most: int, unproven_of_address: int, on_gave_way: Callable[[ConnectionSlot], None]) -> None:
        self.most = most
        self.most_of_address = most - most // 4
        self.open = 0
        self.unproven = 0
        self._unproven_of_address = unproven_of_address
        self._on_gave_way = on_gave_way
        self._of_address: Counter[str] = Counter()
        self._waiting: dict[str, dict[ConnectionSlot, None]] = {}  # unproven ones by share, the oldest first
        self._by_count: list[dict[str, None]] = [{} for _ in range(unproven_of_address + 1)]
        self._reserve: dict[str, ConnectionSlot] = {}

    def enter(
        self, share: str, *, weight: int = 1, give_way: Callable[[], None], is_idle: Callable[[], bool]
    ) -> ConnectionSlot | Full:
        """A place, for which an unproven one may have had to give way: of this address, or of the one with most."""
        if share and not self._has_share(share):
            return Full.ALL if self.open >= self.most else Full.ADDRESS
        if weight and self.open >= self.most and not self._make_room(len(self._waiting.get(share, ()))):
            return Full.ALL
        slot = ConnectionSlot(self, share, weight, give_way, is_idle)
        self.open += weight
        if share:
            self._of_address[share] += 1
            self._wait(slot)
        return slot

    def enter_reserve(self, share: str, *, give_way: Callable[[], None]) -> ConnectionSlot | None:
        """A place in which health is asked for, for an address that does not have half of all others itself."""
        if share in self._reserve or (share and 2 * self._of_address[share] >= self.most):
            return None
        if len(self._reserve) >= RESERVE:
            self._end(next(iter(self._reserve.values())))
        slot = self._reserve[share] = ConnectionSlot(self, share, 0, give_way, lambda: True)
        slot.is_proven = True  # it has no share, and gives way to the next
        return slot

    def _has_share(self, share: str) -> bool:
        waiting = self._waiting.get(share, {})
        is_full = len(waiting) >= self._unproven_of_address
        if not is_full and self._of_address[share] < self.most_of_address:
            return True
        idle = next((slot for slot in waiting if slot.is_idle()), None)
        if idle is None:
            return False
        self._end(idle)
        return True

    def _make_room(self, own: int) -> bool:
        """Ends an unproven one of the address that has most of them, if that is more than ``own``."""
        for count in range(self._unproven_of_address, own, -1):
            for share in self._by_count[count]:
                waiting = self._waiting[share]
                self._end(next((slot for slot in waiting if slot.is_idle()), next(iter(waiting))))
                return True
        return False

    def _end(self, slot: ConnectionSlot) -> None:
        give_way = slot.give_way
        slot.leave()
        self._on_gave_way(slot)
        give_way()

    def _wait(self, slot: ConnectionSlot) -> None:
        waiting = self._waiting.setdefault(slot.share, {})
        self._by_count[len(waiting)].pop(slot.share, None)
        waiting[slot] = None
        self._by_count[len(waiting)][slot.share] = None
        self.unproven += 1

    def on_proven(self, slot: ConnectionSlot) -> None:
        """For ``ConnectionSlot``: it no longer counts to its address's unproven ones."""
        waiting = self._waiting.get(slot.share, {})
        if slot not in waiting:
            return
        del self._by_count[len(waiting)][slot.share]
        del waiting[slot]
        self.unproven -= 1
        if waiting:
            self._by_count[len(waiting)][slot.share] = None
        else:
            del self._waiting[slot.share]

    def on_left(self, slot: ConnectionSlot) -> None:
        """For ``ConnectionSlot``: it counts nowhere any more."""
        if self._reserve.get(slot.share) is slot:
            del self._reserve[slot.share]
            return
        self.on_proven(slot)
        self.open -= slot.weight
        if slot.share:
            self._of_address[slot.share] -= 1
            if not self._of_address[slot.share]:
                del self._of_address[slot.share]
