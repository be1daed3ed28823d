"""The broker's long-lived tasks, under the platform's supervisor."""

from __future__ import annotations

from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo_broker.tasks import OnFailure as BrokerOnFailure
from terrazzo_broker.tasks import Work


class BrokerTasks:
    """``terrazzo_broker.tasks.Tasks`` over ``terrazzo.ports.tasks.Tasks``; policies have the same values in both."""

    def __init__(self, tasks: Tasks) -> None:
        self._tasks = tasks

    def spawn(self, name: str, work: Work, on_failure: BrokerOnFailure) -> Task:
        """Starts ``work``; what follows when it fails is the supervisor's."""
        return self._tasks.spawn(name, work, OnFailure(on_failure.value))
