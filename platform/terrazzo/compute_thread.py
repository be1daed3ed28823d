"""What requests compute in Python beside the event loop: on one thread at a time, companies in turn.

Threads that compute share the interpreter with the event loop, evenly: with five of them it has a sixth of the time,
and none of them is done sooner than one after the other.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from terrazzo.company_turns import CompanyTurns
from terrazzo.ports import at_work

P = ParamSpec("P")
T = TypeVar("T")


_MOST_WAITING = 1_000  # pieces of one company; each request and each task that computes has one at a time


class ComputeThread:
    """Does one piece of work at a time, each of some 10 ms: companies in turn, one's in the order in which they came.

    The company is the one that the current task works for (``at_work``).
    """

    def __init__(self) -> None:
        self.turns = CompanyTurns("computing", at_once=1, waiting=_MOST_WAITING)

    async def run(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What ``work`` returns or raises. Who is cancelled meanwhile doesn't wait for it.

        Raises:
            Throttled: too many pieces of the company's wait already.
        """
        async with self.turns.turn(at_work.company_id()):
            return await asyncio.to_thread(work, *args, **kwargs)
