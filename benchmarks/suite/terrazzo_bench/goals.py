"""What the figures are to reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from terrazzo_bench.result import OURS, Better, Series, times_better


@dataclass(frozen=True, slots=True)
class Goal:
    """Of the median of ``name``: a bound, or so many times better than a peer where ``against`` names one."""

    name: str
    unit: str
    bound: float
    against: str = ""


GOALS = (
    Goal("ingest with mapping", "msg/s", 160_000),
    Goal("ingest with mapping", "msg/s", 10, against="Mosquitto + paho + InfluxDB"),
    Goal("ingest with mapping", "us CPU/msg", 6),
    Goal("fan-in, QoS 1, lossless", "msg/s", 3, against="Mosquitto"),
    Goal("publish to receive, QoS 1, p50", "us", 1 / 1.2, against="Mosquitto"),
    Goal("command to terminal, p50", "ms", 2),
    Goal("commands, 32 clients", "commands/s", 2_000),
    Goal("footprint: ready", "s", 1.5),
    Goal("footprint: empty", "MB", 110),
    Goal("footprint: idle connection", "KB", 1.5),
    Goal("footprint: idle CPU", "% of a core", 1),
)


@dataclass(frozen=True, slots=True)
class Judged:
    """A goal, what was found (the median, or the median of the ratios), and whether that is enough."""

    goal: Goal
    found: float
    is_met: bool


def judge(series: Sequence[Series]) -> list[Judged]:
    """The goals of which there are figures."""
    by_key = {each.key: each for each in series}
    judged = []
    for goal in GOALS:
        ours = by_key.get((goal.name, goal.unit, OURS))
        theirs = by_key.get((goal.name, goal.unit, goal.against))
        if ours is None or (goal.against and theirs is None):
            continue
        if theirs is None:
            found = ours.spread.median
            judged.append(Judged(goal, found, found >= goal.bound if _wants_more(ours) else found <= goal.bound))
        elif (ratio := times_better(ours, theirs)) is not None:
            judged.append(Judged(goal, ratio.median, ratio.median >= goal.bound))
    return judged


def _wants_more(series: Series) -> bool:
    return series.better is Better.HIGHER
