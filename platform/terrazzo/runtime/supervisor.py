"""The supervisor: starts all long-lived tasks, and restarts them or stops the platform when they fail."""

from __future__ import annotations

import asyncio
import enum
import logging
import time
from collections.abc import Callable, Mapping

from terrazzo.errors import Unavailable
from terrazzo.ports.store import StoreUnavailable
from terrazzo.ports.tasks import RESTART, OnFailure, TaskStatus, Work
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

END_S = 30.0  # in which a task that is told to end does so, with what it has to write
HEALTHY_AFTER_S = 10.0  # a task that has run this long since its last failure has recovered


class TaskState(enum.Enum):
    """The states of a supervised task."""

    RUNNING = "running"
    RESTARTING = "restarting"
    ENDED = "ended"
    FAILED = "failed"


class SupervisedTask:
    """One task under a supervisor; ``terrazzo.ports.tasks.Task`` for whoever spawned it."""

    def __init__(self, name: str, work: Work, on_failure: OnFailure, retry: Retry) -> None:
        self.name = name
        self.work = work
        self.on_failure = on_failure
        self.state = TaskState.RUNNING
        self.restarts = 0
        self.failures = 0
        self.failed_s: float | None = None  # when it failed last, by the supervisor's clock
        self.last_error = ""  # the class alone: a text may carry what terminals sent
        self.attempts = Attempts(retry)
        self.log = SparseLog(_log)
        self.runner: asyncio.Task[None] | None = None

    @property
    def is_running(self) -> bool:
        """Whether it works now."""
        return self.state is TaskState.RUNNING

    @property
    def is_down(self) -> bool:
        """Whether it failed and has not started again."""
        return self.state in (TaskState.RESTARTING, TaskState.FAILED)

    async def wait(self) -> None:
        """Returns when it has ended."""
        if self.runner is not None:
            await asyncio.wait({self.runner})

    async def stop(self) -> None:
        """Cancels it and waits for its end; what hasn't ended after a while is named, and cancelled once more."""
        runner = self.runner
        while runner is not None and not runner.done():
            runner.cancel()
            await asyncio.wait({runner}, timeout=END_S)
            if not runner.done():
                _log.warning("task %s has not ended within %g s of being told to", self.name, END_S)
        self.state = TaskState.FAILED if self.state is TaskState.FAILED else TaskState.ENDED


class Supervisor:
    """Runs tasks by their policies (``terrazzo.ports.tasks.Tasks``) and keeps the state of each.

    ``on_stop`` is called when a task failed for good that the process can't do without. ``clock``: monotonic seconds.
    """

    def __init__(self, *, on_stop: Callable[[], None], clock: Callable[[], float] = time.monotonic) -> None:
        self._on_stop = on_stop
        self._clock = clock
        self._tasks: dict[str, SupervisedTask] = {}

    @property
    def tasks(self) -> Mapping[str, SupervisedTask]:
        """All tasks so far by name; of several with one name the newest."""
        return self._tasks

    def spawn(self, name: str, work: Work, on_failure: OnFailure, *, retry: Retry = RESTART) -> SupervisedTask:
        """Starts a task, as ``Tasks.spawn`` describes; counts of an earlier task of the same name go on."""
        task = SupervisedTask(name, work, on_failure, retry)
        before = self._tasks.get(name)
        if before is not None:
            task.restarts, task.failures, task.last_error = before.restarts, before.failures, before.last_error
        self._tasks[name] = task
        task.runner = asyncio.create_task(self._supervise(task), name=name)
        return task

    def repeat(
        self, name: str, interval_s: float, work: Work, on_failure: OnFailure, *, retry: Retry = RESTART
    ) -> SupervisedTask:
        """Starts a repeated task, as ``Tasks.repeat`` describes.

        ``Unavailable`` and ``StoreUnavailable`` are logged and tried again after the interval, without a restart.
        """

        async def again_and_again() -> None:
            log = SparseLog(_log)
            while True:
                try:
                    await work()
                except (Unavailable, StoreUnavailable) as error:
                    if _is_being_stopped():
                        raise
                    log.warning("%s: %s", name, error)
                await asyncio.sleep(interval_s)

        return self.spawn(name, again_and_again, on_failure, retry=retry)

    async def close(self) -> None:
        """Stops the tasks that still run; parts have stopped their own before."""
        for task in self._tasks.values():
            await task.stop()

    def all_tasks(self) -> list[TaskStatus]:
        """Every task so far, by name."""
        return [
            TaskStatus(name, task.state.value, task.restarts, task.failures, task.last_error)
            for name, task in sorted(self._tasks.items())
        ]

    def degraded(self) -> dict[str, str]:
        """The tasks that are down, or failed less than ``HEALTHY_AFTER_S`` ago, with the class of their last error."""
        since_s = self._clock() - HEALTHY_AFTER_S
        return {
            name: task.last_error
            for name, task in self._tasks.items()
            if task.is_down or (task.failed_s is not None and task.failed_s > since_s)
        }

    def not_ready(self) -> dict[str, str]:
        """The tasks that are down and serve what ready means, with the class of their last error."""
        return {
            name: task.last_error
            for name, task in self._tasks.items()
            if task.is_down and task.on_failure is not OnFailure.RESTART
        }

    async def run_once(self, task: SupervisedTask) -> None:
        """Runs the task's work once, until it returns or raises."""
        await task.work()

    async def _supervise(self, task: SupervisedTask) -> None:
        while True:
            began_s = self._clock()
            try:
                await self.run_once(task)
            except asyncio.CancelledError as error:
                if _is_being_stopped():
                    raise
                pause_s = self._failed(task, error, began_s)  # what it waited for was cancelled: that is a failure, too
            except Exception as error:  # noqa: BLE001 - whatever ends a task is told, and answered by its policy
                if _is_being_stopped():  # it failed as it was cancelled, in place of saying so: it must not begin anew
                    task.log.warning("task %s failed at its end: %r", task.name, error)
                    return
                pause_s = self._failed(task, error, began_s)
            else:
                task.state = TaskState.ENDED
                return
            if pause_s is None:
                return
            await asyncio.sleep(pause_s)
            task.restarts += 1
            task.state = TaskState.RUNNING

    def _failed(self, task: SupervisedTask, error: BaseException, began_s: float) -> float | None:
        """Applies the policy to a failure; returns seconds until the restart, None where there is none."""
        if self._clock() - began_s >= HEALTHY_AFTER_S:
            task.attempts.succeeded()
        task.last_error = type(error).__name__
        task.failures += 1
        task.failed_s = self._clock()
        pause_s = None if task.on_failure is OnFailure.STOP else task.attempts.failed()
        if pause_s is None:
            task.state = TaskState.FAILED
            _log.critical("task %s failed; the platform stops", task.name, exc_info=error)
            self._on_stop()
            return None
        task.state = TaskState.RESTARTING
        if isinstance(error, (Unavailable, StoreUnavailable)):
            task.log.warning("task %s waits %.1f s: %s", task.name, pause_s, error)
        else:
            task.log.error("task %s failed, and starts again in %.1f s", task.name, pause_s, exc_info=True)
        return pause_s


def _is_being_stopped() -> bool:
    current = asyncio.current_task()
    return current is not None and current.cancelling() > 0
