"""Companies take turns in the analysis: one with many costly jobs has no more than its own."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from analysis_stand import AnalysisStand, analysis_stand, at

from terrazzo.analysis import analysis
from terrazzo.analysis.progress import JobRange, add_todos, next_todos
from terrazzo.analysis.scripts import Job, Script, ScriptKind
from terrazzo.domain.actor import SYSTEM
from terrazzo.ports import at_work

BEGIN_US = at("2026-03-01 00:00:00")
COUNT = [["N", "count", "A"]]


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[AnalysisStand]:
    async with analysis_stand(tmp_path) as opened:
        yield opened


async def two_companies(stand: AnalysisStand, jobs: int) -> tuple[list[int], int]:
    """Objects of a company with many jobs, and one of another with one."""
    many = [await stand.new_object() for _ in range(jobs)]
    company = await stand.entities.companies.create(SYSTEM, {"name": "other"})
    given = {"name": "o", "permission_company_id": company["id"]}
    one = int((await stand.entities.objects.create(SYSTEM, given))["id"])
    await stand.start("statistics", many, COUNT)
    await stand.start("statistics", [one], COUNT, permission_company_id=company["id"])
    return many, one


async def test_a_company_with_many_costly_jobs_has_its_turn_and_no_more(
    stand: AnalysisStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, one = await two_companies(stand, 30)
    moved: list[tuple[int, int]] = []

    async def costly(script: Script, job: Job, progress: Any) -> bool:
        await asyncio.sleep(0.01)
        moved.append((job.object_id, at_work.company_id()))
        return len(moved) < 300

    monkeypatch.setattr(analysis, "_TURN_S", 0.05)
    monkeypatch.setattr(stand.analysis._statistics, "advance", costly)
    await stand.analysis.work(most_pieces=100)
    whose = [object_id for object_id, _ in moved]
    places = [place for place, object_id in enumerate(whose) if object_id == one]
    assert len(places) >= 5
    assert max(after - before for before, after in pairwise(places)) < 30, "not after all of them"
    assert set(whose) - {one} == set(range(1, 31)), "each of the others has its turn, too"
    assert {company for object_id, company in moved if object_id == one} == {2}
    assert {company for object_id, company in moved if object_id != one} == {1}


async def test_what_is_done_again_is_of_each_company(stand: AnalysisStand, monkeypatch: pytest.MonkeyPatch) -> None:
    many, one = await two_companies(stand, 10)
    await stand.analysis.work()
    jobs = [Job(ScriptKind.STATISTICS, 1, object_id) for object_id in many]
    last = Job(ScriptKind.STATISTICS, 2, one)
    async with stand.database.writing() as connection:
        await add_todos(connection, [JobRange(job, BEGIN_US, BEGIN_US + 1) for job in [*jobs, last]])
    async with stand.database.reading() as connection:
        found = await next_todos(connection, {*jobs, last}.__contains__)
        assert [todo.job for todo in found] == [jobs[0], last, *jobs[1:]]
        assert [todo.job for todo in await next_todos(connection, {last}.__contains__)] == [last]
        assert await next_todos(connection, lambda job: False) == []
    again: list[int] = []

    async def costly(script: Script, todo: Any, progress: Any) -> None:
        again.append(todo.job.object_id)
        time.sleep(0.01)  # noqa: ASYNC251 - a turn is measured by the clock

    monkeypatch.setattr(analysis, "_TURN_S", 0.0)
    monkeypatch.setattr(stand.analysis._statistics, "redo", costly)
    stand.analysis._has_todos = True
    await stand.analysis._work_once()
    assert again == [many[0], one]
