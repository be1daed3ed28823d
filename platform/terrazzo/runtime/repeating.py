"""Work that is done again and again while the platform runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from terrazzo.errors import Unavailable
from terrazzo.ports.store import StoreUnavailable
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

Work = Callable[[], Awaitable[object]]


def start_repeating(
    name: str, interval_s: float, work: Work, *, on_failure: Callable[[], None]
) -> Callable[[], Awaitable[None]]:
    """Repeats ``work`` with pauses; returns what ends it.

    A part that is unavailable is logged and asked again; anything else is a failure, and the end.
    """
    task = asyncio.create_task(_repeat(name, interval_s, work, on_failure), name=name)

    async def stop() -> None:
        task.cancel()
        await asyncio.wait({task})

    return stop


async def _repeat(name: str, interval_s: float, work: Work, on_failure: Callable[[], None]) -> None:
    log = SparseLog(_log)
    while True:
        try:
            await work()
        except (Unavailable, StoreUnavailable) as error:
            log.warning("%s: %s", name, error)
        except Exception:  # noqa: BLE001 - whatever it is, the process must not go on half alive
            _log.exception("%s failed; the platform stops", name)
            on_failure()
            return
        await asyncio.sleep(interval_s)
