"""What was decoded of segments lately: heads, times, columns and rollups, the least recently used given up first.

A segment is known by its mark, a digest of its head, which has the checksums of all its parts: when another takes its
place, what is kept of the first is not found any more, whatever snapshot a reader has. Each part counts as that of the
company that it was decoded for first.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from threading import Lock, local
from typing import Any, NamedTuple, TypeVar

_ENTRY_BYTES = 400  # of Python's own beside what is kept
_LARGE_BYTES = 32 * 1024

T = TypeVar("T")

Place = tuple[int, int]
"""Where a segment lies: the id of its series, the time of its last record (UTC microseconds)."""

Key = tuple[Place, bytes, bytes]
"""A segment's place, its mark, and the name of a part."""


class CacheStats(NamedTuple):
    """Counters since the start, and what is kept now. ``hits``: decoded parts that were found."""

    hits: int
    misses: int
    bytes: int


class SegmentCache:
    """Keeps at most ``most_bytes``. Any thread may call it; what it has nobody may change.

    Half is for what is large: a walk over all columns doesn't take the rollups with it.
    """

    def __init__(self, most_bytes: int) -> None:
        self._lock = Lock()
        self._small, self._large = _Shelf(most_bytes // 2), _Shelf(most_bytes // 2)
        self._hits = self._misses = 0

    def resize(self, most_bytes: int) -> None:
        """Keeps at most so many bytes from now on, and nothing of what there was."""
        with self._lock:
            self._small, self._large = _Shelf(most_bytes // 2), _Shelf(most_bytes // 2)

    def stats(self) -> CacheStats:
        """How often something was found, and how much there is."""
        with self._lock:
            return CacheStats(self._hits, self._misses, self._small.bytes + self._large.bytes)

    def by_owner(self) -> Mapping[int, tuple[int, int]]:
        """Bytes and parts that are kept, by the company that they were decoded for."""
        with self._lock:
            return {
                owner: (
                    self._small.owners[owner] + self._large.owners[owner],
                    self._small.parts[owner] + self._large.parts[owner],
                )
                for owner in self._small.owners.keys() | self._large.owners.keys()
            }

    def give_up(self, owner: int, size: int) -> int:
        """Forgets about ``size`` bytes of a company, what was not used for longest first; returns how many it were."""
        with self._lock:
            freed = self._large.give_up(owner, size)
            return freed + (self._small.give_up(owner, size - freed) if freed < size else 0)

    def of(self, place: Place, mark: bytes) -> SegmentMemory:
        """What is kept of one segment."""
        return SegmentMemory(self, place, mark)

    def find(self, key: Key) -> Any:
        """What is kept; None if there is nothing."""
        with self._lock:
            found = self._small.find(key) or self._large.find(key)
            self._hits += found is not None
            self._misses += found is None
            return None if found is None else found.value

    def keep(self, key: Key, value: object, size: int) -> None:
        """Keeps something of ``size`` bytes, if so much can be kept."""
        with self._lock:
            shelf, other = (self._large, self._small) if size > _LARGE_BYTES else (self._small, self._large)
            other.drop(key)  # what grows must not be found as it was
            shelf.keep(key, _Kept(value, size + len(key[1]) + _ENTRY_BYTES, getattr(_reader, "owner", 0)))


class _Kept(NamedTuple):
    value: Any
    size: int
    owner: int


_reader = local()


def counted_for(owner: int, work: Callable[[], T]) -> Callable[[], T]:
    """The same work, on whatever thread; what it has kept counts as the company's."""

    def run() -> T:
        _reader.owner = owner
        try:
            return work()
        finally:
            _reader.owner = 0

    return run


class _Shelf:
    """What was used last, of at most ``most_bytes``."""

    def __init__(self, most_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._kept: OrderedDict[Key, _Kept] = OrderedDict()
        self.bytes = 0
        self.owners: Counter[int] = Counter()  # bytes
        self.parts: Counter[int] = Counter()

    def find(self, key: Key) -> _Kept | None:
        found = self._kept.get(key)
        if found is not None:
            self._kept.move_to_end(key)
        return found

    def keep(self, key: Key, kept: _Kept) -> None:
        if 4 * kept.size > self._most_bytes:
            return
        if key in self._kept:  # another reader was as slow
            self._forget(key)
        self._count(kept, 1)
        self._kept[key] = kept
        while self.bytes > self._most_bytes:
            self._forget(next(iter(self._kept)))

    def drop(self, key: Key) -> None:
        if key in self._kept:
            self._forget(key)

    def give_up(self, owner: int, size: int) -> int:
        freed = 0
        for key in [key for key, kept in self._kept.items() if kept.owner == owner]:
            if freed >= size:
                break
            freed += self._forget(key)
        return freed

    def _forget(self, key: Key) -> int:
        kept = self._kept.pop(key)
        self._count(kept, -1)
        return kept.size

    def _count(self, kept: _Kept, sign: int) -> None:
        self.bytes += sign * kept.size
        self.owners[kept.owner] += sign * kept.size
        self.parts[kept.owner] += sign
        if not self.parts[kept.owner]:
            del self.owners[kept.owner], self.parts[kept.owner]


class SegmentMemory:
    """What is kept of one segment."""

    def __init__(self, cache: SegmentCache, place: Place, mark: bytes) -> None:
        self._cache, self._place, self._mark = cache, place, mark

    def find(self, part: bytes) -> Any:
        """What was decoded of a part; None if that isn't kept."""
        return self._cache.find((self._place, self._mark, part))

    def keep(self, part: bytes, value: object, size: int) -> None:
        """Keeps what was decoded of a part, of ``size`` bytes."""
        self._cache.keep((self._place, self._mark, part), value, size)


cache = SegmentCache(0)
"""Of the process: whoever opens the store says how much there may be."""
