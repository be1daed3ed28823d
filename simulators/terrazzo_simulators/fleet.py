"""``Fleet``: many terminals in one process, on one event loop and a few threads for connecting."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from .claim import Claim
from .clock import Clock, SeededClock, WallClock
from .device import Device, Habits
from .gate import Gate
from .link import Link, LinkOptions
from .paho_link import PahoLink
from .scram_link import ScramLink
from .spec import TerminalSpec, require_unique
from .statistics import Statistics

TERMINALS_MOST = 5_000
_CONNECTING_THREADS = 8
_KEEP_S = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """The platform's address, the behaviour of the terminals, and how the fleet starts and ends."""

    link: LinkOptions = field(default_factory=LinkOptions)
    habits: Habits = field(default_factory=Habits)
    connect_rate: float = 200.0  # connects per second; 0: all at once
    clock_start_s: float | None = None  # None: the machine's clock; else a seeded clock that starts here
    claim_key: str = ""  # terminals ask for their credentials with it, where there is one
    drain_s: float = 5.0  # how long stopping waits for acknowledgements


class Fleet:
    """A fleet of simulated terminals. Use ``running``, or ``start`` and ``stop``."""

    def __init__(self, specs: Sequence[TerminalSpec], options: FleetOptions) -> None:
        if not 1 <= len(specs) <= TERMINALS_MOST:
            raise ValueError(f"a fleet has 1 to {TERMINALS_MOST} terminals, got {len(specs)}")
        require_unique(list(specs))
        self.statistics = Statistics()
        self._options = options
        self._gate = Gate(options.connect_rate)
        self._pool = ThreadPoolExecutor(_CONNECTING_THREADS, thread_name_prefix="terrazzo-connect")
        self.devices = {spec.uid: self._device(spec) for spec in specs}
        self._random = random.Random(options.habits.seed)  # made-up faults  # nosec B311
        self._tasks: list[asyncio.Task[None]] = []
        self._drain_s = options.drain_s

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Fleet]:
        """Starts the fleet, and stops it at the end of the block."""
        self.start()
        try:
            yield self
        finally:
            await self.stop()

    def start(self) -> None:
        """Lets all terminals connect, at most at the connect rate."""
        self._tasks = [
            asyncio.create_task(device.run(), name=f"terminal {uid}") for uid, device in self.devices.items()
        ]
        self._tasks.append(asyncio.create_task(self._keep(), name="keep-alive"))
        if self._options.habits.faults.storm_every_s > 0:
            self._tasks.append(asyncio.create_task(self._storm(), name="storms"))

    async def connected(self) -> None:
        """Waits until every terminal is connected. Raises the exception of a terminal's task that has failed."""
        everyone = asyncio.create_task(self._everyone(), name="waiting for the fleet")
        try:
            await asyncio.wait([everyone, *self._tasks], return_when=asyncio.FIRST_COMPLETED)
            self.check()
        finally:
            everyone.cancel()

    async def _everyone(self) -> None:
        for device in self.devices.values():
            await device.connected.wait()

    def check(self) -> None:
        """Raises the exception of a terminal's task that has failed."""
        for task in self._tasks:
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def abandon(self) -> None:
        """Has ``stop`` wait for no acknowledgement: nothing goes out any more."""
        self._drain_s = 0.0

    async def stop(self) -> None:
        """Waits at most ``drain_s`` for acknowledgements, disconnects, and ends all tasks."""
        await self._drain()
        for task in self._tasks:
            task.cancel()
        results = await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(device.link.close() for device in self.devices.values()))
        await asyncio.to_thread(self._pool.shutdown, cancel_futures=True)
        for result in results:
            if isinstance(result, Exception):
                raise result

    def _device(self, spec: TerminalSpec) -> Device:
        return Device(
            spec,
            habits=self._options.habits,
            clock=self._clock(),
            link=self._link(spec),
            gate=self._gate,
            statistics=self.statistics,
            claim=self._claim(),
        )

    def _claim(self) -> Claim | None:
        key, options = self._options.claim_key, self._options.link
        return Claim(key=key, options=options, pool=self._pool, on_error=self._count_error) if key else None

    def _link(self, spec: TerminalSpec) -> Link:
        if spec.dixie:
            return ScramLink(spec, self._options.link, on_error=self._count_error)
        return PahoLink(spec, self._options.link, pool=self._pool, on_error=self._count_error)

    def _clock(self) -> Clock:
        start_s = self._options.clock_start_s
        if start_s is None:
            return WallClock()
        return SeededClock(start_s=start_s, interval_s=self._options.habits.interval_s or 0.0)

    def _count_error(self) -> None:
        self.statistics.errors += 1

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(_KEEP_S)
            for device in self.devices.values():
                device.link.keep()

    async def _storm(self) -> None:
        """Cuts a share of the connections at the same moment, again and again."""
        faults = self._options.habits.faults
        devices = list(self.devices.values())
        count = max(1, round(len(devices) * faults.storm_share))
        while True:
            await asyncio.sleep(faults.storm_every_s)
            for device in self._random.sample(devices, count):
                device.cut()

    async def _drain(self) -> None:
        for device in self.devices.values():
            device.hush()
        try:
            async with asyncio.timeout(self._drain_s):
                await asyncio.gather(*(device.drained() for device in self.devices.values()))
        except TimeoutError:
            return  # the broker does not answer; the summary shows how many stayed unacknowledged
