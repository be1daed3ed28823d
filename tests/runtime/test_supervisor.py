"""Tasks by their policies: what fails is told, and starts again or ends the process."""

from __future__ import annotations

import asyncio
import contextlib
import logging

import pytest

from terrazzo.errors import Unavailable
from terrazzo.ports.tasks import OnFailure
from terrazzo.retry import Retry
from terrazzo.runtime.supervisor import HEALTHY_AFTER_S, Supervisor, TaskState
from waiting import until

SOON = Retry(first_s=0.001, most_s=0.01)


class Stops:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self) -> None:
        self.count += 1


class Flaky:
    """Fails so many times, then waits for good."""

    def __init__(self, failures: int, error: Exception | None = None) -> None:
        self.left = failures
        self.error = error or RuntimeError("planted")
        self.runs = 0

    async def __call__(self) -> None:
        self.runs += 1
        if self.left:
            self.left -= 1
            raise self.error
        await asyncio.Event().wait()


async def test_what_fails_starts_again_and_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    stops, work = Stops(), Flaky(2)
    supervisor = Supervisor(on_stop=stops)
    task = supervisor.spawn("work", work, OnFailure.RESTART, retry=SOON)
    await until(lambda: work.runs == 3)
    assert (task.state, task.restarts, task.failures, task.last_error) == (TaskState.RUNNING, 2, 2, "RuntimeError")
    assert supervisor.degraded() == {"work": "RuntimeError"}
    assert supervisor.not_ready() == {}
    assert "task work failed" in caplog.text
    assert stops.count == 0
    await task.stop()
    assert task.state is TaskState.ENDED


async def test_a_task_that_works_again_is_healthy_after_a_while() -> None:
    now_s = 0.0
    work = Flaky(1)
    supervisor = Supervisor(on_stop=Stops(), clock=lambda: now_s)
    task = supervisor.spawn("work", work, OnFailure.RESTART, retry=SOON)
    await until(lambda: work.runs == 2)
    assert "work" in supervisor.degraded()
    now_s = HEALTHY_AFTER_S + 1
    assert supervisor.degraded() == {}
    await task.stop()


async def test_what_serves_readiness_takes_it_away_until_it_runs_again() -> None:
    work = Flaky(1)
    supervisor = Supervisor(on_stop=Stops())
    task = supervisor.spawn("work", work, OnFailure.REPORT, retry=Retry(first_s=0.2, most_s=0.2))
    await until(lambda: supervisor.not_ready() == {"work": "RuntimeError"})
    await until(lambda: task.is_running and work.runs == 2)
    assert supervisor.not_ready() == {}
    await task.stop()


async def test_one_that_must_not_end_ends_the_process() -> None:
    stops, work = Stops(), Flaky(1)
    supervisor = Supervisor(on_stop=stops)
    task = supervisor.spawn("work", work, OnFailure.STOP)
    await until(lambda: stops.count == 1)
    assert (task.state, work.runs) == (TaskState.FAILED, 1)
    assert supervisor.not_ready() == {"work": "RuntimeError"}


async def test_attempts_that_are_used_up_end_the_process() -> None:
    stops, work = Stops(), Flaky(9)
    supervisor = Supervisor(on_stop=stops)
    supervisor.spawn("work", work, OnFailure.RESTART, retry=Retry(first_s=0.001, most_s=0.001, attempts=3))
    await until(lambda: stops.count == 1)
    assert work.runs == 3


async def test_one_that_returns_is_done() -> None:
    supervisor = Supervisor(on_stop=Stops())

    async def work() -> None:
        return

    task = supervisor.spawn("work", work, OnFailure.STOP)
    await until(lambda: task.state is TaskState.ENDED)
    assert supervisor.degraded() == {}


async def test_a_part_that_is_away_is_asked_again_without_a_restart(caplog: pytest.LogCaptureFixture) -> None:
    turns = 0

    async def look() -> None:
        nonlocal turns
        turns += 1
        if turns == 1:
            raise Unavailable("the database is away")

    supervisor = Supervisor(on_stop=Stops())
    task = supervisor.repeat("look", 0.001, look, OnFailure.STOP)
    await until(lambda: turns >= 3)
    assert (task.restarts, task.is_running) == (0, True)
    assert "the database is away" in caplog.text
    await task.stop()


