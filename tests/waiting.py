"""Waiting for a condition, never for a while; and for the end of a connection."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

DEADLINE_S = 15.0


async def until(condition: Callable[[], Any], what: str = "", *, timeout_s: float = DEADLINE_S) -> Any:
    """What the condition finds, as soon as it finds something; fails after the deadline."""
    try:
        async with asyncio.timeout(timeout_s):
            while not (found := condition()):  # noqa: ASYNC110 - the conditions are other parties' plain values
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"not within {timeout_s:g} s: {what or condition}") from None
    return found


async def close(writer: asyncio.StreamWriter) -> None:
    """Returns when the connection is closed: what is still closing at the end of a test is a warning in a later one."""
    writer.close()
    with contextlib.suppress(ConnectionError):
        await writer.wait_closed()
