"""``Watches``: the ranges of series of which somebody remembers an answer; what is committed ends those it touches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from threading import Lock
from weakref import ref

from terrazzo.ports.store import Record, Watch

_OF_SERIES = 64  # each is looked at for each record of the series that comes
_MOST = 20_000


class Watches:
    """Begun by readers, ended by the writer once a commit can be read, and before it is told to be stored.

    One that nobody has any more goes by itself.
    """

    def __init__(self) -> None:
        self._by_series: dict[str, list[ref[Watch]]] = {}
        self._count = 0
        self._lock = Lock()

    def begin(self, series: str, start_us: int, end_us: int) -> Watch:
        """To be called before the records are read. Of a series with too many the oldest ends."""
        watch = Watch(start_us, end_us)
        with self._lock:
            if self._count >= _MOST:
                self._sweep()
            found = self._by_series.setdefault(series, [])
            found.append(ref(watch))
            self._count += 1
            if len(found) > _OF_SERIES:
                self._end(found.pop(0))
                self._count -= 1
        return watch

    def on_append(self, records: Sequence[Record]) -> None:
        """Ends those that a record falls into."""
        watched = self._by_series
        if not watched:
            return
        with self._lock:
            for record in records:
                if record.series in watched:
                    self._touch(record.series, record.time_us, record.time_us)

    def on_replace(self, series: str, start_us: int, end_us: int) -> None:
        """Ends those that have a part of the range."""
        with self._lock:
            if series in self._by_series:
                self._touch(series, start_us, end_us)

    def on_drop(self, time_us: int, series: Collection[str] | None) -> None:
        """Ends those that begin earlier; ``series``: of these alone."""
        with self._lock:
            for name in [name for name in (self._by_series if series is None else series) if name in self._by_series]:
                self._touch(name, None, time_us - 1)

    def forget(self) -> None:
        """Ends all: it is not known what was stored."""
        with self._lock:
            self._end_all()

    def _touch(self, series: str, start_us: int | None, end_us: int) -> None:
        found, left = self._by_series[series], []
        for each in found:
            watch = each()
            if watch is None:
                continue
            if watch.start_us <= end_us and (start_us is None or start_us <= watch.end_us):
                watch.is_current = False
            else:
                left.append(each)
        self._count -= len(found) - len(left)
        if left:
            self._by_series[series] = left
        else:
            del self._by_series[series]

    def _sweep(self) -> None:
        """Drops what nobody has; all, where there are still too many."""
        for series, found in list(self._by_series.items()):
            self._by_series[series] = [each for each in found if each() is not None]
            if not self._by_series[series]:
                del self._by_series[series]
        self._count = sum(map(len, self._by_series.values()))
        if self._count >= _MOST:
            self._end_all()

    def _end_all(self) -> None:
        for found in self._by_series.values():
            for each in found:
                self._end(each)
        self._by_series.clear()
        self._count = 0

    @staticmethod
    def _end(each: ref[Watch]) -> None:
        watch = each()
        if watch is not None:
            watch.is_current = False
