"""Arrivals in turn: company by company, and in each of them lane by lane. Pure.

What arrives while nothing waits for its turn is *fresh*: it may be decoded in the order of its arrival for one slice of
time, without a look at whose it is. What is left then takes turns with all that comes after it.

A lane is a connection, or all connections whose terminals feed the same objects: those see each other's reports in the
order of their arrival, whoever is slowed down. What comes from one connection stays in order in any case. A turn is so
many bytes, or one slice of time.

Connections and lanes in which nothing waits are kept for what arrives next, up to a bound: making them takes longer
than all else that is done here for an arrival.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable

from terrazzo.ingest.arrival import Arrival
from terrazzo_broker.hooks import Batch

_TURN_BYTES = 32 * 1024
_MESSAGE_BYTES = 100  # what a message counts beside its payload
_MOST_IDLE = 4_096  # connections and shared lanes; beyond, those are forgotten in which nothing waits

_MOST_FRESH = 2_048  # arrivals; giving more of them their lanes would take longer than a slice of time

LaneOf = Callable[[str], Hashable | None]
"""What a terminal (its uid) shares with others that feed the same objects; None: it shares nothing."""


class Company:
    """One of those that take turns: its lanes that have one, and how many bytes of its turn are left."""

    __slots__ = ("lanes", "left", "owner")

    def __init__(self, owner: str) -> None:
        self.owner = owner
        self.lanes: deque[Lane] = deque()
        self.left = 0


class Lane:
    """What waits of one connection, or of several, in order."""

    __slots__ = ("arrivals", "company", "is_held", "refused")

    def __init__(self, company: Company) -> None:
        self.company = company
        self.arrivals: deque[Arrival] = deque()
        self.is_held = False  # it has no turn until it is released
        self.refused = 0  # pieces of payloads, one after the other, of which none was opened, or decoded

    @property
    def owner(self) -> str:
        """The company's name."""
        return self.company.owner


class _Connection:
    """A connection: how many of its arrivals wait, in which lane, and the lane that it has for itself."""

    __slots__ = ("lane", "own", "waiting")

    def __init__(self, own: Lane) -> None:
        self.own = self.lane = own
        self.waiting = 0


