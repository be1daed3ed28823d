"""Compares what was heard from two brokers, and puts down each difference to one that is known, or to none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from differential_known import ALLOWED, EXPLAINED, Moment
from differential_line import Event
from differential_play import Heard
from differential_steps import Step


@dataclass
class Compared:
    """``steps`` that were compared; how often each known difference was met; the first one that is not known."""

    steps: int = 0
    known: Counter[str] = field(default_factory=Counter)
    unknown: Moment | None = None


def compare(peer: str, steps: Sequence[Step], ours: Heard, theirs: Heard) -> Compared:
    """Step by step, up to the first difference after which the brokers' states may have parted."""
    found = Compared()
    for number, (own, other) in enumerate(zip(ours, theirs, strict=True)):
        found.steps += 1
        parted = False
        for who in sorted({*own, *other}):
            moment = Moment(peer, steps[: number + 1], who, own.get(who, []), other.get(who, []))
            name = _settled(moment, found.known)
            if name is None:
                found.unknown = moment
                return found
            if name:
                found.known[name] += 1
                parted = True
        if parted:
            return found
    return found


def _settled(moment: Moment, known: Counter[str]) -> str | None:
    """The known difference that explains this one; empty where there is none, None where none is known."""
    for name, without in ALLOWED.items():
        if moment.ours == moment.theirs:
            return ""
        ours, theirs = without(moment)
        if (ours, theirs) != (moment.ours, moment.theirs):
            known[name] += 1
            moment = moment.heard_as(ours, theirs)
    if moment.ours == moment.theirs:
        return ""
    return next((name for name, explains in EXPLAINED.items() if explains(moment)), None)


def shown(moment: Moment) -> str:
    """The steps, and what each broker said to the client in question."""
    return "\n".join(
        [
            *(f"  {step}" for step in moment.steps),
            f"to {moment.who}, ours:",
            *_lines(moment.ours),
            f"to {moment.who}, {moment.peer}:",
            *_lines(moment.theirs),
        ]
    )


def _lines(events: Sequence[Event]) -> list[str]:
    return [f"  {' '.join(str(part) for part in event)}" for event in events] or ["  nothing"]
