"""When a rule tells what waits: at once, folded, or as a digest. Pure; times in UTC microseconds."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo

from terrazzo.rules.rule import Rule
from terrazzo.times import from_datetime, to_datetime

LONGEST_WINDOWS = 5
"""So many windows are waited for the end of many that go at once."""

_HOUR = timedelta(hours=1)


def due_us(rule: Rule, *, told_us: int, first_us: int, last_us: int, zone: tzinfo) -> int:
    """When a rule tells of what waits.

    Args:
        told_us: when it told something last, 0: never.
        first_us, last_us: when the first and the last of what waits was noted.
        zone: of the times of digests.
    """
    if rule.digest != "none":
        return _digest_us(rule, first_us, zone)
    window_us = rule.window_s * 1_000_000
    after_last_us = told_us + window_us if told_us else 0
    if not rule.is_about_more:
        return after_last_us
    gathered_us = min(last_us + window_us, first_us + LONGEST_WINDOWS * window_us)
    return max(after_last_us, gathered_us)


def _digest_us(rule: Rule, first_us: int, zone: tzinfo) -> int:
    """The first hour, or time of day, after what waits was noted."""
    first = to_datetime(first_us, zone)
    if rule.digest == "hourly":
        hour_us = from_datetime(first.replace(minute=0, second=0, microsecond=0))
        return hour_us + _HOUR // timedelta(microseconds=1)
    at = time.fromisoformat(rule.digest_at)
    for days in range(3):
        found_us = from_datetime(datetime.combine(first.date() + timedelta(days=days), at, zone))
        if found_us > first_us:
            return found_us
    raise AssertionError("no time of day within three days")
