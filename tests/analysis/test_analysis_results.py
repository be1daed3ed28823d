"""Results of statistics are made and answered in turns of the loop, however many there are."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from terrazzo import loop_pauses
from terrazzo.analysis.periods import Calendar, Period, PeriodType
from terrazzo.analysis.results import ResultMaker, write_results
from terrazzo.analysis.scripts import Job, ScriptKind
from terrazzo.api.operations import statistics

HOUR_US = 3_600_000_000


class Connection:
    """Takes statements at once, without a turn of anybody else's."""

    dialect = SimpleNamespace(name="sqlite")

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    async def execute(self, statement: Any, rows: Any = ()) -> Any:
        self.rows += rows
        return SimpleNamespace(scalars=list)


class Turns:
    """How many turns others have."""

    async def __aenter__(self) -> Turns:
        self.count = 0
        self._task = asyncio.create_task(self._take())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._task.cancel()

    async def _take(self) -> None:
        while True:
            self.count += 1
            await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def no_stretch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pause may be made after each piece of work."""
    monkeypatch.setattr(loop_pauses, "_AT_A_STRETCH_S", 0.0)


async def test_thousands_of_values_are_written_in_turns() -> None:
    connection = Connection()
    script = SimpleNamespace(kind=ScriptKind.STATISTICS, company_id=1, id=2, uid="2")
    job = Job(ScriptKind.STATISTICS, 2, 3)
    maker = ResultMaker(
        script,  # type: ignore[arg-type]
        job,
        calendar=Calendar(ZoneInfo("UTC")),
        now_us=5,
    )
    hours = [Period(PeriodType.HOUR, at * HOUR_US, (at + 1) * HOUR_US) for at in range(10)]
    values = {hour: {f"V{number}": number for number in range(50)} for hour in hours}
    async with Turns() as others:
        found = await maker.values(Period(PeriodType.HOUR, 0, 10 * HOUR_US), values)
        assert others.count >= 500
    await write_results(connection, job, [found])  # type: ignore[arg-type]
    assert len(connection.rows) == 500
    assert connection.rows[-1] == {
        "company_id": 1,
        "script_id": 2,
        "script_uid": "2",
        "object_id": 3,
        "type": int(PeriodType.HOUR),
        "start_time": 9 * HOUR_US,
        "end_time": 10 * HOUR_US,
        "var_name": "V49",
        "data": "49",
        "created": 5,
        "description": connection.rows[-1]["description"],
        "is_available": 1,
    }
    assert connection.rows[-1]["description"]


async def test_thousands_of_records_are_answered_in_turns() -> None:
    times = {"start_time": 0, "end_time": HOUR_US, "created": 5}
    row = {"id": 1, "object_id": 3, "script_uid": "2", "type": 1, "var_name": "V", "data": "1", "description": "d"}
    rows = [{**row, **times, "is_available": 1, "company_id": 1, "script_id": 2} for _ in range(100)]
    async with Turns() as others:
        records = await statistics._records(SimpleNamespace(zone=ZoneInfo("UTC")), rows)  # type: ignore[arg-type]
        assert others.count >= 100
    assert len(records) == 100