class Turns:
    """All that has arrived and isn't decoded to its end."""

    def __init__(self, lane_of: LaneOf | None = None) -> None:
        self._lane_of = lane_of
        self._connections: dict[int, _Connection] = {}  # by the id of the client, which arrivals hold while they wait
        self._shared: dict[Hashable, Lane] = {}
        self._companies: dict[str, Company] = {}
        self._ready: deque[Company] = deque()  # that have lanes with a turn, whose turn it is first
        self._held = 0  # lanes
        self._fresh: list[Arrival] = []  # has no lanes yet; all of it came after what has
        self._most_kept = _MOST_IDLE

    def __bool__(self) -> bool:
        return bool(self._fresh or self._ready) or any(each.waiting for each in self._connections.values())

    @property
    def head(self) -> Lane | None:
        """The lane whose turn it is; None: there is none, or all are held."""
        if self._fresh:
            self.sort_in(self.take_fresh())
        ready = self._ready
        if not ready:
            return None
        company = ready[0]
        while company.left <= 0:
            company.left += _TURN_BYTES
            ready.rotate(-1)
            company = ready[0]
        return company.lanes[0]

    def add(self, arrival: Arrival) -> None:
        """Takes an arrival: it is fresh, or waits in its connection's lane."""
        if not self._ready and not self._held and len(self._fresh) < _MOST_FRESH:
            self._fresh.append(arrival)
            return
        if self._fresh:
            self.sort_in(self.take_fresh())
        self._append(arrival)

    def take_fresh(self) -> list[Arrival]:
        """Removes what is fresh, in the order of its arrival; what isn't decoded at once has to be sorted in."""
        fresh, self._fresh = self._fresh, []
        return fresh

    def sort_in(self, fresh: Iterable[Arrival]) -> None:
        """Gives what was fresh its lanes."""
        for arrival in fresh:
            self._append(arrival)

    def _append(self, arrival: Arrival) -> None:
        batch = arrival.batch
        connection = self._connections.get(id(batch.client)) or self._add_connection(batch)
        arrival.connection = connection
        lane = connection.lane if connection.waiting else self._find_lane(batch, connection)
        connection.waiting += 1
        arrivals = lane.arrivals
        if not arrivals and not lane.is_held:
            self._make_ready(lane)
        arrivals.append(arrival)

    def _find_lane(self, batch: Batch, connection: _Connection) -> Lane:
        owner, messages, lane = batch.client.owner, batch.messages, connection.own
        if self._lane_of is not None and messages:
            key = self._lane_of(messages[0].tag.uid)
            if key is not None:
                lane = self._shared.get(key) or self._add_shared(key, owner)
        if not lane.arrivals and lane.company.owner != owner:
            lane.company = self._company(owner)
        connection.lane = lane
        return lane

    def _add_connection(self, batch: Batch) -> _Connection:
        self._forget_idle()
        connection = self._connections[id(batch.client)] = _Connection(Lane(self._company(batch.client.owner)))
        return connection

    def _add_shared(self, key: Hashable, owner: str) -> Lane:
        self._forget_idle()
        lane = self._shared[key] = Lane(self._company(owner))
        return lane

    def _company(self, owner: str) -> Company:
        company = self._companies.get(owner)
        if company is None:
            company = self._companies[owner] = Company(owner)
        return company

    def _forget_idle(self) -> None:
        """Forgets all in which nothing waits, if too many are kept; then as many as are left may be added again."""
        if len(self._connections) + len(self._shared) < self._most_kept:
            return
        self._connections = {key: each for key, each in self._connections.items() if each.waiting}
        self._shared = {key: lane for key, lane in self._shared.items() if lane.arrivals}
        lanes = [lane for each in self._connections.values() for lane in (each.own, each.lane)]
        self._companies = {lane.owner: lane.company for lane in lanes}
        self._most_kept = max(_MOST_IDLE, 2 * (len(self._connections) + len(self._shared)))

    def _make_ready(self, lane: Lane) -> None:
        company = lane.company
        if not company.lanes:
            self._ready.append(company)
            company.left = _TURN_BYTES
        company.lanes.append(lane)

    def end_turn(self, lane: Lane) -> None:
        """A slice of time is over: it is the next company's turn, and in this one the next lane's."""
        company = lane.company
        if company.lanes:
            company.left -= _TURN_BYTES
            if company.lanes[0] is lane:
                company.lanes.rotate(-1)

    def finish(self, lane: Lane, made: int = 0) -> None:
        """Removes the first arrival of the lane whose turn it is; it was decoded to its end, and is so much more."""
        arrivals, company = lane.arrivals, lane.company
        arrival = arrivals.popleft()
        lanes = company.lanes
        company.left -= arrival.size + made + _MESSAGE_BYTES * len(arrival.batch.messages)
        arrival.connection.waiting -= 1
        if arrivals:
            lanes.rotate(-1)
            return
        lanes.popleft()
        if not lanes:
            self._ready.popleft()

    def _drop_first(self, lane: Lane) -> None:
        arrival = lane.arrivals.popleft()
        arrival.connection.waiting -= 1
        if not lane.arrivals and not lane.is_held:
            self._unready(lane)

    def _unready(self, lane: Lane) -> None:
        company = lane.company
        company.lanes.remove(lane)  # the first, as a rule
        if not company.lanes:
            self._ready.remove(company)

    def hold(self, lane: Lane) -> None:
        """The lane has no turn until it is released: its first arrival waits for something."""
        lane.is_held = True
        self._held += 1
        self._unready(lane)

    def release(self, lane: Lane) -> None:
        """The lane has turns again."""
        lane.is_held = False
        self._held -= 1
        if lane.arrivals:
            self._make_ready(lane)

    def drop(self, arrival: Arrival) -> bool:
        """Removes an arrival that was decoded in part; whether it was there."""
        connection = arrival.connection
        if connection is None or not connection.waiting or connection.lane.arrivals[0] is not arrival:
            return False
        self._drop_first(connection.lane)
        return True
