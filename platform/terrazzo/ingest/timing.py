"""The time of a record: the terminal's ``Time`` where it gives a sound one, else the time of arrival."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from terrazzo.domain.payload import Reject, RejectKind
from terrazzo.reasons import say
from terrazzo.times import from_datetime

YEAR_2000_US = 946_684_800_000_000  # a clock that says earlier than this was never set
CLOCK_UNSET = -1

_MILLISECONDS_FROM = 100_000_000_000  # as seconds the year 5138, as milliseconds 1973
_LATEST_MS = 253_402_300_799_999  # the end of the year 9999


def record_time(stamp: Any, *, latest_us: int) -> int:
    """UTC microseconds of a payload's ``Time``, or ``CLOCK_UNSET`` for a time before the year 2000.

    Args:
        stamp: ISO 8601 text (without an offset: UTC), or epoch seconds or milliseconds, told apart by magnitude.
        latest_us: the latest time that is accepted.

    Raises:
        Reject: the stamp cannot be read, or is later than ``latest_us``.
    """
    time_us = _parse_text(stamp) if type(stamp) is str else _parse_number(stamp)
    if time_us < YEAR_2000_US:
        return CLOCK_UNSET
    if time_us > latest_us:
        ahead_s = (time_us - latest_us) / 1e6
        raise Reject(RejectKind.CLOCK_AHEAD, say("time_too_far_ahead", got=str(stamp)[:40], seconds=ahead_s))
    return time_us


def _parse_text(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text.strip())
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=UTC)
        return from_datetime(moment)
    except (ValueError, OverflowError):
        raise _unreadable(text) from None


def _parse_number(number: Any) -> int:
    if type(number) is not int and type(number) is not float:
        raise _unreadable(number)
    if abs(number) > _LATEST_MS:
        raise _unreadable(number)
    if abs(number) >= _MILLISECONDS_FROM:
        return round(number * 1_000)
    return round(number * 1_000_000)


def _unreadable(stamp: Any) -> Reject:
    shown = repr(stamp) if isinstance(stamp, str | int | float | bool) else type(stamp).__name__
    return Reject(RejectKind.TIME, say("time_no_stamp", got=shown[:40]))