async def test_what_is_away_is_a_line_without_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    work = Flaky(1, Unavailable("the database is away"))
    supervisor = Supervisor(on_stop=Stops())
    task = supervisor.spawn("work", work, OnFailure.RESTART, retry=SOON)
    await until(lambda: work.runs == 2)
    record = next(each for each in caplog.records if "the database is away" in each.getMessage())
    assert record.levelno == logging.WARNING
    assert not record.exc_info
    await task.stop()


async def test_stopping_waits_and_may_be_repeated() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("ended")

    supervisor = Supervisor(on_stop=Stops())
    task = supervisor.spawn("work", work, OnFailure.STOP)
    await asyncio.sleep(0)
    await task.stop()
    await task.stop()
    assert ended == ["ended"]


@pytest.mark.parametrize("error", [RuntimeError("planted"), Unavailable("database: the connection is closed")])
@pytest.mark.parametrize("way", ["spawn", "repeat"])
async def test_what_fails_as_it_is_cancelled_ends_and_does_not_begin_anew(error: Exception, way: str) -> None:
    """As a transaction does whose connection can't be given back: its error takes the cancellation's place."""
    runs, waits = 0, asyncio.Event()

    async def work() -> None:
        nonlocal runs
        runs += 1
        try:
            waits.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise error from None

    supervisor = Supervisor(on_stop=Stops())
    if way == "spawn":
        task = supervisor.spawn("work", work, OnFailure.RESTART, retry=SOON)
    else:
        task = supervisor.repeat("work", 0.001, work, OnFailure.RESTART, retry=SOON)
    await waits.wait()
    async with asyncio.timeout(20):
        await task.stop()
    assert (runs, task.state, task.failures) == (1, TaskState.ENDED, 0)


async def test_what_does_not_end_is_named_and_told_again(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("terrazzo.runtime.supervisor.END_S", 0.05)
    waits = asyncio.Event()

    async def stubborn() -> None:
        for _ in range(2):
            with contextlib.suppress(asyncio.CancelledError):
                waits.set()
                await asyncio.Event().wait()
        await asyncio.Event().wait()

    task = Supervisor(on_stop=Stops()).spawn("deaf", stubborn, OnFailure.RESTART)
    await waits.wait()
    async with asyncio.timeout(20):
        await task.stop()
    assert task.state is TaskState.ENDED
    assert "task deaf has not ended within 0.05 s of being told to" in caplog.text


async def test_restarts_are_counted_over_tasks_of_one_name() -> None:
    supervisor = Supervisor(on_stop=Stops())
    first = supervisor.spawn("work", Flaky(1), OnFailure.RESTART, retry=SOON)
    await until(lambda: first.restarts == 1)
    await first.stop()
    second = supervisor.spawn("work", Flaky(0), OnFailure.RESTART)
    assert (supervisor.tasks["work"].restarts, supervisor.tasks["work"].last_error) == (1, "RuntimeError")
    await second.stop()


async def test_waiting_for_what_was_cancelled_is_a_failure_too() -> None:
    runs = 0

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            cancelled.cancel()
            await cancelled
        await asyncio.Event().wait()

    supervisor = Supervisor(on_stop=Stops())
    task = supervisor.spawn("work", work, OnFailure.RESTART, retry=SOON)
    await until(lambda: runs == 2)
    assert (task.failures, task.last_error, task.state) == (1, "CancelledError", TaskState.RUNNING)
    await task.stop()
    assert task.failures == 1, "being stopped is none"


async def test_what_is_left_ends_with_the_supervisor() -> None:
    supervisor = Supervisor(on_stop=Stops())
    tasks = [supervisor.spawn(name, Flaky(0), OnFailure.RESTART) for name in ("one", "two")]
    await supervisor.close()
    assert [task.state for task in tasks] == [TaskState.ENDED] * 2


async def test_whoever_waits_for_the_end_of_a_task_hears_of_it() -> None:
    supervisor, may_end = Supervisor(on_stop=Stops()), asyncio.Event()
    task = supervisor.spawn("work", may_end.wait, OnFailure.STOP)
    waiting = asyncio.ensure_future(task.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    may_end.set()
    await waiting
    assert task.state is TaskState.ENDED
