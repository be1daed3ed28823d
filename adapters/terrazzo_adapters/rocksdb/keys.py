"""The keys and values on disk: ten kinds, told apart by the first byte of the key.

=====================================================  ========================================
``r`` series id (4) time_us (8) arrival number (8)     the record's body
the same and one byte, ``01``                          several records: a block (``blocks.py``)
``c`` series id (4) UTC hour since 1970 (4)            how many ``r`` records the series has in it (8)
``s`` series id (4) time_us of its last record (8)     a segment: where it begins, what it holds (``extents.py``)
``p`` the same and a name                              a part of that segment (``terrazzo_adapters.segments``)
``n`` name, UTF-8                                      series id (4)
``t`` name, UTF-8                                      a note (``keyvalue.notes``)
``k`` series id (4) UTC hour (4)                       which names the hour's records carry
``v`` series id (4) UTC hour (4) name, UTF-8           one name's points in the hour: a column
``d`` series id (4) UTC hour (4)                       empty: ``k`` and ``v`` have to be made again
``m`` ``arrival`` or ``check``                         the last arrival number (8), a probe
=====================================================  ========================================

A record is in ``r`` until it is sealed, and then in a segment. The segments of a series have no time in common; what
arrives later and lies in one's range is in ``r``, and has a higher arrival number than the segment's of that time.

All numbers are big-endian, so that the order of keys is the order of (series, time, arrival). Lengths are in bytes.

``k`` and ``v`` exist for mosaic series only and are written later; ``k`` holds the value that ``c`` had, and both are
valid as long as ``c`` has that value. Whatever removes records, retention or a replacement, removes them too.
"""

from __future__ import annotations

from struct import Struct

HOUR_US = 3_600_000_000
LATEST_US = 2**63 - 1
LAST_ARRIVAL = b"marrival"
PROBE = b"mcheck"

_RECORD = Struct(">cIQQ")
_COUNT = Struct(">cII")
_SEGMENT = Struct(">cIQ")
_SLOT = Struct(">cQ")
_NUMBER = Struct(">Q")
_ID = Struct(">I")

pack_record = _RECORD.pack
"""``pack_record(b"r", series_id, time_us, arrival)``; bare for the hot path."""

pack_slot = _SLOT.pack
"""``pack_slot(b"c", series_id << 32 | hour)``: ``count_key`` and ``mark_key`` for the hot path."""

pack_number = _NUMBER.pack
"""``pack_number(number)``: a counter or an arrival number as a value."""

ORDER = 5
"""Where a record key's order across series begins: ``key[ORDER:]`` is time and arrival."""


def record_key(series_id: int, time_us: int, arrival: int = 0) -> bytes:
    """The key of a record; with ``arrival`` 0 the lower bound of the records of that microsecond."""
    return _RECORD.pack(b"r", series_id, time_us, arrival)


def record_time(key: bytes) -> int:
    """The time in a record's key, in UTC microseconds."""
    return int.from_bytes(key[5:13])


def count_key(series_id: int, hour: int) -> bytes:
    """The key of a series' counter for one UTC hour."""
    return _COUNT.pack(b"c", series_id, hour)


def count_hour(key: bytes) -> int:
    """The UTC hour in a counter's key."""
    return int.from_bytes(key[5:9])


def tally_key(series_id: int, hour: int) -> bytes:
    """The key of the names that an hour's records carry."""
    return _COUNT.pack(b"k", series_id, hour)


def column_key(series_id: int, hour: int, name: str = "") -> bytes:
    """The key of one name's points in an hour; without a name the lower bound of the hour's columns."""
    return _COUNT.pack(b"v", series_id, hour) + name.encode()


def mark_key(series_id: int, hour: int) -> bytes:
    """The key of the mark that an hour's columns are to be made."""
    return _COUNT.pack(b"d", series_id, hour)


def segment_key(series_id: int, last_us: int) -> bytes:
    """The key of the segment that ends at that time (UTC microseconds)."""
    return _SEGMENT.pack(b"s", series_id, last_us)


def segment_end(key: bytes) -> int:
    """The time of the last record in a segment's key, in UTC microseconds."""
    return int.from_bytes(key[5:13])


def part_key(series_id: int, last_us: int, name: bytes = b"") -> bytes:
    """The key of a part of a segment; without a name that of its head, the lowest of its parts."""
    return _SEGMENT.pack(b"p", series_id, last_us) + name


def name_key(series: str) -> bytes:
    """The key that holds the id of a series.

    Raises:
        ValueError: the name can't be UTF-8 (a lone surrogate).
    """
    return b"n" + series.encode()


def pack_id(series_id: int) -> bytes:
    """A series id as a value."""
    return _ID.pack(series_id)


def parse_number(value: bytes | None) -> int:
    """The number in a value, 0 for no value."""
    return int.from_bytes(value) if value else 0
