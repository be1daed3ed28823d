"""What requests compute in Python beside the event loop: on one thread at a time, companies in turn.

Threads that compute share the interpreter with the event loop, evenly: with five of them it has a sixth of the time,
and none of them is done sooner than one after the other. What goes through many records of the store is one of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from terrazzo.company_turns import computing_turns
from terrazzo.ports import at_work

P = ParamSpec("P")
T = TypeVar("T")


class ComputeThread:
    """Does one piece of work after the other, companies in turn; each should be of some 10 ms."""

    def __init__(self) -> None:
        self._is_taken = asyncio.Lock()

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns or raises. Who is cancelled meanwhile doesn't wait for it.

        Raises:
            Throttled: too much of the company waits to be computed.
        """
        async with computing_turns().turn(at_work.company_id()), self._is_taken:
            return await asyncio.to_thread(work, *args, **kwargs)
