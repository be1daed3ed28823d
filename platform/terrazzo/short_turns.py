"""How long a thread that computes keeps the interpreter when another one waits for it.

The event loop does what it does for all companies in turns of a millisecond or two, and waits for the interpreter
several times for each request: beside threads that compute it has it back after one millisecond. While none does, the
threads that write to the store and to live clients take it from the loop after five, as Python has it: what they would
win by that is less than what the turns cost.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

SHORT_S = 0.001
LONG_S = 0.005


class ShortTurns:
    """Context manager of a thread: while at least one is in it, threads let go of the interpreter sooner."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._computing = 0

    def __enter__(self) -> None:
        with self._lock:
            self._computing += 1
            if self._computing == 1:
                sys.setswitchinterval(SHORT_S)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._computing -= 1
            if not self._computing:
                sys.setswitchinterval(LONG_S)


computing = ShortTurns()
"""Of the process."""


class ComputingThreads(ThreadPoolExecutor):
    """Threads whose work computes, as far as it does not wait."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """As ``ThreadPoolExecutor.submit``."""
        return super().submit(_beside_others, fn, *args, **kwargs)  # type: ignore[arg-type]


def _beside_others(work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    with computing:
        return work(*args, **kwargs)
