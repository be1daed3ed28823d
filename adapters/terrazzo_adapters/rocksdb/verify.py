"""Reads all segments of a store that nobody needs to have open, and says which can't be read."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rocksdict import AccessType, Options, Rdict

from terrazzo_adapters.keyvalue.database import translated_errors
from terrazzo_adapters.keyvalue.walk import ascending
from terrazzo_adapters.rocksdb.extents import Extent, PartReader, extents_up
from terrazzo_adapters.rocksdb.keys import LATEST_US, parse_number

_MOST_NAMED = 20


def verify_segments(folder: Path, *, most_s: float) -> tuple[int, list[str]]:
    """Reads the segments of the store in ``folder``, which nobody has open, for at most ``most_s`` seconds.

    Returns:
        How many were read, and a line for each of the first that can't be.

    Raises:
        StoreUnavailable: it can't be opened.
    """
    until_s = time.monotonic() + most_s
    checked, damaged = 0, list[str]()
    with translated_errors(folder, "time-series store"):
        rdict = Rdict(str(folder), Options(raw_mode=True), access_type=AccessType.read_only())
        try:
            for name, extent in _segments(rdict):
                if time.monotonic() > until_s or len(damaged) >= _MOST_NAMED:
                    break
                checked += 1
                if reason := _damage(rdict, extent):
                    first, last = (_time(each) for each in (extent.first_us, extent.last_us))
                    damaged.append(f"{name} from {first} to {last}: {reason}")
        finally:
            rdict.close()
    return checked, damaged


def _segments(rdict: Rdict) -> Iterator[tuple[str, Extent]]:
    for key, value in ascending(rdict, b"n", b"o"):
        for extent in extents_up(rdict, parse_number(value), 0, LATEST_US):
            yield key[1:].decode(), extent


def _damage(rdict: Rdict, extent: Extent) -> str:
    """Why a segment can't be read; empty if it can."""
    from terrazzo_adapters.segments import Segment, SegmentDamaged  # its libraries are heavy

    try:
        segment = Segment(PartReader(rdict, extent))
        if len(segment.bodies(0, segment.count)) != len(segment.times_us):
            return "counts that don't fit"
        for name in segment.names:
            segment.rollup(name)
    except SegmentDamaged as error:
        return str(error)
    return ""


def _time(time_us: int) -> str:
    """A time as operators read it; beyond the calendar as microseconds."""
    try:
        return datetime.fromtimestamp(time_us / 1_000_000, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError):
        return str(time_us)
