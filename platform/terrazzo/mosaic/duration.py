"""Lengths of time as requests write them."""

from __future__ import annotations

import re
from decimal import Decimal

import msgspec

from terrazzo.reasons import say

LEAST_US = 1_000
MOST_US = 3_660 * 86_400 * 1_000_000

_SHAPE = re.compile(r"(\d{1,12}(?:\.\d{1,6})?)\s*([smhd]?)", re.ASCII)
_UNIT_US = {"": 1_000_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}


class _AsJson:
    """A value that is told as whoever sent it wrote it."""

    def __init__(self, value: object) -> None:
        self._text = msgspec.json.encode(value).decode()

    def __repr__(self) -> str:
        return self._text


def parse_duration(value: object) -> int:
    """Microseconds of seconds (``60``, ``"60"``), or of a number with a unit: ``30s``, ``5m``, ``1.5h``, ``1d``.

    Raises:
        ValueError: another form, or not from a millisecond to ten years.
    """
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    match = _SHAPE.fullmatch(text.strip().lower()) if isinstance(text, str) else None
    if match is None:
        raise ValueError(say("no_duration", got=value if isinstance(value, str) else _AsJson(value)))
    length_us = int(Decimal(match[1]) * _UNIT_US[match[2]])
    if not LEAST_US <= length_us <= MOST_US:
        raise ValueError(say("duration_out_of_range", got=value))
    return length_us
