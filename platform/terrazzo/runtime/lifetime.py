"""How long parts live: what a start has made is undone in reverse order."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from terrazzo.runtime.supervisor import Supervisor

NewSupervisor = Callable[[Callable[[], None]], Supervisor]
"""Makes the supervisor of a platform; takes what it calls when the process should end."""


def new_supervisor(on_stop: Callable[[], None]) -> Supervisor:
    """The one that every platform has unless it is given another."""
    return Supervisor(on_stop=on_stop)


class Lifetime(contextlib.AsyncExitStack):
    """What undoes each step of the start, and the supervisor of everything that runs meanwhile.

    ``failed`` is set when the process should end because a task failed that it can't do without.
    """

    def __init__(self, supervisor: NewSupervisor = new_supervisor) -> None:
        super().__init__()
        self.failed = asyncio.Event()
        self.tasks = supervisor(self.failed.set)
        self.push_async_callback(self.tasks.close)  # last of all: parts have stopped theirs by then
