"""A migration from the first look to the last: checks, copies, compares, and takes the mark away."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
import sqlalchemy as sa

from terrazzo.backup.migration import registry, rest, series
from terrazzo.backup.migration.keys import check_keys, count_unreadable
from terrazzo.backup.migration.log_side import LogPlan, differing_notes
from terrazzo.backup.migration.marker import MIGRATING, Marker, Unmovable, alone, claim
from terrazzo.backup.migration.replicas import SERIES, Replicas, check_replicas
from terrazzo.backup.migration.report import OpenStore, Report, Tell, differences
from terrazzo.backup.resting import locked, resting_parts
from terrazzo.backup.restoring import RESTORING
from terrazzo.config.sections import Config
from terrazzo.database.database import Database
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.userinfo import shown_address

SPOOL = "spool"  # the folder of what waits for a store
STATEMENT_S = 3_600.0

_LEAST_FREE = 64 << 20


@dataclass(frozen=True, slots=True)
class Plan:
    """Which parts are moved, and how.

    Attributes:
        registry: whether the rows are copied; else both use the same database.
        records: whether records go through the port; else the folder of the store is copied.
        log: that of the cluster which one of the two is.
    """

    source: Config
    target: Config
    registry: bool
    records: bool
    log: LogPlan | None = None

    @property
    def source_words(self) -> str:
        """What is read, without passwords."""
        return f"{self.source.data_dir.resolve()} ({database_words(self.source)}, {store_words(self.source)})"

    @property
    def target_words(self) -> str:
        """What is written, without passwords."""
        log = "" if self.log is None else f", {self.log.side.words}"
        return f"{database_words(self.target)}, {store_words(self.target)}{log}"

    @property
    def without(self) -> Collection[str]:
        """Folders of the source that are not copied as they are."""
        return (SERIES, SPOOL) if self.records else ()


def database_words(config: Config) -> str:
    """Which database a configuration names, without a password."""
    if not config.database.url:
        return "sqlite"
    return sa.make_url(config.database.url).render_as_string(hide_password=True)


def store_words(config: Config) -> str:
    """Which store a configuration names, without a password."""
    section = config.store
    if section.kind == "embedded":
        return "embedded"
    return f"influxdb {shown_address(section.url)} {section.database or section.bucket}"


def make_plan(source: Config, target: Config, log: LogPlan | None = None) -> Plan:
    """Looks at two configurations; ``log``: that of the cluster which one of them is.

    Raises:
        Unmovable: there is nothing to move between them, or a folder can't be used.
    """
    _check_folders(source.data_dir, target.data_dir)
    if log is not None:
        check_replicas(log.replicas, source.data_dir, target.data_dir)
    check_keys(source, target)
    plan = Plan(
        msgspec.structs.replace(source, store=msgspec.structs.replace(source.store, seal=False)),
        target,
        registry=not source.database.url or source.database.url != target.database.url,
        records=store_words(source) != store_words(target),
        log=log,
    )
    if database_words(source) == database_words(target) and not plan.records and log is None:
        advice = (
            "both configurations name the same database and the same store; terrazzo backup and restore make a copy"
        )
        raise Unmovable(f"--to-config: {advice}")
    return plan


def _check_folders(source: Path, target: Path) -> None:
    if not source.is_dir():
        raise Unmovable(f"data.dir: there is no folder {source}")
    for name, what in ((RESTORING, "restore"), (MIGRATING, "migration")):
        if (source / name).exists():
            raise Unmovable(f"data.dir: {source} has a {what} that did not end")
    one, other = source.resolve(), target.resolve()
    if one == other or one in other.parents or other in one.parents:
        raise Unmovable(f"--to-data: {target} and {source} are one in the other; name a folder of its own")


class Migration:
    """One migration, of a platform that does not run."""

    def __init__(self, plan: Plan, *, open_store: OpenStore, tell: Tell) -> None:
        self._plan = plan
        self._open_store = open_store
        self._tell = tell
        self._replicas = None if plan.log is None else Replicas(plan.log, open_store, tell, plan.source_words)

    async def run(self) -> Report:
        """Copies what the target does not have yet, compares everything, and ends where all is equal.

        Raises:
            Unmovable: source or target can't be used; says why.
            DatabaseUnusable, StoreUnavailable, Unavailable, OSError: something can't be read or written; it can be
                started again, and goes on.
        """
        plan = self._plan
        folder = plan.target.data_dir
        with alone(folder):
            marker = claim(folder, plan.source_words, plan.target_words)
            await self._begin(marker)
            async with self._opened(upgrade=not marker.is_verified) as parts:
                report = Report(id=marker.id)
                if not marker.is_verified:
                    await parts.copy(report)
                await parts.compare(report)
                if report.differences:
                    return report
                if self._replicas is None:
                    await _end(marker, parts)
            if self._replicas is not None:
                await self._replicas.settle(plan.source, plan.target, marker, report)
                if report.differences:
                    return report
                async with self._opened(upgrade=False) as parts:
                    await _end(marker, parts)
                self._replicas.release()
            marker.remove(folder)
        return report

    async def _begin(self, marker: Marker) -> None:
        """Looks at log and source where there is a log, and marks the target's database."""
        plan = self._plan
        try:
            if self._replicas is not None:
                await self._replicas.check(plan.source, marker.id)
            if plan.registry and not marker.is_verified:
                await registry.claim_database(plan.target.database.url, plan.target.data_dir, marker.id)
        except Unmovable:
            if os.listdir(plan.target.data_dir) == [MIGRATING]:
                marker.remove(plan.target.data_dir)  # nothing was begun: another target may be named
            raise

    async def verify(self) -> Report:
        """Compares source and target of a migration that has ended; changes nothing.

        Raises:
            As ``run``.
        """
        folder = self._plan.target.data_dir
        if not folder.is_dir() or (folder / MIGRATING).exists():
            raise Unmovable(f"--to-data: {folder} has no migration that ended; start it without --verify")
        async with self._opened(upgrade=False) as parts:
            report = Report(id="")
            await parts.compare(report)
        if self._replicas is not None:
            before = await self._replicas.measure(self._plan.source, "records of the source compared")
            for config in (self._plan.target, *map(self._plan.target.with_data_dir, self._replicas.log.replicas)):
                await self._replicas.compare(config, before, report, str(config.data_dir))
        return report

    @asynccontextmanager
    async def _opened(self, *, upgrade: bool) -> AsyncIterator[_Parts]:
        plan = self._plan
        folder = plan.source.data_dir
        async with AsyncExitStack() as stack:
            parts = {name: part for name, part in resting_parts(folder).items() if name not in plan.without}
            for name in parts:
                stack.enter_context(locked(folder / name))
            source = await _open_database(stack, plan.source, upgrade=False)
            target = source if not plan.registry else await _open_database(stack, plan.target, upgrade=upgrade)
            stores = [await self._open(stack, each) for each in (plan.source, plan.target)] if plan.records else []
            yield _Parts(plan, source, target, stores, list(parts), self._tell)

    async def _open(self, stack: AsyncExitStack, config: Config) -> TimeSeriesStore:
        store = await self._open_store(config)
        stack.push_async_callback(store.close)
        return store


