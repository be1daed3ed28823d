"""Whether there is room for what a company's terminals report, and the lanes that wait until there is.

There is none while the mapper has too much of the company that waits for the database, and while the company rests
because its bytes have made commits long for others (``disk_turns``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable

from terrazzo.ingest.arrival import Arrival
from terrazzo.ingest.backlog import Backlog
from terrazzo.ingest.commit_group import CommitGroup
from terrazzo.ingest.disk_turns import DiskTurns
from terrazzo.ingest.turns import Lane, Turns

HasRoomOf = Callable[[str], bool]
"""Whether more of a company may come."""


class Rooms:
    """What waits for room. ``has_room_of`` says whether there is some for a company; it changes, so look it up.

    Args:
        pending: whose lanes are held and released.
        has_room_of: of the mapper.
        on_released: is called after lanes have been released at the end of a rest.
    """

    def __init__(self, pending: Turns, has_room_of: HasRoomOf | None, on_released: Callable[[], None]) -> None:
        self.disk_turns = DiskTurns()
        self._mapper_has_room_of = has_room_of or _everybody
        self.has_room_of: HasRoomOf = self._mapper_has_room_of
        self._pending = pending
        self._on_released = on_released
        self._waiting: list[Lane] = []
        self._is_closing = False
        self._ends: asyncio.TimerHandle | None = None

    def has_room(self, fresh: Iterable[Arrival]) -> bool:
        """Whether there is room for the companies of all of these."""
        if self.has_room_of is _everybody:
            return True
        return all(self.has_room_of(share.owner) for share in {each.share for each in fresh})

    def have_wait(self, lane: Lane) -> None:
        """Has a lane wait until there is room for its company."""
        self._pending.hold(lane)
        lane.arrivals[0].hold()
        self._waiting.append(lane)

    def release(self) -> None:
        """Lets those lanes go on for whose companies there is room again."""
        waiting, self._waiting = self._waiting, []
        for lane in waiting:
            if self.has_room_of(lane.owner):
                self._pending.release(lane)
            else:
                self._waiting.append(lane)

    def on_commit(self, group: CommitGroup, seconds: float, taken: Backlog) -> None:
        """A commit begins whose bytes are expected to take so long."""
        if (self.disk_turns or self.disk_turns.is_long(seconds)) and len(taken) > 1 and not self._is_closing:
            now_s = time.perf_counter()
            self.disk_turns.begin(group.sizes(), seconds, taken.values(), now_s)
            self._follow(now_s)

    def on_committed(self, group: CommitGroup, seconds: float, taken: Backlog) -> None:
        """A commit took so long beyond what one takes in any case; whose bytes that was for rests."""
        if self._is_closing:
            return
        if self.disk_turns or (self.disk_turns.is_long(seconds) and len(taken) > 1):
            now_s = time.perf_counter()
            self.disk_turns.note(group.sizes(), seconds, taken.values(), now_s)
            self._follow(now_s)
            self._let_go_on()  # it may have been quicker than expected: then no rest is left, whose end would do that

    def close(self) -> None:
        """Nobody rests any more: what was taken is to be stored."""
        self._is_closing = True
        self.disk_turns.end_all()
        self._follow(time.perf_counter())
        self.release()

    def _follow(self, now_s: float) -> None:
        """Has the rests that there are end in time."""
        if self._ends is not None:
            self._ends.cancel()
            self._ends = None
        if (next_s := self.disk_turns.next_s) is None:
            self.has_room_of = self._mapper_has_room_of
            return
        self.has_room_of = self._has_room_and_does_not_rest
        self._ends = asyncio.get_running_loop().call_later(max(0.0, next_s - now_s), self._end_rests)

    def _end_rests(self) -> None:
        now_s, self._ends = time.perf_counter(), None
        self.disk_turns.end(now_s)
        self._follow(now_s)
        self._let_go_on()

    def _let_go_on(self) -> None:
        if self._waiting:
            self.release()
            self._on_released()

    def _has_room_and_does_not_rest(self, owner: str) -> bool:
        return not self.disk_turns.is_resting(owner) and self._mapper_has_room_of(owner)


def _everybody(company: str) -> bool:
    return True
