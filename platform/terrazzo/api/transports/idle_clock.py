"""When a connection has been idle for too long."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


class IdleClock:
    """Calls back once when nothing was under way for ``timeout_s``. One timer, which looks again when it was early.

    ``loop``: that the connection is on, for whoever would have to ask the system for it. ``is_held``: a request is
    under way; whoever begins one sets it, ``restart`` ends it.

    Args:
        on_idle: closes the connection.
    """

    __slots__ = ("_on_idle", "_since_s", "_timeout_s", "_timer", "is_held", "loop")

    def __init__(self, timeout_s: float, on_idle: Callable[[], None]) -> None:
        self._timeout_s = timeout_s
        self._on_idle = on_idle
        self.loop = asyncio.get_running_loop()
        self.is_held = False
        self._since_s = self.loop.time()
        self._timer: asyncio.TimerHandle | None = self.loop.call_later(timeout_s, self._look)

    def restart(self) -> None:
        """None is, from now on."""
        self.is_held = False
        self._since_s = self.loop.time()

    def stop(self) -> None:
        """Never calls back."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _look(self) -> None:
        now_s = self.loop.time()
        due_s = (now_s if self.is_held else self._since_s) + self._timeout_s
        if now_s < due_s:
            self._timer = self.loop.call_at(due_s, self._look)
        else:
            self._timer = None
            self._on_idle()
