"""The lifetime of a platform: what its start has made is undone in reverse order at its stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from terrazzo.runtime.supervisor import Supervisor

NewSupervisor = Callable[[Callable[[], None]], Supervisor]
"""Makes the supervisor of a platform; takes what it calls when the process should end."""


def new_supervisor(on_stop: Callable[[], None]) -> Supervisor:
    """The supervisor of a platform that is given no other; ``on_stop``: as in ``NewSupervisor``."""
    return Supervisor(on_stop=on_stop)


class Lifetime(contextlib.AsyncExitStack):
    """The callbacks that undo each step of the start, and the supervisor of the platform's tasks.

    ``failed`` is set when the process should end because a task failed that it can't do without.
    """

    def __init__(self, supervisor: NewSupervisor = new_supervisor) -> None:
        super().__init__()
        self.failed = asyncio.Event()
        self.tasks = supervisor(self.failed.set)
        self.push_async_callback(self.tasks.close)  # last of all: parts have stopped theirs by then
