"""What requests compute in Python beside the event loop: on one thread at a time, whoever asks.

Threads that compute share the interpreter with the event loop, evenly: with five of them it has a sixth of the time,
and none of them is done sooner than one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ComputeThread:
    """Does one piece of work after the other, in the order in which they came; each should be of some 10 ms."""

    def __init__(self) -> None:
        self._is_taken = asyncio.Lock()

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns or raises. Who is cancelled meanwhile doesn't wait for it."""
        async with self._is_taken:
            return await asyncio.to_thread(work, *args, **kwargs)
