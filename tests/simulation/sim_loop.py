"""An event loop under a simulated clock: nothing waits, nothing runs beside it, and the same calls give the same run.

It is asyncio's own loop without sockets. When nothing is ready the clock goes on to what is due next. Work that parts
hand to threads is done on the loop, as long after as the simulated disk takes. ``create_server`` notes who accepts
connections at which port, for ``sim_network``.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest import mock

from terrazzo_broker.scheduling.turns import Turns

START_S = 1_700_000_000.0
_TICK_S = 1e-6
_SPINS = 10_000  # turns of the loop at one moment, after which time goes on all the same


class SimClock:
    """Seconds since the beginning of the run, and what the machine's clock says, which may jump."""

    def __init__(self) -> None:
        self.now_s = 1_000.0
        self.offset_s = START_S

    def monotonic(self) -> float:
        """Never goes back."""
        return self.now_s

    def wall(self) -> float:
        """Unix time."""
        return self.now_s + self.offset_s

    def wall_ns(self) -> int:
        """Unix time in nanoseconds."""
        return int(self.wall() * 1_000_000) * 1_000

    def wall_us(self) -> int:
        """Unix time in microseconds."""
        return int(self.wall() * 1_000_000)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Meanwhile the module ``time`` shows this clock to everybody, those too who have its functions already."""
        shown = {
            "monotonic": self.monotonic,
            "time": self.wall,
            "time_ns": self.wall_ns,
            "perf_counter": self.monotonic,
        }
        modules = [module for name, module in sys.modules.items() if name.startswith("terrazzo")]
        with ExitStack() as stack:
            for module in modules:
                if getattr(module, "perf_counter", None) is time.perf_counter:
                    stack.enter_context(mock.patch.object(module, "perf_counter", self.monotonic))
            stack.enter_context(mock.patch.dict(Turns.__init__.__kwdefaults__, clock=self.monotonic))
            stack.enter_context(mock.patch.multiple(time, **shown))
            yield


class Deadlock(Exception):
    """Nothing is ready and nothing is due: the simulated world stands still."""


class _Selector:
    """Lets the clock go on instead of waiting."""

    def __init__(self, clock: SimClock) -> None:
        self._clock = clock
        self._spins = 0

    def select(self, timeout: float | None) -> list[Any]:
        """Goes on to what is due next."""
        if timeout is None:
            raise Deadlock
        self._spins = 0 if timeout else self._spins + 1
        self._clock.now_s += max(timeout, _TICK_S) if timeout or self._spins > _SPINS else 0
        return []


class SimLoop(asyncio.BaseEventLoop):
    """One life of a process. ``work_s``: how long a piece of work on a thread takes. ``servers``: by port."""

    def __init__(self, clock: SimClock, work_s: Callable[[], float]) -> None:
        super().__init__()
        self.clock = clock
        self._selector = _Selector(clock)
        self._clock_resolution = _TICK_S
        self._work_s = work_s
        self.servers: dict[int, Callable[[], asyncio.Protocol]] = {}
        self.is_dead = False
        self.faults: list[str] = []
        self.set_exception_handler(self._note_fault)

    def _note_fault(self, _loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if not self.is_dead:
            self.faults.append(f"{context['message']}: {context.get('exception')!r}")

    def time(self) -> float:
        """Seconds of the simulated clock."""
        return self.clock.now_s

    def _process_events(self, event_list: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody calls from another thread."""

    def die(self) -> None:
        """Ends the process: nothing that was under way goes on."""
        self.is_dead = True
        self._ready.clear()
        self._scheduled.clear()

    def run_in_executor(self, executor: Any, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Does the work on the loop, some time later."""
        future: asyncio.Future[Any] = self.create_future()
        self.call_later(self._work_s(), self.perform, future, lambda: func(*args))
        return future

    def perform(self, future: asyncio.Future[Any] | None, work: Callable[[], Any]) -> None:
        """Works, and answers whoever still waits."""
        try:
            result = work()
        except BaseException as error:  # noqa: BLE001 - as a thread's future does
            if future is not None and not future.done():
                future.set_exception(error)
        else:
            if future is not None and not future.done():
                future.set_result(result)

    async def create_server(self, protocol_factory: Any, host: Any = None, port: Any = None, **_: Any) -> Any:
        """Notes who accepts connections at a port."""
        bound = port or 40_000 + len(self.servers)
        self.servers[bound] = protocol_factory
        listening = SimpleNamespace(getsockname=lambda: (host, bound))
        return SimpleNamespace(
            sockets=[listening], close=lambda: self.servers.pop(bound, None), is_serving=lambda: bound in self.servers
        )
