"""Back pressure: publishers are read more slowly while a subscriber that they feed is behind and takes what it is sent.

It is bounded: no publisher waits longer than ``MOST_HOLD_S`` at a time, no subscriber keeps others waiting longer than
``BUDGET_S`` in a row and a tenth of the time after that, and none that takes less than ``LEAST_TAKEN_BYTES`` between
``STALL_LOOKS`` looks. Publishers and subscribers of different owners never wait for each other. Whoever publishes
little, less than ``SMALL_READ_BYTES`` at a time, doesn't wait either. What then finds no room is dropped, as ever.

No I/O: connections are asked how much they have taken, and held and released; the time is passed in or asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Protocol

from ..connection_state import ReadHold
from ..hooks import Client
from ..stats import Stats

TICK_S = 0.05
STALL_LOOKS = 5  # looks, not time: a loop that is late itself must not take a subscriber for stalled
LEAST_TAKEN_BYTES = 16 << 10
MOST_HOLD_S = 1.0  # of one publisher at a time
BUDGET_S = 10.0  # of one subscriber; it comes back at a tenth of the time
REFILL = 0.1
SMALL_READ_BYTES = 4 << 10
LARGE_READ_BYTES = 32 << 10  # who reads so much at once may bring much more in the same turn of the loop
MOST_LARGE = 1_024
READ_BYTES = 256 << 10  # what a publisher may send at once when it is read again
_HIGH, _LOW = 4, 8  # parts of ``queued_bytes``


class HeldPublisher(Protocol):
    """The connection of a publisher."""

    client: Client | None

    def feeds(self, subscriber: SlowSubscriber) -> bool:
        """Whether messages of this publisher go to the subscriber."""
        ...

    def hold(self, why: int) -> None:
        """Adds a reason for not reading from the socket."""

    def release(self, why: int) -> None:
        """Removes a reason for not reading; reads again when none is left."""


class SlowSubscriber(Protocol):
    """The connection of a subscriber."""

    client: Client | None
    out_bytes: int  # that wait

    @property
    def taken_bytes(self) -> int:
        """Bytes that the peer's system has taken since the start."""
        ...

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        ...


class _Behind:
    """One subscriber that is behind, and the publishers that wait for it, the first to be read again first."""

    __slots__ = ("budget_s", "held", "is_stalled", "looks", "mark_bytes", "seen_s", "subscriber")

    def __init__(self, subscriber: SlowSubscriber, now_s: float) -> None:
        self.subscriber = subscriber
        self.held: deque[tuple[HeldPublisher, float]] = deque()
        self.budget_s = BUDGET_S
        self.mark_bytes = subscriber.taken_bytes
        self.looks = 0  # since the mark
        self.seen_s = now_s
        self.is_stalled = False

    def look(self, now_s: float) -> None:
        """Notes whether the subscriber takes what it is sent, and how long others have waited for it."""
        passed_s, self.seen_s = now_s - self.seen_s, now_s
        self.budget_s = min(BUDGET_S, self.budget_s + (-passed_s if self.held else passed_s * REFILL))
        taken = self.subscriber.taken_bytes
        self.looks += 1
        if taken - self.mark_bytes >= LEAST_TAKEN_BYTES:
            self.mark_bytes, self.looks, self.is_stalled = taken, 0, False
        elif self.looks >= STALL_LOOKS:
            self.mark_bytes, self.looks, self.is_stalled = taken, 0, True

    def may_hold(self, publisher: HeldPublisher) -> bool:
        """Whether a publisher that feeds it may wait for it."""
        client, other = self.subscriber.client, publisher.client
        is_own = client is not None and other is not None and client.owner == other.owner
        return is_own and not self.is_stalled and self.budget_s > 0

    def release(self, count: int) -> None:
        """Has the first ``count`` publishers read again."""
        for _ in range(min(count, len(self.held))):
            self.held.popleft()[0].release(ReadHold.SUBSCRIBER)

    def release_overdue(self, now_s: float) -> None:
        """Has those read again that have waited long enough."""
        while self.held and now_s - self.held[0][1] >= MOST_HOLD_S:
            self.release(1)


