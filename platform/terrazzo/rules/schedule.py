"""Times of day at which a rule gives its command, by weekdays, in the platform's time zone. Pure.

Where the clock is put forward over a time, it comes when the clock is past it; where it is put back, the first of two
counts: each run is one, on days of 23 and 25 hours too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta, tzinfo
from typing import Any, NamedTuple

from terrazzo.metadata.definitions.rules import DAYS
from terrazzo.times import from_datetime, to_datetime

_WEEK = 8  # days ahead, of which one has each weekday whatever the zone's offset


class Run(NamedTuple):
    """A time of day, on some weekdays (0: Monday)."""

    at: time
    days: frozenset[int]


def runs_of(schedule: Iterable[Mapping[str, Any]]) -> tuple[Run, ...]:
    """The runs of a schedule as a record has it."""
    return tuple(
        Run(time.fromisoformat(each["at"]), frozenset(DAYS.index(day) for day in each.get("days") or DAYS))
        for each in schedule
    )


def next_run_us(runs: Sequence[Run], after_us: int, zone: tzinfo) -> int | None:
    """The first run after a time, both in UTC microseconds; None where there are no runs."""
    first = to_datetime(after_us, zone).date() - timedelta(days=1)
    days = (first + timedelta(days=number) for number in range(_WEEK + 2))
    return min((each for day in days for each in _on(runs, day, zone) if each > after_us), default=None)


def runs_between(runs: Sequence[Run], after_us: int, until_us: int, zone: tzinfo, most: int) -> list[int]:
    """The runs after a time and until another one (UTC microseconds), in order, as many as ``most``."""
    found: list[int] = []
    next_us = next_run_us(runs, after_us, zone)
    while next_us is not None and next_us <= until_us and len(found) < most:
        found.append(next_us)
        next_us = next_run_us(runs, next_us, zone)
    return found


def _on(runs: Sequence[Run], day: date, zone: tzinfo) -> Iterator[int]:
    for run in runs:
        if day.weekday() in run.days:
            yield from_datetime(datetime.combine(day, run.at, zone))
