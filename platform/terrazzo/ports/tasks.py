"""The port to the supervisor of long-lived tasks: each has a name, and a policy for its failure."""

from __future__ import annotations

import enum
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple, Protocol

from terrazzo.retry import Retry

Work = Callable[[], Awaitable[Any]]
"""The work of a task; called again for each restart. When it returns, the task has ended."""

RESTART = Retry(first_s=0.2, most_s=5.0, jitter=0.2)


class OnFailure(enum.Enum):
    """What happens when a task raises."""

    RESTART = "restart"
    """It starts again after a pause, and is named as degraded until it has worked for a while."""

    REPORT = "restart and report"
    """As ``RESTART``, and the platform is not ready until it runs again: it serves what ready means."""

    STOP = "stop"
    """The process ends, with exit status 1: going on without it would be half alive."""


class Task(Protocol):
    """A task that was started by ``Tasks``."""

    @property
    def is_running(self) -> bool:
        """Whether it is running: it has not ended and is not waiting for a restart."""
        ...

    async def wait(self) -> None:
        """Returns when it has ended: its work returned, or it failed and doesn't start again."""
        ...

    async def stop(self) -> None:
        """Cancels it and waits for its end; may be called again."""
        ...


class Tasks(Protocol):
    """Runs tasks. Their state, restarts and last errors are shown in ``/metrics``, ``/readyz`` and ``doctor``."""

    def spawn(self, name: str, work: Work, on_failure: OnFailure, *, retry: Retry = RESTART) -> Task:
        """Starts ``work``. ``name`` labels it in metrics, so that names must come from a bounded set.

        What ``work`` raises is logged, counted, and answered as ``on_failure`` says. When the pauses of ``retry``
        are used up the process ends.
        """
        ...

    def repeat(
        self, name: str, interval_s: float, work: Work, on_failure: OnFailure, *, retry: Retry = RESTART
    ) -> Task:
        """Awaits ``work`` again and again, ``interval_s`` after it ended."""
        ...


class TaskStatus(NamedTuple):
    """A task; ``last_error`` is the class of its last error, empty where it never failed."""

    name: str
    state: str
    restarts: int
    failures: int
    last_error: str


class TaskHealth(Protocol):
    """How the long-lived tasks are; what each maps to is the class of its last error."""

    def all_tasks(self) -> Sequence[TaskStatus]:
        """Every task so far, by name."""
        ...

    def degraded(self) -> dict[str, str]:
        """The tasks that are down, or failed a moment ago."""
        ...

    def not_ready(self) -> dict[str, str]:
        """The tasks that are down and serve what ready means."""
        ...
