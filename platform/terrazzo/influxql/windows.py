"""GROUP BY time: windows of equal length, by the clocks of a zone."""

from __future__ import annotations

from bisect import bisect_right
from datetime import UTC, datetime, timedelta, tzinfo

import numpy as np
from numpy.typing import NDArray

from terrazzo.influxql.vectors import Mask, Times

_DAY_S = 86_400
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
        changes = np.array(self._clocks.changes_ns(first_ns, last_ns), np.int64)
        return not len(changes) or bool((self.ids(changes - 1) <= self.ids(changes)).all())


class _Clocks:
    """How far a zone's clocks are ahead of UTC, by time."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def offsets_ns(self, times: Times) -> Times:
        """Nanoseconds ahead, for each time."""
        changes, offsets = self._changes(int(times.min()), int(times.max()))
        places = np.searchsorted(np.array(changes, np.int64) * 10**9, times, "right")
        return np.array(offsets, np.int64)[places] * 10**9

    def changes_ns(self, first_ns: int, last_ns: int) -> list[int]:
        """When clocks change in a range."""
        return [second * 10**9 for second in self._changes(first_ns, last_ns)[0]]

    def _changes(self, first_ns: int, last_ns: int) -> tuple[list[int], list[int]]:
        """The seconds at which clocks change in a range, and the seconds ahead before, between and after."""
        first_s, last_s = (min(max(edge // 10**9, _EARLIEST_S), _LATEST_S) for edge in (first_ns, last_ns))
        changes: list[int] = []
        offsets = [self._offset_s(first_s)]
        for day in range(first_s // _DAY_S, last_s // _DAY_S + 1):
            end_s = min((day + 1) * _DAY_S, last_s)
            if self._offset_s(end_s) != offsets[-1]:
                start_s = max(day * _DAY_S, first_s)
                before = offsets[-1]
                seconds = range(start_s, end_s + 1)
                place = bisect_right(seconds, 0, key=lambda second: int(self._offset_s(second) != before))
                changes.append(seconds[place])
                offsets.append(self._offset_s(end_s))
        return changes, offsets

    def _offset_s(self, second: int) -> int:
        offset = (_EPOCH + timedelta(seconds=second)).astimezone(self._zone).utcoffset()
        return 0 if offset is None else round(offset.total_seconds())
