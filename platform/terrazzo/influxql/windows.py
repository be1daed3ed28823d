"""GROUP BY time: windows of equal length, by the clocks of a zone."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from terrazzo.influxql.vectors import Mask, Times

_DAY_S = 86_400
_STRETCH_S = 400 * _DAY_S  # whose changes of clocks are looked up at once, and kept
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_EARLIEST_S, _LATEST_S = -2_000_000_000, 9_000_000_000  # outside, a zone's clocks stand as they do there


class Windows:
    """Windows numbered from 0, which begins at 1970-01-01 00:00 on the zone's clocks, plus the offset."""

    def __init__(self, interval_ns: int, offset_ns: int, zone: tzinfo) -> None:
        self.interval_ns = interval_ns
        self._offset_ns = offset_ns
        self._clocks = None if zone is UTC else _Clocks(zone)

    def ids(self, times: Times) -> NDArray[np.int64]:
        """The number of the window that each time lies in."""
        if self._clocks is not None and len(times):
            times = times + self._clocks.offsets_ns(times)
        return np.asarray((times - self._offset_ns) // self.interval_ns, np.int64)

    def id_of(self, time_ns: int) -> int:
        """The number of the window that a time lies in."""
        return int(self.ids(np.array([time_ns], np.int64))[0])

    def starts(self, ids: NDArray[np.int64]) -> Times:
        """When windows begin."""
        shown = ids * self.interval_ns + self._offset_ns
        if self._clocks is None or not len(ids):
            return shown
        first = shown - self._clocks.offsets_ns(shown)
        return shown - self._clocks.offsets_ns(first)

    def hold(self, starts: Times, length_ns: int) -> Mask:
        """Which stretches of time, of one length, lie in one window each, with no change of the clocks within."""
        if self.interval_ns < length_ns or not len(starts):
            return np.zeros(len(starts), np.bool_)
        ends = starts + (length_ns - 1)
        held = self.ids(starts) == self.ids(ends)
        if self._clocks is not None:
            held &= self._clocks.offsets_ns(starts) == self._clocks.offsets_ns(ends)
        return np.asarray(held)

    def ascend(self, first_ns: int, last_ns: int) -> bool:
        """Whether no window comes back between two times, as it may where clocks are put back."""
        if self._clocks is None:
            return True
        changes = self._clocks.changes_ns(first_ns, last_ns)
        return not len(changes) or bool((self.ids(changes - 1) <= self.ids(changes)).all())


class _Clocks:
    """How far a zone's clocks are ahead of UTC, by time."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def offsets_ns(self, times: Times) -> Times:
        """Nanoseconds ahead, for each time."""
        changes, offsets = self._stretch(int(times.min()), int(times.max()))
        if not len(changes):
            return np.broadcast_to(offsets, times.shape)
        return np.asarray(offsets[np.searchsorted(changes, times, "right")], np.int64)

    def changes_ns(self, first_ns: int, last_ns: int) -> Times:
        """When clocks change in a range."""
        changes = self._stretch(first_ns, last_ns)[0]
        return changes[(changes > first_ns) & (changes <= last_ns)]

    def _stretch(self, first_ns: int, last_ns: int) -> tuple[Times, Times]:
        first_s, last_s = (min(max(edge // 10**9, _EARLIEST_S), _LATEST_S) for edge in (first_ns, last_ns))
        return _changes(self._zone, first_s // _STRETCH_S, last_s // _STRETCH_S)


@lru_cache(maxsize=512)
def _changes(zone: tzinfo, first: int, last: int) -> tuple[Times, Times]:
    """When clocks change in some stretches, and how far ahead they are before, between and after; nanoseconds."""
    changes: list[int] = []
    offsets = [_offset_s(zone, first * _STRETCH_S)]
    for stretch in range(first, last + 1):
        for second, offset in _changes_in(zone, stretch):
            changes.append(second)
            offsets.append(offset)
    found = np.array(changes, np.int64) * 10**9, np.array(offsets, np.int64) * 10**9
    for each in found:
        each.flags.writeable = False
    return found


@lru_cache(maxsize=4_096)
def _changes_in(zone: tzinfo, stretch: int) -> tuple[tuple[int, int], ...]:
    """The seconds at which clocks change in a stretch, its end included, each with how far ahead they are then."""
    found: list[tuple[int, int]] = []
    before = _offset_s(zone, stretch * _STRETCH_S)
    for start_s in range(stretch * _STRETCH_S, (stretch + 1) * _STRETCH_S, _DAY_S):
        after = _offset_s(zone, start_s + _DAY_S)
        if after != before:
            found.append((_change_s(zone, start_s, before), after))
            before = after
    return tuple(found)


def _change_s(zone: tzinfo, start_s: int, before: int) -> int:
    """The second in a day from which on clocks are not ``before`` seconds ahead any more."""
    seconds = range(start_s, start_s + _DAY_S + 1)
    return seconds[bisect_right(seconds, 0, key=lambda second: int(_offset_s(zone, second) != before))]


def _offset_s(zone: tzinfo, second: int) -> int:
    offset = (_EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())
