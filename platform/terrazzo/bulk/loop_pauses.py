"""Long work on the event loop, with pauses in which everybody else goes on."""

from __future__ import annotations

import asyncio
from time import perf_counter

_AT_A_STRETCH_S = 0.005


class LoopPauses:
    """Lets others run whenever enough time has gone by."""

    def __init__(self) -> None:
        self._since = perf_counter()

    async def pause(self) -> None:
        """Costs next to nothing most times."""
        if perf_counter() - self._since > _AT_A_STRETCH_S:
            await asyncio.sleep(0)
            self._since = perf_counter()
