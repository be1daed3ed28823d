"""What a front tells the leader waits while the log takes nothing: it is bounded, and costs no more for being much."""

from __future__ import annotations

import time
from typing import Any

from terrazzo.embedded.front_log import FrontLog, FrontLogStats
from terrazzo.replication.front_events import Connected, Disconnected, Fate, FrontEvent, RollBegins, RollEnds
from terrazzo.replication.in_frame import decode_in_frame

MANY = 20_000  # events; from then on all terminals are named instead


class Log:
    """Takes frames."""

    most_bytes = 1 << 20

    def __init__(self) -> None:
        self.bodies: list[bytes] = []

    async def publish(self, body: bytes, *, message_id: str, last: int | None) -> int:
        self.bodies.append(body)
        return len(self.bodies)

    def events(self) -> list[FrontEvent]:
        found = [event for body in self.bodies for event in decode_in_frame(body).frame.events]
        self.bodies.clear()
        return found


def front_log(log: Any) -> FrontLog:
    return FrontLog(log, node="f", epoch=1, stats=FrontLogStats(), is_held=lambda: True)


def connected(uid: str) -> Connected:
    return Connected(uid, 1, 1, "10.0.0.7", 4711, 5, "tcp", uid, 60)


async def test_while_much_waits_each_event_costs_the_same() -> None:
    log = Log()
    front = front_log(log)
    front.call_roll = lambda: [connected("t1")]
    fates = [Fate(f"t{number}", b"c", "delivered") for number in range(MANY)]
    for fate in fates:
        front.tell(fate)
    began_s = time.process_time()
    for number in range(MANY):
        front.tell(connected(f"t{number}"))
        front.tell(Disconnected(f"t{number}", 1, "it went", 1, 0))
    assert time.process_time() - began_s < 1.0
    await front.flush()
    assert log.events() == [*fates, RollBegins(), connected("t1"), RollEnds()]


async def test_beyond_the_bound_fates_stay_and_all_terminals_are_named() -> None:
    log = Log()
    front = front_log(log)
    front.call_roll = lambda: [connected("t2")]
    fate, late = Fate("t1", b"c", "lost"), Fate("t1", b"d", "lost")
    front.tell(fate)
    for _ in range(MANY + 10):
        front.tell(connected("t1"))
    front.tell(late)
    await front.flush()
    assert log.events() == [fate, late, RollBegins(), connected("t2"), RollEnds()]
    front.tell(connected("t3"))
    await front.flush()
    assert log.events() == [connected("t3")], "from then on each is told again"
