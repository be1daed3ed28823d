"""Quiet hours: a time of day, in a time zone, during which a rule sends nothing."""

from __future__ import annotations

from datetime import datetime, time, timedelta, tzinfo

from terrazzo.times import from_datetime, to_datetime


def quiet_until_us(now_us: int, start: str, end: str, zone: tzinfo) -> int:
    """When the quiet hours around ``now_us`` end, in UTC microseconds; ``now_us`` itself outside them.

    Args:
        start, end: ``HH:MM``; an end that isn't later than the start is on the next day. Empty: never quiet.
    """
    if not start or not end or start == end:
        return now_us
    now = to_datetime(now_us, zone)
    begins, ends = time.fromisoformat(start), time.fromisoformat(end)
    clock = now.time().replace(tzinfo=None)
    if begins < ends:
        is_quiet, is_tomorrow = begins <= clock < ends, False
    else:
        is_quiet, is_tomorrow = clock >= begins or clock < ends, clock >= begins
    if not is_quiet:
        return now_us
    day = now.date() + timedelta(days=int(is_tomorrow))
    return max(now_us, from_datetime(datetime.combine(day, ends, zone)))
