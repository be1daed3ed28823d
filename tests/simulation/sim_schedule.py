"""What happens in a run: steps with their times, made of a seed; and the shortest of them that still fail."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

TERMINALS = ("s1", "s2")
_KINDS = {
    "report": 34,  # terminal, QoS, points
    "burst": 5,  # terminal, QoS, how many
    "alarm": 12,  # terminal: a value that raises an event
    "retain": 6,  # terminal: a retained message
    "command": 10,  # terminal
    "cut": 6,  # client: both sides lose the connection
    "takeover": 5,  # client: it alone does
    "stall": 3,  # client, seconds
    "leave": 3,  # client, seconds
    "crash": 9,  # seconds until it starts again
    "restart": 1,
    "slow disk": 6,  # seconds
    "full disk": 2,  # seconds
    "clock": 1,  # seconds, forwards or back
}


class Step(NamedTuple):
    """``after_s`` the one before, ``kind`` happens to ``who``; ``value``: seconds, a QoS, a number."""

    after_s: float
    kind: str
    who: str
    value: float

    def __str__(self) -> str:
        return f"{self.after_s:7.3f} s  {self.kind} {self.who} {self.value:g}".rstrip()


def schedule(seed: str, length: int) -> list[Step]:
    """The steps of a seed."""
    chance = random.Random(f"schedule {seed}")
    return [_step(chance) for _ in range(length)]


def _step(chance: random.Random) -> Step:
    (kind,) = chance.choices(list(_KINDS), list(_KINDS.values()))
    who = chance.choice(TERMINALS)
    after_s = chance.choice((0.0, 0.002, 0.02, 0.05, 0.1, 0.5))
    if kind in ("cut", "takeover", "stall", "leave"):
        who = chance.choice((*TERMINALS, "watcher"))
    if kind == "report":
        value = float(chance.choice((1, 1, 1, 2, 2)))
    elif kind == "clock":
        value = float(chance.choice((-3_600, -2, 2, 3_600)))
    elif kind == "burst":
        value = float(chance.randint(3, 12))
    else:
        value = round(chance.uniform(0.1, 6.0), 2)
    return Step(after_s, kind, who, value)


def shortest(steps: Sequence[Step], fails: Callable[[Sequence[Step]], bool], *, most_runs: int) -> list[Step]:
    """The fewest steps that still fail, as far as leaving out runs of them gets within ``most_runs``."""
    kept, size, runs = list(steps), max(1, len(steps) // 2), 0
    while size and runs < most_runs:
        at, removed = 0, False
        while at < len(kept) and runs < most_runs:
            fewer = kept[:at] + kept[at + size :]
            runs += 1
            if fails(fewer):
                kept, removed = fewer, True
            else:
                at += size
        if size > 1 or not removed:
            size //= 2
    return kept
