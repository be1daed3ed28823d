"""The stores of a migration into a log, or out of it: their places in it, copies for further nodes, comparison."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from terrazzo.backup.migration import rest, series
from terrazzo.backup.migration.log_side import SESSIONS, LogPlan, differing_notes
from terrazzo.backup.migration.marker import Marker, Unmovable, alone, claim
from terrazzo.backup.migration.report import OpenStore, Report, Tell, differences
from terrazzo.backup.resting import locked, resting_parts
from terrazzo.config.sections import Config
from terrazzo.ports.store import TimeSeriesStore

SERIES = "series"
"""The folder of the embedded store in a data folder."""


@dataclass(frozen=True, slots=True)
class Sums:
    """What a store has: of each series its records and their checksum, of each note its checksum."""

    series: dict[str, tuple[int, str]]
    notes: dict[str, str]


@dataclass(frozen=True, slots=True)
class Replicas:
    """The target's store, which every other folder is a copy of. ``words``: what is moved, for the folders' marks."""

    log: LogPlan
    open_store: OpenStore
    tell: Tell
    words: str

    async def check(self, source: Config, migration_id: str) -> None:
        """Looks whether the log and the source's store are as they have to be.

        Raises:
            Unmovable: they are not; says why and what to do.
        """
        await self.log.side.check(migration_id)
        async with self._opened(source) as store:
            await self.log.side.check_source(store)

    async def settle(self, source: Config, target: Config, marker: Marker, report: Report) -> None:
        """Gives the target's store its place, compares it with the source's, and fills and compares the other folders.

        The log learns of it at the end, when all is equal; what differs stands in the report.
        """
        before = await self.measure(source, "records of the source compared")
        await self._place(target, marker)
        await self.compare(target, before, report, "target")
        for folder in self.log.replicas:
            await asyncio.to_thread(self._fill, target.data_dir, folder, marker)
            replica = target.with_data_dir(folder)
            await self.compare(replica, before, report, str(folder))
            left = {*SESSIONS, *resting_parts(target.data_dir)}
            report.differ(await asyncio.to_thread(rest.compare_rest, target.data_dir, folder, left))
            report.replicas.append(folder)
        if not report.differences:
            await self.log.side.settle(marker.id)

    def release(self) -> None:
        """Lets nodes start on the other folders."""
        for folder in self.log.replicas:
            Marker(id="", source="", target="").remove(folder)

    async def compare(self, config: Config, before: Sums, report: Report, whose: str) -> None:
        """Notes what a store has otherwise than the source; the last one that is compared is counted."""
        found = await self.measure(config, f"records of {whose} compared")
        report.series, report.notes = len(found.series), len(found.notes)
        report.records = sum(count for count, _ in found.series.values())
        report.differ([f"{whose}: {line}" for line in differences("series", "records", before.series, found.series)])
        names = differing_notes(before.notes, found.notes, self.log.side.notes)
        report.differ([f"{whose}: note {name}: differs" for name in names])

    async def measure(self, config: Config, what: str) -> Sums:
        """What the store of a folder has."""
        async with self._opened(config) as store:
            await series.settle(store)
            total, _ = await series.count_records(store)
            return Sums(await series.measure_series(store, total, self.tell, what), await series.measure_notes(store))

    async def _place(self, target: Config, marker: Marker) -> None:
        async with self._opened(target) as store:
            await store.append((), notes=await self.log.side.places(marker.id))

    def _fill(self, target: Path, folder: Path, marker: Marker) -> None:
        """Copies what a node that follows begins with; begun anew it copies the store again."""
        with alone(folder):
            claim(folder, self.words, f"replica of {marker.id}")
            self.tell(f"folder {folder}", 0, 1)
            others = [name for name in resting_parts(target) if name != SERIES]
            with locked(target / SERIES):
                rest.copy_rest(target, folder, [SERIES], {*others, *SESSIONS})
            self.tell(f"folder {folder}", 1, 1)

    @asynccontextmanager
    async def _opened(self, config: Config) -> AsyncIterator[TimeSeriesStore]:
        """The store of a folder, in which nothing is sealed meanwhile."""
        resting = msgspec.structs.replace(config, store=msgspec.structs.replace(config.store, seal=False))
        store = await self.open_store(resting)
        try:
            yield store
        finally:
            await store.close()


def check_replicas(folders: tuple[Path, ...], source: Path, target: Path) -> None:
    """Refuses folders that are one in the other.

    Raises:
        Unmovable: says which.
    """
    all_of_them = [source.resolve(), target.resolve(), *(folder.resolve() for folder in folders)]
    for place, one in enumerate(all_of_them):
        for other in all_of_them[place + 1 :]:
            if one == other or one in other.parents or other in one.parents:
                raise Unmovable(f"--replica: {one} and {other} are one in the other; name a folder of its own")
