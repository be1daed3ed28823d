"""Times, which are UTC microseconds (``int``) inside the platform, read from and written as text."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from terrazzo.reasons import say

DAY_US = 86_400 * 1_000_000

LATEST_US = 2**62
"""UTC microseconds later than any time that can be written as text."""

_QUARTER_US = 15 * 60 * 1_000_000
_OF_HOUR = [f"{second // 60:02}:{second % 60:02}" for second in range(3_600)]
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_SPACED = re.compile(r"\d{4}-\d{2}-\d{2} \d{2}:\d{2}:\d{2}(\.\d{1,6})?")


def now_us() -> int:
    """UTC microseconds now."""
    return time.time_ns() // 1000


def from_datetime(moment: datetime) -> int:
    """UTC microseconds of an aware datetime."""
    return (moment - _EPOCH) // _MICROSECOND


def to_datetime(time_us: int, zone: tzinfo = UTC) -> datetime:
    """An aware datetime in ``zone``."""
    return (_EPOCH + timedelta(microseconds=time_us)).astimezone(zone)


def parse_time(text: str, zone: tzinfo = UTC) -> int:
    """UTC microseconds of ``YYYY-MM-DD HH:MM:SS`` in ``zone``, or of ISO 8601 with an offset or ``Z``.

    Raises:
        ValueError: any other text; the message says what is expected.
    """
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo is None:
            if not _SPACED.fullmatch(text):
                raise ValueError(text)
            moment = moment.replace(tzinfo=zone)
        return from_datetime(moment)
    except (ValueError, OverflowError):
        raise ValueError(say("no_time", got=text)) from None


def format_spaced(time_us: int, zone: tzinfo = UTC) -> str:
    """``YYYY-MM-DD HH:MM:SS`` in ``zone``, as in grid, mosaic, events and labels."""
    to_hour, first = _quarter(time_us // _QUARTER_US, zone)
    return to_hour + _OF_HOUR[first + time_us % _QUARTER_US // 1_000_000] if to_hour else _spaced(time_us, zone)


def format_spaced_each(times_us: Iterable[int], zone: tzinfo = UTC) -> list[str]:
    """``format_spaced`` of many times in order, in a fraction of the time."""
    texts: list[str] = []
    begin_us = end_us = first = 0
    to_hour = ""
    for time_us in times_us:
        if not begin_us <= time_us < end_us:
            begin_us = time_us - time_us % _QUARTER_US
            end_us = begin_us + _QUARTER_US
            to_hour, first = _quarter(begin_us // _QUARTER_US, zone)
        second = first + (time_us - begin_us) // 1_000_000
        texts.append(to_hour + _OF_HOUR[second] if to_hour else _spaced(time_us, zone))
    return texts


@lru_cache(4_096)  # what is told at one time is mostly of a few days
def _quarter(number: int, zone: tzinfo) -> tuple[str, int]:
    """``YYYY-MM-DD HH:`` of a quarter of an hour since 1970, and at which second of the hour it begins.

    Empty text where it is in two hours of the zone, or its clocks change meanwhile.
    """
    begin_us = number * _QUARTER_US
    text, last = _spaced(begin_us, zone), _spaced(begin_us + _QUARTER_US - 1, zone)
    first = 60 * int(text[14:16]) + int(text[17:19])
    is_even = text[:14] == last[:14] and 60 * int(last[14:16]) + int(last[17:19]) - first == 899
    return (text[:14], first) if is_even else ("", 0)


def _spaced(time_us: int, zone: tzinfo) -> str:
    return to_datetime(time_us, zone).isoformat(" ", "seconds")[:19]


def format_iso(time_us: int, zone: tzinfo = UTC) -> str:
    """``YYYY-MM-DDTHH:MM:SS+hh:mm`` in ``zone``, as in statistics, calculations, retainer scripts, offline projects."""
    return to_datetime(time_us, zone).isoformat(timespec="seconds")
