"""Lengths of time and times as the language writes them; nanoseconds throughout."""

from __future__ import annotations

import re
from datetime import UTC, datetime, tzinfo
from functools import lru_cache
from typing import Literal
from zoneinfo import ZoneInfo

from terrazzo.influxql.errors import QueryError, SyntaxFault

Epoch = Literal["", "ns", "u", "ms", "s", "m", "h"]
"""In which unit times are told; empty: as text."""

_UNIT_NS = {
    "ns": 1,
    "u": 1_000,
    "us": 1_000,
    "µ": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
    "w": 604_800_000_000_000,
}
SECOND_NS = _UNIT_NS["s"]
EARLIEST_NS, LATEST_NS = -(2**63) + 2, 2**63 - 2
"""The range of times, as InfluxDB has it."""

_PART = re.compile(r"([0-9]+)(ns|us|ms|[usmhdwµ])")
_TIME = re.compile(r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{1,2}:\d{2}:\d{2})(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}:?\d{2})?", re.ASCII)
_MOST_DIGITS = 19


def parse_length(text: str) -> int:
    """Nanoseconds of ``1h30m``.

    Raises:
        SyntaxFault: it is no length, or longer than 292 years.
    """
    total, end = 0, 0
    while end < len(text):
        part = _PART.match(text, end)
        if part is None or len(part[1]) > _MOST_DIGITS:
            raise SyntaxFault("invalid duration")
        total, end = total + int(part[1]) * _UNIT_NS[part[2]], part.end()
    if not text or total > LATEST_NS:
        raise SyntaxFault("invalid duration")
    return total


def parse_moment(text: str, zone: tzinfo) -> int:
    """Nanoseconds since 1970 of a date, a date and time, or RFC 3339; ``zone`` is that of one without.

    Raises:
        QueryError: it is none.
    """
    found = _TIME.fullmatch(text)
    if found is None:
        raise QueryError(f"invalid operation: {text[:100]!r} is no time")
    date, clock, fraction, offset = found.groups()
    try:
        written = f"{date}T{(clock or '00:00:00').rjust(8, '0')}{(offset or '').replace('Z', '+00:00')}"
        moment = datetime.fromisoformat(written)
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=zone)
        since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        raise QueryError(f"invalid operation: {text[:100]!r} is no time") from None
    whole_ns = (since.days * 86_400 + since.seconds) * SECOND_NS + int((fraction or "").ljust(9, "0"))
    if not EARLIEST_NS <= whole_ns <= LATEST_NS:
        raise QueryError(f"time {text[:100]} overflows")
    return whole_ns


@lru_cache(maxsize=64)
def zone_named(name: str) -> tzinfo:
    """The zone of ``tz('Europe/Berlin')``; none is UTC.

    Raises:
        QueryError: there is none of this name.
    """
    if not name:
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise QueryError(f"unable to find time zone {name[:100]}") from None
