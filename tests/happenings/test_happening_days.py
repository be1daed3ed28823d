"""Days and elapsed times."""

from __future__ import annotations

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.domain.calendar_days import MOST_DAYS, last_days
from terrazzo.domain.event_records import format_elapsed
from terrazzo.times import parse_time

ZONES = [UTC, ZoneInfo("Asia/Shanghai"), ZoneInfo("Europe/Berlin"), ZoneInfo("Australia/Lord_Howe")]


def test_the_days_end_with_today() -> None:
    days = last_days(3, now_us=parse_time("2026-03-01 08:00:00"), zone=UTC)
    assert days.names == ("02/27", "02/28", "03/01")
    assert days.starts_us[0] == parse_time("2026-02-27 00:00:00")
    assert days.end_us == parse_time("2026-03-02 00:00:00")


def test_a_day_is_the_zones() -> None:
    zone = ZoneInfo("Asia/Shanghai")
    days = last_days(2, now_us=parse_time("2026-03-01 17:00:00"), zone=zone)
    assert days.names == ("03/01", "03/02")
    assert days.place(parse_time("2026-03-01 15:59:59")) == 0
    assert days.place(parse_time("2026-03-01 16:00:00")) == 1


def test_a_day_may_have_23_hours() -> None:
    days = last_days(2, now_us=parse_time("2026-03-30 08:00:00"), zone=ZoneInfo("Europe/Berlin"))
    assert days.starts_us[1] - days.starts_us[0] == 23 * 3_600_000_000


@given(
    count=st.integers(1, MOST_DAYS),
    now_us=st.integers(parse_time("2000-01-01 00:00:00"), parse_time("2100-01-01 00:00:00")),
    zone=st.sampled_from(ZONES),
)
def test_every_name_stands_for_one_day(count: int, now_us: int, zone: ZoneInfo) -> None:
    days = last_days(count, now_us=now_us, zone=zone)
    assert len(set(days.names)) == len(days.starts_us) == count
    assert list(days.starts_us) == sorted(set(days.starts_us))
    assert days.place(now_us) == count - 1
    assert now_us < days.end_us


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00:00"), (59.9, "0:00:59"), (3723, "1:02:03"), (90_000, "25:00:00"), (-5, "0:00:00")],
)
def test_elapsed(seconds: float, text: str) -> None:
    assert format_elapsed(int(seconds * 1_000_000)) == text
