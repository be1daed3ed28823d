"""Times, which are UTC microseconds (``int``) inside the platform, read from and written as text."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

from terrazzo.reasons import say

DAY_US = 86_400 * 1_000_000

LATEST_US = 2**62
"""UTC microseconds later than any time that can be written as text."""

_MINUTE_US = 60 * 1_000_000
_SECONDS = [f"{second:02}" for second in range(60)]
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
    minute, within_us = divmod(time_us, _MINUTE_US)
    to_minute = _to_minute(minute, zone)
    return to_minute + _SECONDS[within_us // 1_000_000] if to_minute else _spaced(time_us, zone)


@lru_cache(4_096)  # what is told at one time is mostly of a few minutes
def _to_minute(minute: int, zone: tzinfo) -> str:
    """``YYYY-MM-DD HH:MM:`` of a minute since 1970; empty where the zone's minutes begin at other times than UTC's."""
    text = _spaced(minute * _MINUTE_US, zone)
    return text[:-2] if text.endswith(":00") else ""


def _spaced(time_us: int, zone: tzinfo) -> str:
    return to_datetime(time_us, zone).isoformat(" ", "seconds")[:19]


def format_iso(time_us: int, zone: tzinfo = UTC) -> str:
    """``YYYY-MM-DDTHH:MM:SS+hh:mm`` in ``zone``, as in statistics, calculations, retainer scripts, offline projects."""
    return to_datetime(time_us, zone).isoformat(timespec="seconds")
