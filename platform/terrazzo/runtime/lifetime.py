"""How long parts live: what a start has made is undone in reverse order."""

from __future__ import annotations

import asyncio
import contextlib

from terrazzo.runtime.repeating import Work, start_repeating


class Lifetime(contextlib.AsyncExitStack):
    """What undoes each step of the start; ``failed`` is set when a part can't go on and the process should end."""

    def __init__(self) -> None:
        super().__init__()
        self.failed = asyncio.Event()

    def repeat(self, name: str, interval_s: float, work: Work) -> None:
        """Repeats ``work`` until it is undone; its failure is the platform's."""
        self.push_async_callback(start_repeating(name, interval_s, work, on_failure=self.failed.set))
