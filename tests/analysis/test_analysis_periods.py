"""Hours, days, months and years tile time in every zone, also where clocks change."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from analysis_stand import HOUR_US, at
from hypothesis import given, settings
from hypothesis import strategies as st

from terrazzo.analysis.periods import FINISHED, Calendar, PeriodType

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
    "Asia/Beirut",
    "America/Sao_Paulo",
    "Pacific/Apia",
]
CALENDARS = {name: Calendar(ZoneInfo(name)) for name in ZONES}


@settings(max_examples=150, deadline=None)
@given(zone=st.sampled_from(ZONES), time_us=st.integers(at("2000-01-01 00:00:00"), at("2037-01-01 00:00:00")))
def test_periods_contain_their_times_and_are_made_of_whole_shorter_ones(zone: str, time_us: int) -> None:
    calendar = CALENDARS[zone]
    shorter = None
    for kind in FINISHED:
        period = calendar.period(kind, time_us)
        assert period.start_us <= time_us < period.end_us
        assert calendar.period(kind, period.end_us).start_us == period.end_us
        assert calendar.period(kind, period.start_us) == period
        if shorter is not None:
            assert period.start_us <= shorter.start_us < shorter.end_us <= period.end_us
        shorter = period


@pytest.mark.parametrize(("day", "hours"), [("2026-03-29", 23), ("2026-10-25", 25), ("2026-06-01", 24)])
def test_days_on_which_clocks_change_have_23_or_25_hours(day: str, hours: int) -> None:
    calendar = CALENDARS["Europe/Berlin"]
    period = calendar.period(PeriodType.DAY, at(f"{day} 12:00:00"))
    assert period.end_us - period.start_us == hours * HOUR_US
    bounds = calendar.bounds(period.start_us, period.end_us)
    assert bounds == [period.start_us + number * HOUR_US for number in range(hours + 1)]


def test_a_day_that_a_zone_left_out_is_no_day() -> None:
    """Samoa went from 29 to 31 December 2011."""
    calendar = CALENDARS["Pacific/Apia"]
    before = calendar.period(PeriodType.DAY, at("2011-12-30 09:59:59"))
    assert calendar.describe(before.type, before.start_us) == "day 2011-12-29"
    assert calendar.describe(before.type, before.end_us) == "day 2011-12-31"


def test_periods_in_words() -> None:
    calendar, start_us = CALENDARS["Europe/Berlin"], at("2026-02-28 23:00:00")
    words = [calendar.describe(kind, start_us) for kind in (1, 2, 3, 5, 8)]
    assert words == [
        "hour 2026-03-01 00:00",
        "day 2026-03-01",
        "month 2026-03",
        "current day 2026-03-01",
        "since 2026-03-01",
    ]
