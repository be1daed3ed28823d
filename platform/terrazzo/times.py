"""Times, which are UTC microseconds (``int``) inside the platform, read from and written as text."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta, tzinfo

DAY_US = 86_400 * 1_000_000

LATEST_US = 2**62
"""UTC microseconds later than any time that can be written as text."""

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
        raise ValueError(
            f"{text!r:.80} is not a time: expected YYYY-MM-DD HH:MM:SS, or ISO 8601 with an offset or Z"
        ) from None


def format_spaced(time_us: int, zone: tzinfo = UTC) -> str:
    """``YYYY-MM-DD HH:MM:SS`` in ``zone``, as in grid, mosaic, events and labels."""
    return to_datetime(time_us, zone).isoformat(" ", "seconds")[:19]


def format_iso(time_us: int, zone: tzinfo = UTC) -> str:
    """``YYYY-MM-DDTHH:MM:SS+hh:mm`` in ``zone``, as in statistics, calculations, retainer scripts, offline projects."""
    return to_datetime(time_us, zone).isoformat(timespec="seconds")
