"""What a run of several nodes leaves behind: what terminals did and were told, what each replica has, what the database
says. Plain values, from which ``cluster_checker`` finds what is wrong."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Report(NamedTuple):
    """One publish as its payload names it: the connection of its terminal, and the number of what it says."""

    connection: int
    number: int


@dataclass(slots=True)
class Published:
    """A publish as its terminal knows it. Moments are counted over the whole run: of two, the later one is larger."""

    report: Report
    sent: int
    acknowledged: int | None = None


class Stored(NamedTuple):
    """A publish as a replica has it; ``time_us``: under which it is stored."""

    report: Report
    time_us: int


@dataclass(slots=True)
class Replica:
    """What one node's store has, once it has read the log to its end."""

    reports: dict[str, list[Stored]]  # by terminal, in the store's order
    checksums: dict[str, str]  # of each series, and of the notes


class LogFrame(NamedTuple):
    """A frame of the nodes' log."""

    sequence: int
    epoch: int


class LabelSpan(NamedTuple):
    """A label: when it was opened, and closed (None: it is open)."""

    opened_us: int
    closed_us: int | None


@dataclass(slots=True)
class CommandRecord:
    """A command as the platform told of it: its terminal, and each state that was seen, with the moment."""

    uid: str
    states: list[tuple[int, str]] = field(default_factory=list)
    rows: int = 0  # in the journal at the end


@dataclass(slots=True)
class Taken:
    """A command as its terminal knows it: the moments at which it came, and those of its PUBACKs."""

    came: list[int] = field(default_factory=list)
    acknowledged: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Evidence:
    """All of it."""

    published: dict[str, list[Published]]  # by terminal, in the order of sending
    replicas: dict[str, Replica]  # by node
    frames: list[LogFrame]
    logged: dict[str, list[Stored]]  # by terminal, in the order of the log
    events: dict[str, list[int]]  # by terminal: their times
    labels: dict[str, list[LabelSpan]]
    given: dict[str, str] = field(default_factory=dict)  # commands that the platform has certainly taken: terminal
    commands: dict[str, CommandRecord] = field(default_factory=dict)  # by value, as the journal has them
    taken: dict[str, Taken] = field(default_factory=dict)  # by value, as terminals have them


# What terminals say, so that events and labels follow from it.

HOT_AT = 25  # of each 50 reports, from which on it is hot
RUNS_AT = 100  # it runs for so many reports, then stands for as many


def points(number: int) -> dict[str, int]:
    """The points of a report with this number."""
    return {"T": 90 if number % 50 >= HOT_AT else 10, "RUN": (number // RUNS_AT) % 2}


def expected_effects(stored: list[Stored]) -> tuple[list[int], list[LabelSpan]]:
    """The events and labels that follow from a terminal's reports in this order: an event where it gets hot, a label
    while it runs. One that is older than what stands before it changes neither (docs/mapping.md, late messages): so are
    those that a front had read and the log took only when their terminal was at another front."""
    events: list[int] = []
    labels: list[LabelSpan] = []
    is_hot = False
    newest_us = 0
    for each in stored:
        if each.time_us < newest_us:
            continue
        newest_us = each.time_us
        said = points(each.report.number)
        if said["T"] > 80 and not is_hot:
            events.append(each.time_us)
        is_hot = said["T"] > 80
        is_open = bool(labels) and labels[-1].closed_us is None
        if said["RUN"] and not is_open:
            labels.append(LabelSpan(each.time_us, None))
        elif not said["RUN"] and is_open:
            labels[-1] = LabelSpan(labels[-1].opened_us, each.time_us)
    return events, labels
