"""Which terminals stopped, floods of them, and how long the disk lasts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from terrazzo.attention.disk_watch import DiskWatch
from terrazzo.attention.terminal_census import (
    AWAY_US,
    FLOOD,
    MOST_ENTRIES,
    REFUSED_US,
    SILENT_US,
    TerminalStates,
    take_census,
)
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.times import DAY_US

NOW = 10**15


def terminal(number: int, company_id: int = 1, **more: Any) -> Terminal:
    uid = f"t{number}"
    given = {"type": "x", "mode": "pwd", "username": uid, "pin": uid, "name": uid}
    return Terminal(id=number, uid=uid, company_id=company_id, **(given | more))


class Fleet:
    """Terminals and what is known of each."""

    def __init__(self) -> None:
        self.registry = Registry()
        self.heard: dict[str, tuple[bool, int | None, int | None]] = {}
        self.ended: dict[str, tuple[str, str]] = {}
        self.refused: dict[int, tuple[int, str, str]] = {}

    def add(
        self, number: int, heard: tuple[bool, int | None, int | None], ended: tuple[str, str] = ("", ""), **more: Any
    ) -> None:
        each = terminal(number, **more)
        self.registry.put_terminal(each)
        self.heard[each.uid], self.ended[each.uid] = heard, ended

    @property
    def states(self) -> TerminalStates:
        return TerminalStates(self.heard.__getitem__, self.ended.__getitem__, self.refused.get)


async def test_the_census_says_who_stopped_and_how() -> None:
    fleet = Fleet()
    fleet.add(1, (True, NOW, NOW))
    fleet.add(2, (True, NOW, NOW - SILENT_US - 1))
    fleet.add(3, (False, NOW - AWAY_US - 1, None), ("10.0.0.1", "keep alive"))
    fleet.add(4, (False, NOW - AWAY_US, None))
    fleet.add(5, (False, None, None))  # never here: nothing stopped
    fleet.add(6, (False, NOW - DAY_US, NOW - 5))  # a router reports for it
    fleet.add(7, (False, NOW - 2 * DAY_US, None))
    fleet.refused[7] = NOW - 9, "10.0.0.2", "wrong_pin"
    fleet.add(8, (False, NOW - 3 * DAY_US, None))
    fleet.refused[8] = NOW - REFUSED_US - 1, "10.0.0.2", "wrong_pin"
    fleet.add(9, (True, NOW, NOW), is_available=False)
    fleet.add(10, (False, NOW - DAY_US, None), company_id=2)
    everybody, wanted = await take_census(fleet.registry, fleet.states, [1], NOW)
    mine = wanted[1]
    assert (mine.total, mine.online, mine.away, mine.silent, mine.refused) == (8, 2, 2, 1, 1)
    assert (everybody.total, everybody.away) == (9, 3)
    assert [each.uid for each in mine.first("away", 9)] == ["t3", "t8"]  # the latest first
    assert [each.uid for each in mine.first("silent", 9)] == ["t2"]
    assert mine.first("refused", 9)[0][:6] == (NOW - 9, "t7", "t7", "refused", "10.0.0.2", "wrong_pin")
    assert mine.floods() == []


async def test_a_flood_is_told_as_one() -> None:
    fleet = Fleet()
    for number in range(1, 2_001):
        fleet.add(number, (False, NOW - DAY_US + number, None), ("10.0.0.1", "keep alive"))
    for number in range(3_000, 3_000 + FLOOD - 1):
        fleet.add(number, (False, NOW - DAY_US, None), ("10.0.0.2", "keep alive"))
    everybody, _ = await take_census(fleet.registry, fleet.states, [], NOW)
    (flood,) = everybody.floods()
    assert (flood.site, flood.cause, flood.terminals) == ("10.0.0.1", "keep alive", 2_000)
    assert (flood.first_us, flood.last_us) == (NOW - DAY_US + 1, NOW - DAY_US + 2_000)
    assert len(flood.uids) == FLOOD
    assert everybody.away == 2_000 + FLOOD - 1
    assert len(everybody.entries) < 20 * MOST_ENTRIES + FLOOD


async def test_a_walk_over_100_000_terminals_is_cheap() -> None:
    fleet = Fleet()
    for number in range(1, 100_001):
        heard = (True, NOW, NOW) if number % 3 else (False, NOW - DAY_US, None)
        fleet.add(number, heard, (f"10.0.{number % 250}.1", "keep alive"))
    began = time.process_time()
    everybody, _ = await take_census(fleet.registry, fleet.states, [1], NOW)
    assert time.process_time() - began < 3
    assert everybody.away == 33_333


def test_days_left_are_reckoned_of_what_has_gone(tmp_path: Path) -> None:
    watch = DiskWatch(tmp_path)
    watch.note(NOW, 1_000)
    watch.note(NOW + DAY_US // 48, 999)
    assert watch.days_left() is None  # too soon
    watch.note(NOW + DAY_US, 900)
    assert watch.days_left() == 9.0
    watch.note(NOW + 2 * DAY_US, 1_000)
    assert watch.days_left() is None  # nothing grows
