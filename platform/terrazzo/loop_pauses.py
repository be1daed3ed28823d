"""``LoopPauses``: lets long work on the event loop yield to other tasks."""

from __future__ import annotations

import asyncio
from time import perf_counter

_AT_A_STRETCH_S = 0.005


class LoopPauses:
    """Yields to the event loop when the work has run for ``_AT_A_STRETCH_S`` without a pause."""

    def __init__(self) -> None:
        self._since = perf_counter()

    async def pause(self) -> None:
        """Yields if it is time to; otherwise only reads the clock. To be awaited once for each item of the work."""
        if perf_counter() - self._since > _AT_A_STRETCH_S:
            await asyncio.sleep(0)
            self._since = perf_counter()
