"""Runs an import: reads the file, checks all rows, writes all or nothing, and makes the report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from terrazzo.bulk.columns import Columns
from terrazzo.bulk.packed_rows import PackedRows
from terrazzo.bulk.plan import OnRow, Plan, Planner
from terrazzo.bulk.report import ImportRefused, Issues, Report
from terrazzo.bulk.rows import UploadedRows
from terrazzo.bulk.unfinished import UnfinishedImports
from terrazzo.bulk.writing import ImportWriter
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import LoopPauses
from terrazzo.metadata.repositories.repository import EntityRepository
from terrazzo.ports import at_work
from terrazzo.reasons import say

_COUNTED_ROWS = 1_000
_FREED_ROWS = 200  # at a time
_ROW_BYTES, _CELL_BYTES = 900, 120  # of memory until it is written; benchmarks/memory.py measures it
Mode = Literal["create", "upsert"]
OnProgress = Callable[[str, int, int], object]
"""``on_progress(stage, done, total)``; stages are read, check and write."""


class Importer:
    """Imports one file for one actor.

    Args:
        mode: ``create`` makes new records only; ``upsert`` also changes those that are there, found by their key.
    """

    def __init__(
        self,
        repository: EntityRepository,
        columns: Columns,
        actor: Actor,
        unfinished: UnfinishedImports,
        *,
        mode: Mode,
        dry_run: bool,
        on_progress: OnProgress,
    ) -> None:
        self._unfinished = unfinished
        self._repository = repository
        self._columns = columns
        self._actor = actor
        self._upserts = mode == "upsert"
        self._report = Report(dry_run=dry_run, mode=mode)
        self._issues = Issues()
        self._is_header_wrong = False
        self._on_progress = on_progress

    async def run(self, rows: UploadedRows, grow: Callable[[int], object] = int) -> Report:
        """Imports the rows and returns the report; a dry run only checks, and its report has all errors.

        ``grow`` is told of the bytes of memory that the rows take, some rows at a time; what it raises ends the import.

        Raises:
            ImportRefused: there are errors, and it is no dry run; carries the report.
            BadParameter: the file can't be read at all.
            Conflict: somebody changed the same records at the same time.
        """
        plan = Plan([])
        try:
            sources = await self._read(rows, grow)
            await self._plan(sources, plan)
            return await self._write(len(sources), plan)
        finally:
            await _let_go(plan.writes)

    async def _write(self, total: int, plan: Plan) -> Report:
        report, issues, writes = self._report, self._issues, plan.writes
        report.total = total
        report.created, report.updated, report.unchanged = plan.created, plan.updated, plan.unchanged
        if issues:
            issues.put_into(report)
            if not report.dry_run:
                report.created = report.updated = 0
                raise ImportRefused(report)
        elif writes and not report.dry_run:
            at_work.begin_change()
            writer = ImportWriter(self._repository, self._actor, self._unfinished)
            await writer.write(writes, self._stage("write", len(writes)))
        return report

    async def _read(self, rows: UploadedRows, grow: Callable[[int], object]) -> PackedRows:
        sources = PackedRows()
        self._on_progress("read", 0, 0)
        if rows.header is not None:
            self._columns.check_header(rows.header, self._issues, row=1, creates=not self._upserts)
        self._is_header_wrong = bool(self._issues)
        pauses = LoopPauses()
        counted = cells = 0
        for source in rows.rows:
            if rows.header is None:
                self._columns.check_names(source.values, self._issues, row=source.number)
            sources.append(source)
            cells += len(source.values)
            if len(sources) - counted == _COUNTED_ROWS:
                grow(_COUNTED_ROWS * _ROW_BYTES + cells * _CELL_BYTES)
                counted, cells = len(sources), 0
            await pauses.pause()
        if not sources and not self._issues:
            raise BadParameter("rows", say("no_rows"))
        return sources

    async def _plan(self, sources: PackedRows, plan: Plan) -> None:
        if self._is_header_wrong:  # each row would only say so again
            return
        dry_run, upserts = self._report.dry_run, self._upserts
        planner = Planner(self._repository, self._columns, self._actor, self._issues, upserts=upserts, dry_run=dry_run)
        await planner.plan(sources, self._stage("check", len(sources)), plan)

    def _stage(self, name: str, total: int) -> OnRow:
        self._on_progress(name, 0, total)
        return lambda done: self._on_progress(name, done, total)


async def _let_go(things: list[Any]) -> None:
    """Frees things that nothing else has, some at a time: a hundred thousand rows in one go hold the loop for 90 ms."""
    pauses = LoopPauses()
    while things:
        del things[-_FREED_ROWS:]
        await pauses.pause()