class BackPressure:
    """The subscribers of one broker that are behind.

    Args:
        queued_bytes: what may wait for one subscriber.
        clock: monotonic seconds.
        call_later: has a function called after some seconds.
    """

    def __init__(
        self,
        queued_bytes: int,
        stats: Stats,
        clock: Callable[[], float],
        call_later: Callable[[float, Callable[[], None]], object],
    ) -> None:
        self.high_bytes = queued_bytes // _HIGH
        self.fed: set[SlowSubscriber] = set()  # beyond ``high_bytes`` by the read that is handled now
        self._large: set[HeldPublisher] = set()  # who had a large read of late
        self._low_bytes = queued_bytes // _LOW
        self._stats = stats
        self._clock = clock
        self._call_later = call_later
        self._behind: dict[SlowSubscriber, _Behind] = {}

    @property
    def is_idle(self) -> bool:
        """Whether nobody waits for anybody."""
        return not self._behind

    def settle(self, publisher: HeldPublisher, read_bytes: int) -> None:
        """Ends the handling of a read, which has brought ``fed`` beyond the mark: its publisher may have to wait."""
        fed, self.fed = self.fed, set()
        if read_bytes < SMALL_READ_BYTES:
            return
        now_s = self._clock()
        for subscriber in fed:
            behind = self._of(subscriber, now_s)
            is_first = not behind.held
            if self._hold(behind, publisher, now_s):
                self._large.discard(publisher)
                if is_first:  # the others would bring as much in this turn of the loop
                    self._hold_large(behind, now_s)
                return

    def note_large(self, publisher: HeldPublisher) -> None:
        """A publisher has had a read of ``LARGE_READ_BYTES`` or more."""
        if len(self._large) >= MOST_LARGE:
            self._large.clear()
        self._large.add(publisher)

    def _hold_large(self, behind: _Behind, now_s: float) -> None:
        large, self._large = self._large, set()
        for each in large:
            if not (each.feeds(behind.subscriber) and self._hold(behind, each, now_s)):
                self._large.add(each)

    def _hold(self, behind: _Behind, publisher: HeldPublisher, now_s: float) -> bool:
        if not behind.may_hold(publisher):
            return False
        behind.held.append((publisher, now_s))
        publisher.hold(ReadHold.SUBSCRIBER)
        self._stats.publishers_slowed += 1
        return True

    def _of(self, subscriber: SlowSubscriber, now_s: float) -> _Behind:
        found = self._behind.get(subscriber)
        if found is None:
            if not self._behind:
                self._call_later(TICK_S, self._tick)
            found = self._behind[subscriber] = _Behind(subscriber, now_s)
        return found

    def on_taken(self, subscriber: SlowSubscriber) -> None:
        """The subscriber has taken what it was sent: some of those that wait for it are read again."""
        behind = self._behind.get(subscriber)
        if behind is not None:
            self._let_in(behind)

    def _let_in(self, behind: _Behind) -> None:
        """Has as many publishers read again as there is room for."""
        waiting = behind.subscriber.out_bytes
        if waiting <= self._low_bytes:
            behind.release(max(1, (self.high_bytes - waiting) // READ_BYTES))

    def _tick(self) -> None:
        now_s = self._clock()
        for behind in list(self._behind.values()):
            self._look_at(behind, now_s)
        if self._behind:
            self._call_later(TICK_S, self._tick)

    def _look_at(self, behind: _Behind, now_s: float) -> None:
        behind.look(now_s)
        is_over = behind.subscriber.is_closed
        if is_over or behind.is_stalled or behind.budget_s <= 0:
            behind.release(len(behind.held))
        behind.release_overdue(now_s)
        self._let_in(behind)
        has_caught_up = behind.subscriber.out_bytes <= self._low_bytes and behind.budget_s >= BUDGET_S
        if is_over or (has_caught_up and not behind.held):
            del self._behind[behind.subscriber]
