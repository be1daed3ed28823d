"""Arrivals in turn: company by company, and in each of them lane by lane. Pure.

A lane is a connection, or all connections whose terminals feed the same objects: those see each other's reports in the
order of their arrival, whoever is slowed down. What comes from one connection stays in order in any case. A turn is so
many bytes, or one slice of time.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Hashable

from terrazzo.ingest.commit_group import Arrival

_TURN_BYTES = 32 * 1024
_MESSAGE_BYTES = 100  # what a message counts beside its payload

LaneOf = Callable[[str], Hashable | None]
"""What a terminal (its uid) shares with others that feed the same objects; None: it shares nothing."""


class Lane:
    """What waits of one connection, or of several, in order. ``counts``: of several, how much of each, by client."""

    __slots__ = ("arrivals", "counts", "is_held", "key", "owner", "refused")

    def __init__(self, owner: str, key: Hashable | None = None) -> None:
        self.owner = owner
        self.key = key
        self.arrivals: deque[Arrival] = deque()
        self.counts: Counter[int] | None = None if key is None else Counter()
        self.is_held = False  # it has no turn until it is released
        self.refused = 0  # pieces of sealed payloads, one after the other, of which none opened


class Turns:
    """All that has arrived and isn't decoded to its end."""

    def __init__(self, lane_of: LaneOf | None = None) -> None:
        self._lane_of = lane_of
        # of which something waits, by the id of the client, which arrivals hold
        self._connections: dict[int, Lane] = {}
        self._shared: dict[Hashable, Lane] = {}
        self._ready: dict[str, deque[Lane]] = {}  # lanes that have a turn, by company
        self._owners: deque[str] = deque()  # companies that have one, whose turn it is first
        self._left: dict[str, int] = {}  # bytes of its turn

    def __bool__(self) -> bool:
        return bool(self._connections)

    @property
    def head(self) -> Lane | None:
        """The lane whose turn it is; None: there is none, or all are held."""
        owners, left = self._owners, self._left
        if not owners:
            return None
        while left[owners[0]] <= 0:
            left[owners[0]] += _TURN_BYTES
            owners.rotate(-1)
        return self._ready[owners[0]][0]

    def add(self, arrival: Arrival) -> None:
        """Appends an arrival to its connection's lane."""
        connection = id(arrival.batch.client)
        lane = self._connections.get(connection)
        if lane is None:
            lane = self._connections[connection] = self._find_lane(arrival)
        if lane.counts is not None:
            lane.counts[connection] += 1
        lane.arrivals.append(arrival)
        if len(lane.arrivals) == 1 and not lane.is_held:
            self._make_ready(lane)

    def _find_lane(self, arrival: Arrival) -> Lane:
        batch = arrival.batch
        key = self._lane_of(batch.messages[0].tag.uid) if self._lane_of is not None and batch.messages else None
        if key is None:
            return Lane(batch.client.owner)
        lane = self._shared.get(key)
        if lane is None:
            lane = self._shared[key] = Lane(batch.client.owner, key)
        return lane

    def _make_ready(self, lane: Lane) -> None:
        owner = lane.owner
        lanes = self._ready.get(owner)
        if lanes is None:
            self._ready[owner] = deque((lane,))
            self._owners.append(owner)
            self._left[owner] = _TURN_BYTES
        else:
            lanes.append(lane)

    def end_turn(self, lane: Lane) -> None:
        """A slice of time is over: it is the next company's turn, and in this one the next lane's."""
        lanes = self._ready.get(lane.owner)
        if lanes is not None:
            self._left[lane.owner] -= _TURN_BYTES
            if lanes[0] is lane:
                lanes.rotate(-1)

    def finish(self, lane: Lane) -> None:
        """Removes the first arrival of the lane whose turn it is; it was decoded to its end."""
        arrival = lane.arrivals[0]
        self._left[lane.owner] -= arrival.size + _MESSAGE_BYTES * len(arrival.batch.messages)
        self._drop_first(lane)
        if lane.arrivals:
            self._ready[lane.owner].rotate(-1)

    def _drop_first(self, lane: Lane) -> None:
        connection = id(lane.arrivals.popleft().batch.client)
        if lane.counts is not None:
            lane.counts[connection] -= 1
            if not lane.counts[connection]:
                del self._connections[connection], lane.counts[connection]
            if not lane.arrivals:
                del self._shared[lane.key]
        elif not lane.arrivals:
            del self._connections[connection]
        if not lane.arrivals and not lane.is_held:
            self._unready(lane)

    def _unready(self, lane: Lane) -> None:
        owner = lane.owner
        lanes = self._ready[owner]
        if len(lanes) == 1:
            del self._ready[owner], self._left[owner]
            self._owners.remove(owner)
        else:
            lanes.remove(lane)  # the first, as a rule

    def hold(self, lane: Lane) -> None:
        """The lane has no turn until it is released: its first arrival waits for something."""
        lane.is_held = True
        self._unready(lane)

    def release(self, lane: Lane) -> None:
        """The lane has turns again."""
        lane.is_held = False
        if lane.arrivals:
            self._make_ready(lane)

    def drop(self, arrival: Arrival) -> bool:
        """Removes an arrival that was decoded in part; whether it was there."""
        lane = self._connections.get(id(arrival.batch.client))
        if lane is None or lane.arrivals[0] is not arrival:
            return False
        self._drop_first(lane)
        return True