async def _end(marker: Marker, parts: _Parts) -> None:
    """All is equal: the target's marks go, whatever ends this process."""
    plan = parts.plan
    msgspec.structs.replace(marker, is_verified=True).write(plan.target.data_dir)
    await parts.release()


async def _open_database(stack: AsyncExitStack, config: Config, *, upgrade: bool) -> Database:
    url = config.database.url
    database = await Database.open(url, data_dir=config.data_dir, upgrade=upgrade, statement_s=STATEMENT_S)
    stack.push_async_callback(database.close)
    return database


@dataclass(frozen=True, slots=True)
class _Parts:
    """All that is open. ``stores``: source and target, none where the folder of the store is copied."""

    plan: Plan
    source: Database
    target: Database
    stores: list[TimeSeriesStore]
    parts: list[str]
    tell: Tell

    async def copy(self, report: Report) -> None:
        plan, total = self.plan, 0
        if self.stores:
            await series.settle(self.stores[0])
            await series.claim_store(self.stores[1])
            total, size = await series.count_records(self.stores[0])
            await self._check_room(size if plan.target.store.kind == "embedded" else 0)
        else:
            await self._check_room(0)
        if plan.registry:
            async with self.source.reading() as connection:
                await registry.copy_registry(connection, self.target, self.tell)
        if self.stores:
            await series.copy_series(self.stores[0], self.stores[1], total, self.tell)
        self.tell("files", 0, 0)
        data = plan.source.data_dir, plan.target.data_dir
        report.files = await asyncio.to_thread(rest.copy_rest, *data, self.parts, plan.without)

    async def _check_room(self, records: int) -> None:
        """Refuses where the disk of the target's folder has too little room; servers' disks are not to be seen.

        Raises:
            OSError: it has.
        """
        plan = self.plan
        needed = _LEAST_FREE + 2 * records + rest.size_of_rest(plan.source.data_dir, plan.without)
        if plan.registry and not plan.target.database.url:
            needed += 2 * await _size_of(self.source)
        free = shutil.disk_usage(plan.target.data_dir).free
        if free < needed:
            raise OSError(f"{plan.target.data_dir}: the migration needs about {needed} bytes, {free} are free")

    async def compare(self, report: Report) -> None:
        """Measures both sides in the same way, and notes what differs."""
        plan = self.plan
        if plan.registry:
            await self._compare_registry(report)
        if self.stores:
            await self._compare_series(report)
        without = {*plan.without, *self.parts}
        data = plan.source.data_dir, plan.target.data_dir
        report.differ(await asyncio.to_thread(rest.compare_rest, *data, without))
        before = await count_unreadable(self.source, plan.source)
        report.unreadable = await count_unreadable(self.target, plan.target)
        if report.unreadable != before:
            report.differ([f"secrets: {report.unreadable} can't be opened in the target, {before} in the source"])

    async def _compare_registry(self, report: Report) -> None:
        async with self.source.reading() as connection:
            report.left_out = await registry.foreign_tables(connection)
            before = await registry.measure_registry(connection, self.tell, "tables of the source compared")
            used_before = await registry.used_ids(connection)
        async with self.target.reading() as connection:
            report.tables = await registry.measure_registry(connection, self.tell, "tables of the target compared")
            used = await registry.used_ids(connection)
        report.differ(differences("table", "rows", before, report.tables))
        other = sorted(name for name, last in used_before.items() if used[name] != last)
        report.differ([f"table {name}: ids go on from {used[name]}, not from {used_before[name]}" for name in other])

    async def _compare_series(self, report: Report) -> None:
        source, target = self.stores
        for store in self.stores:
            await series.settle(store)
        total, _ = await series.count_records(source)
        before = await series.measure_series(source, total, self.tell, "records of the source compared")
        after = await series.measure_series(target, total, self.tell, "records of the target compared")
        report.series, report.records = len(after), sum(count for count, _ in after.values())
        report.differ(differences("series", "records", before, after))
        notes_before, notes = await series.measure_notes(source), await series.measure_notes(target)
        report.notes = len(notes)
        without = frozenset[str]() if self.plan.log is None else self.plan.log.side.notes
        report.differ([f"note {name}: differs" for name in differing_notes(notes_before, notes, without)])

    async def release(self) -> None:
        """Takes the marks out of database and store."""
        if self.plan.registry:
            await registry.release_database(self.target)
        if self.stores:
            await series.release_store(self.stores[1])


async def _size_of(database: Database) -> int:
    file = database.sqlite_file
    if file is not None:
        return file.stat().st_size
    async with database.reading() as connection:
        size = await connection.scalar(sa.text("SELECT pg_database_size(current_database())"))
    return int(size or 0)
