"""Hours, days, months and years of a time zone. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from datetime import date, datetime, timedelta, tzinfo
from enum import IntEnum
from typing import NamedTuple

from terrazzo.times import from_datetime, to_datetime

HOUR_US = 3_600_000_000
_KEPT = 4_096  # midnights and days that are remembered


class PeriodType(IntEnum):
    """Section 2 "Statistics records": the first four are finished periods, the others run until now."""

    HOUR = 1
    DAY = 2
    MONTH = 3
    YEAR = 4
    CURRENT_DAY = 5
    CURRENT_MONTH = 6
    CURRENT_YEAR = 7
    TOTAL = 8


FINISHED = (PeriodType.HOUR, PeriodType.DAY, PeriodType.MONTH, PeriodType.YEAR)
RUNNING = {
    PeriodType.CURRENT_DAY: PeriodType.DAY,
    PeriodType.CURRENT_MONTH: PeriodType.MONTH,
    PeriodType.CURRENT_YEAR: PeriodType.YEAR,
}
"""Running periods, and what they become when they end."""

_LOOKS = {
    PeriodType.HOUR: "hour %Y-%m-%d %H:00",
    PeriodType.DAY: "day %Y-%m-%d",
    PeriodType.MONTH: "month %Y-%m",
    PeriodType.YEAR: "year %Y",
    PeriodType.CURRENT_DAY: "current day %Y-%m-%d",
    PeriodType.CURRENT_MONTH: "current month %Y-%m",
    PeriodType.CURRENT_YEAR: "current year %Y",
    PeriodType.TOTAL: "since %Y-%m-%d",
}


class Period(NamedTuple):
    """``start_us <= time_us < end_us``."""

    type: PeriodType
    start_us: int
    end_us: int


class Calendar:
    """The periods of one zone: each is made of whole shorter ones, and a day has 23, 24 or 25 hours."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self._midnights: dict[date, int] = {}
        self._hours: dict[int, tuple[int, ...]] = {}

    def period(self, kind: PeriodType, time_us: int) -> Period:
        """The hour, day, month or year that contains a time."""
        day = self._day(time_us)
        if kind is PeriodType.HOUR:
            bounds = self._bounds(day)
            place = bisect_right(bounds, time_us)
            return Period(kind, bounds[place - 1], bounds[place])
        first = day if kind is PeriodType.DAY else day.replace(day=1)
        first = first.replace(month=1) if kind is PeriodType.YEAR else first
        return Period(kind, self._midnight(first), self._midnight(_following(kind, first)))

    def bounds(self, start_us: int, end_us: int) -> list[int]:
        """The beginnings of the hours from one beginning of an hour to another, both included."""
        found: list[int] = []
        day = self._day(start_us)
        while not found or found[-1] < end_us:
            found += [each for each in self._bounds(day)[:-1] if start_us <= each <= end_us]
            day += timedelta(days=1)
            if self._midnight(day) > end_us:
                break
        return found

    def periods(self, kind: PeriodType, start_us: int, end_us: int) -> Iterator[Period]:
        """The periods that meet a range, in order."""
        while start_us < end_us:
            period = self.period(kind, start_us)
            yield period
            start_us = period.end_us

    def describe(self, kind: int, start_us: int) -> str:
        """``hour 2026-03-01 08:00``, ``day 2026-03-01``, ``current month 2026-03``."""
        return to_datetime(start_us, self.zone).strftime(_LOOKS[PeriodType(kind)])

    def _day(self, time_us: int) -> date:
        """Clocks that are set back over midnight show a date twice: the day counts from its first midnight."""
        day = to_datetime(time_us, self.zone).date()
        while self._midnight(day) > time_us:
            day -= timedelta(days=1)
        while self._midnight(day + timedelta(days=1)) <= time_us:
            day += timedelta(days=1)
        return day

    def _midnight(self, day: date) -> int:
        found = self._midnights.get(day)
        if found is None:
            if len(self._midnights) >= _KEPT:
                self._midnights.clear()
            found = from_datetime(datetime(day.year, day.month, day.day, tzinfo=self.zone))
            self._midnights[day] = found
        return found

    def _bounds(self, day: date) -> tuple[int, ...]:
        """The beginnings of a day's hours, and of the next day."""
        start_us, end_us = self._midnight(day), self._midnight(day + timedelta(days=1))
        found = self._hours.get(start_us)
        if found is None:
            if len(self._hours) >= _KEPT:
                self._hours.clear()
            found = self._hours[start_us] = (*self._split(start_us, end_us), end_us)
        return found

    def _split(self, start_us: int, end_us: int) -> Iterator[int]:
        while start_us < end_us:
            yield start_us
            local = to_datetime(start_us, self.zone)
            past_us = (local.minute * 60 + local.second) * 1_000_000 + local.microsecond
            start_us += HOUR_US - past_us


def _following(kind: PeriodType, first: date) -> date:
    if kind is PeriodType.DAY:
        return first + timedelta(days=1)
    if kind is PeriodType.MONTH:
        return (first + timedelta(days=31)).replace(day=1)
    return first.replace(year=first.year + 1)
