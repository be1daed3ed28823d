"""The tasks that a broker runs: long-lived ones by a port that the embedding program may fill, and those of one peer.

The port has the shape of a supervisor's ``spawn``: a name, what is to be done, and what its failure means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, Protocol

from .limited_log import limited_logger
from .stats import Stats

log = limited_logger("terrazzo_broker.faults")

FIRST_PAUSE_S = 0.2
MOST_PAUSE_S = 30.0

Work = Callable[[], Awaitable[Any]]
"""What a task does; called anew for each restart. One that returns has done what it was for."""


class OnFailure(Enum):
    """What an exception from a task means."""

    RESTART = "restart"
    """It starts again after a pause; the broker goes on without it meanwhile."""

    REPORT = "restart and report"
    """As ``RESTART``, and nobody can connect until it runs again."""


class Task(Protocol):
    """A task that was spawned."""

    @property
    def is_running(self) -> bool:
        """Whether it works, neither waiting for a restart nor ended."""
        ...

    async def stop(self) -> None:
        """Cancels it and waits for its end; more than once is not an error."""


class Tasks(Protocol):
    """Runs the broker's long-lived tasks: the sweep, and the accepting of each listener that isn't the loop's own."""

    def spawn(self, name: str, work: Work, on_failure: OnFailure) -> Task:
        """Starts ``work``, and starts it again after a pause whenever it raises; each failure is counted and logged."""
        ...


class RestartedTask:
    """One task of ``RestartingTasks``: runs ``work``, and again after each failure, until ``stop``."""

    def __init__(self, name: str, work: Work, stats: Stats) -> None:
        self._name = name
        self._work = work
        self._stats = stats
        self.is_running = True
        self._is_stopping = False
        self._task = asyncio.create_task(self._run(), name=name)

    async def stop(self) -> None:
        """Cancels it and waits for its end."""
        self._is_stopping = True
        self._task.cancel()
        await asyncio.wait({self._task})
        self.is_running = False

    async def _run(self) -> None:
        loop, pause_s = asyncio.get_running_loop(), FIRST_PAUSE_S
        while True:
            began_s = loop.time()
            try:
                await self._work()
                self.is_running = False
                return
            except Exception:  # whatever ends a task is told, and it starts again, unless it is to end
                self.is_running = False
                if self._is_stopping:
                    return
                self._stats.task_failures += 1
                pause_s = FIRST_PAUSE_S if loop.time() - began_s > MOST_PAUSE_S else pause_s
                log.exception("task %s failed, and starts again in %.1f s", self._name, pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, MOST_PAUSE_S)
            self.is_running = True


class RestartingTasks:
    """``Tasks`` for a broker that is given none: counts failures in ``Stats.task_failures``, and logs them."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats

    def spawn(self, name: str, work: Work, on_failure: OnFailure) -> RestartedTask:
        """Starts a task, as ``Tasks.spawn``; the pause is 0.2 s and doubles up to 30 s."""
        return RestartedTask(name, work, self._stats)


class PeerTasks:
    """Short tasks, each about one peer: what one raises is logged, counted, and ends that peer's connection alone."""

    def __init__(self, stats: Stats) -> None:
        self._stats = stats
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, name: str, work: Work, on_failure: Callable[[], None]) -> asyncio.Task[None]:
        """Starts ``work``; ``on_failure`` ends the connection that it is about."""
        task = asyncio.create_task(self._run(name, work, on_failure), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _run(self, name: str, work: Work, on_failure: Callable[[], None]) -> None:
        try:
            await work()
        except Exception:  # a fault of ours ends this connection alone
            self._stats.internal_errors += 1
            log.exception("%s: internal error", name)
            on_failure()

    def cancel(self) -> None:
        """Cancels all of them."""
        for task in self._tasks:
            task.cancel()

    async def finish(self) -> None:
        """Waits until they have ended."""
        await asyncio.gather(*self._tasks, return_exceptions=True)
