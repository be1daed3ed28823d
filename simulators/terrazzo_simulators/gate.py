"""``Gate``: limits the rate at which a fleet connects."""

from __future__ import annotations

import asyncio


class Gate:
    """Lets ``per_second`` callers through, one after the other; 0 lets all through at once."""

    def __init__(self, per_second: float) -> None:
        self._gap_s = 1 / per_second if per_second > 0 else 0.0
        self._next_s = 0.0

    async def enter(self) -> None:
        """Waits until the caller may connect."""
        now_s = asyncio.get_running_loop().time()
        turn_s = max(now_s, self._next_s)
        self._next_s = turn_s + self._gap_s
        if turn_s > now_s:
            await asyncio.sleep(turn_s - now_s)
