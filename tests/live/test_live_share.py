"""When sending gives way: as much as there is else to do, and until it is within its share."""

from __future__ import annotations

import pytest

from terrazzo.live.loop_clocks import LoopClocks
from terrazzo.live.send_budget import IDLE, MOST_S, SHARE, SLICE_S, LoopMoment, SendBudget

START = LoopMoment(wall_s=100.0, cpu_s=10.0, held_s=1.0)


class World:
    """A loop that spends ``busy`` of each second on other things, and is ``held`` for so much of it."""

    def __init__(self, *, busy: float = 0.0, held: float = 0.0, is_behind: bool = False) -> None:
        self.busy, self.held, self.is_behind = busy, held, is_behind
        self.now = START
        self.budget = SendBudget(START)

    def rest(self, seconds: float) -> None:
        wall_s, cpu_s, held_s = self.now
        self.now = LoopMoment(wall_s + seconds, cpu_s + self.busy * seconds, held_s + self.held * seconds)
        self.budget.note(self.now, is_behind=self.is_behind)

    def send(self, seconds: float = SLICE_S) -> None:
        wall_s, cpu_s, held_s = self.now
        self.now = LoopMoment(wall_s + seconds, cpu_s + seconds, held_s)
        self.budget.note(self.now, own_s=seconds, is_behind=self.is_behind)

    def sent_of(self, seconds: float) -> float:
        """What part of the time sending got that always has something to send."""
        began_s, sent_s = self.now.wall_s, 0.0
        while self.now.wall_s < began_s + seconds:
            if pause_s := self.budget.pause_s:
                self.rest(pause_s)
            else:
                self.send()
                sent_s += SLICE_S
        return sent_s / (self.now.wall_s - began_s)


def test_a_slice_has_to_be_paid_for_before_the_next() -> None:
    world = World(busy=1.0)
    assert world.budget.pause_s == 0
    world.send()
    assert world.budget.pause_s > 0


def test_beside_others_who_take_everything_it_keeps_to_its_share() -> None:
    world = World(busy=1.0)
    sent = world.sent_of(100.0)
    assert sent / (1 - sent) == pytest.approx(SHARE, rel=0.1)


def test_alone_it_gets_what_leaves_others_room() -> None:
    assert World().sent_of(10.0) == pytest.approx(IDLE / (1 + IDLE), rel=0.15)


def test_the_busier_others_are_the_less_it_gets() -> None:
    parts = [World(busy=busy).sent_of(20.0) for busy in (0.0, 0.25, 0.5, 0.75, 1.0)]
    assert parts == sorted(parts, reverse=True)


def test_while_others_work_waits_it_gets_nothing_of_the_time_that_the_loop_does() -> None:
    sent = World(busy=0.5, is_behind=True).sent_of(100.0)
    assert sent / (1 - sent) == pytest.approx(SHARE * 0.5, rel=0.1)


def test_time_when_other_processes_held_it_up_is_not_idle() -> None:
    world = World(busy=0.5, held=0.5)
    sent = world.sent_of(100.0)
    assert sent == pytest.approx(SHARE * 0.5, rel=0.1)


def test_what_it_does_not_use_is_kept_for_a_burst_of_some_slices() -> None:
    world = World()
    world.rest(60.0)
    bursts = 0
    while not world.budget.pause_s:
        world.send()
        bursts += 1
    assert bursts == pytest.approx(MOST_S / SLICE_S, abs=1)


def test_forgiven_it_may_go_on() -> None:
    world = World(busy=1.0)
    world.send(1.0)
    world.budget.forgive()
    assert world.budget.pause_s == 0


def test_clocks_only_go_forward() -> None:
    clocks = LoopClocks()
    before = clocks.now()
    sum(range(100_000))
    after = clocks.now()
    clocks.close()
    assert after.wall_s > before.wall_s
    assert after.cpu_s > before.cpu_s
    assert after.held_s >= before.held_s
    assert after.cpu_s - before.cpu_s <= after.wall_s - before.wall_s + 0.001
