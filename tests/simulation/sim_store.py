"""A store in memory behind the port of the real ones, on the simulated disk: what an append has stored lasts."""

from __future__ import annotations

import asyncio
from bisect import bisect_left, insort
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from typing import Any

import msgpack
import msgspec
from sim_disk import PowerFailed, SimDisk

from terrazzo.ports.store import ANY_SIZE, NO_NOTES, Notes, Page, Record, RecordsTooLarge, StoreFull, StoreStats
from terrazzo.times import LATEST_US

_PIECE = 100


class StoreImage:
    """What is on the disk: records in the order of arrival, and notes."""

    def __init__(self) -> None:
        self.series: dict[str, list[tuple[int, int, bytes]]] = {}  # time, arrival, body; sorted
        self.notes: dict[str, bytes] = {}
        self.arrivals = 0

    def put(self, records: Sequence[Record], notes: Notes) -> None:
        """All of it."""
        for record in records:
            self.arrivals += 1
            insort(self.series.setdefault(record.series, []), (record.time_us, self.arrivals, record.body))
        for name, value in notes.items():
            if value is None:
                self.notes.pop(name, None)
            else:
                self.notes[name] = value

    def bodies(self, series: str) -> list[dict[str, Any]]:
        """What arrived, in the order in which it did."""
        arrived = sorted(self.series.get(series, ()), key=lambda entry: entry[1])
        return [decoded(body) for _, _, body in arrived]


class SimStore:
    """``TimeSeriesStore`` as far as running parts ask it; charts are not simulated."""

    is_whole = True
    is_replaceable = False

    def __init__(self, image: StoreImage, disk: SimDisk) -> None:
        self._image, self._disk, self._life = image, disk, disk.life

    async def append(self, records: Sequence[Record], *, notes: Notes = NO_NOTES) -> None:
        """Stores all or nothing: a crash meanwhile leaves which of the two open."""
        await asyncio.sleep(self._disk.work_s() / 2)
        if self._life != self._disk.life:
            raise PowerFailed
        if self._disk.is_full:
            raise StoreFull("the disk is full")
        self._image.put(records, notes)
        await asyncio.sleep(self._disk.work_s() / 2)

    def stats(self) -> StoreStats:
        """No figures."""
        return StoreStats()

    def kept(self) -> Mapping[int, tuple[int, int]]:
        """Nothing."""
        return {}

    def give_up(self, company_id: int, size: int) -> int:
        """There is nothing to forget."""
        return 0

    def watch(self, series: str, start_us: int, end_us: int) -> None:
        """Nothing is remembered."""

    async def notes(self, prefix: str) -> dict[str, bytes]:
        """Sorted by name."""
        return {name: value for name, value in sorted(self._image.notes.items()) if name.startswith(prefix)}

    async def series(self, prefix: str) -> list[str]:
        """Sorted."""
        return sorted(name for name, kept in self._image.series.items() if kept and name.startswith(prefix))

    def _found(self, series: Sequence[str], start_us: int, end_us: int, keys: Sequence[str]) -> list[Record]:
        """Oldest first."""
        found = []
        for name in series:
            kept = self._image.series.get(name, [])
            span = kept[bisect_left(kept, (start_us,)) : bisect_left(kept, (end_us + 1,))]
            found += [(time_us, arrival, Record(name, time_us, body)) for time_us, arrival, body in span]
        wanted = set(keys)
        ordered = [record for _, _, record in sorted(found, key=lambda entry: entry[:2])]
        return [each for each in ordered if not wanted or wanted & carried(each.body)]

    async def latest(
        self, series: Sequence[str], limit: int, *, keys: Sequence[str] = (), most_bytes: int = ANY_SIZE
    ) -> list[Record]:
        """Newest first."""
        return bounded(self._found(series, 0, 2**62, keys)[::-1][:limit], most_bytes)

    async def latest_each(
        self, series: str, keys: Sequence[str], *, until_us: int = LATEST_US, most_bytes: int = ANY_SIZE
    ) -> Mapping[str, Record]:
        """By name."""
        newest = {key: self._found([series], 0, until_us, [key])[-1:] for key in keys}
        found = {key: records[0] for key, records in newest.items() if records}
        bounded(list(set(found.values())), most_bytes)
        return found

    async def first_after(self, series: Sequence[str], time_us: int, *, keys: Sequence[str] = ()) -> Record | None:
        """None: there is none."""
        return next(iter(self._found(series, time_us + 1, 2**62, keys)), None)

    async def page(
        self,
        series: Sequence[str],
        start_us: int,
        end_us: int,
        *,
        offset: int,
        limit: int,
        keys: Sequence[str] = (),
        most_bytes: int = ANY_SIZE,
    ) -> Page:
        """Newest first."""
        found = self._found(series, start_us, end_us, keys)[::-1]
        return Page(bounded(found[offset : offset + limit], most_bytes), len(found))

    async def scan(
        self, series: Sequence[str], start_us: int, end_us: int, *, keys: Sequence[str] = ()
    ) -> AsyncGenerator[list[Record], None]:
        """In pieces, oldest first."""
        found = self._found(series, start_us, end_us, keys)
        for place in range(0, len(found), _PIECE):
            yield found[place : place + _PIECE]

    async def drop_before(self, time_us: int, *, series: Collection[str] | None = None) -> None:
        """Retention."""
        for name, kept in self._image.series.items():
            if series is not None and name not in series:
                continue
            del kept[: bisect_left(kept, (time_us,))]

    async def check(self) -> None:
        """It accepts work."""

    async def close(self) -> None:
        """Nothing to release."""


def decoded(body: bytes) -> dict[str, Any]:
    """A body's map."""
    found: dict[str, Any] = msgspec.json.decode(body) if body[:1] == b"{" else msgpack.unpackb(body)
    return found


def carried(body: bytes) -> set[str]:
    """The names in a body, those of nested objects joined with ``.``."""
    return set(_names(decoded(body), ""))


def _names(found: Mapping[str, Any], before: str) -> list[str]:
    names = []
    for name, value in found.items():
        names += _names(value, f"{before}{name}.") if isinstance(value, dict) else [before + name]
    return names


def bounded(records: list[Record], most_bytes: int) -> list[Record]:
    """The records, where they are not too large together."""
    if sum(len(each.body) for each in records) > most_bytes:
        raise RecordsTooLarge
    return records
