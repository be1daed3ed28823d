"""The demo's terminals: a process of simulators that first delivers what the last week lacks, then goes on live."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from terrazzo.crypto.key_file import replace_private
from terrazzo.demo.site import TERMINALS, DemoTerminal
from terrazzo.domain.payload import decode
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.times import DAY_US, to_datetime

HOUR_US = 3_600_000_000
HISTORY_US = 7 * DAY_US + 12 * HOUR_US  # a week, and what a view of some hours is compared with in a chart
STEP_S = 300  # between two reports of the history
LIVE_S = 2.0
_MISSET_RETRY_S = 60.0
_STOP_S = 5.0


class Told(NamedTuple):
    """What a terminal has reported last: when, and the numbers in it."""

    time_us: int
    numbers: dict[str, float]


async def last_told(store: TimeSeriesStore, uid: str) -> Told | None:
    """The newest report of a terminal; None where there is none."""
    names = [name for name in await store.series(f"g/{uid}") if _is_of(name, uid)]
    newest = await store.latest(names, 1) if names else []
    if not newest:
        return None
    points = decode(newest[0].body)
    numbers = {name: value for name, value in points.items() if isinstance(value, int | float)}
    return Told(newest[0].time_us, {name: float(value) for name, value in numbers.items()})


def _is_of(series: str, uid: str) -> bool:
    """Whether a series has a terminal's real-time reports; a later record of the uid has its id in the name."""
    owner = series.removeprefix("g/").removesuffix("/r")
    return series == f"g/{owner}/r" and owner.partition("#")[0] == uid


def device(terminal: DemoTerminal, pin: str, told: Told | None, now_us: int) -> dict[str, Any]:
    """A terminal as the simulators' file has it: it delivers the history before now, as far as it isn't there.

    A terminal's reports are stored in their order, and live ones come after its history: what is missing is what
    comes after its newest report, so that a history that was cut off goes on where it ended, and none is there twice.
    """
    record = {"uid": terminal.uid, "type": terminal.type, "username": terminal.uid, "pin": pin}
    described = {**record, **terminal.record, **terminal.device}
    if terminal.is_misset:
        return {**described, "pin": pin[::-1], "retry_s": _MISSET_RETRY_S}
    since_us = now_us - HISTORY_US
    if told is not None:
        since_us = max(since_us, told.time_us + 1_000_000)
        described["last"] = {**described.get("last", {}), **told.numbers}
    kept: dict[str, Any] = {"kept_since": to_datetime(since_us).isoformat(), "kept_step_s": STEP_S}
    if terminal.silent_h:
        kept |= {"kept_until": to_datetime(now_us - terminal.silent_h * HOUR_US).isoformat(), "interval_s": 0}
    return {**described, **kept}


class DemoFleet:
    """Runs the demo's simulated terminals in a process of their own, whose output goes to ``<data>/demo-fleet.log``."""

    def __init__(self, data_dir: Path, mqtt_port: int) -> None:
        self._file = data_dir / "demo-fleet.json"
        self._log = data_dir / "demo-fleet.log"
        self._port = mqtt_port
        self._process: asyncio.subprocess.Process | None = None

    async def start(self, pins: Mapping[str, str], store: TimeSeriesStore, now_us: int) -> None:
        """Starts the simulator; its terminals connect within a second or two. ``pins``: by uid."""
        devices = await self._devices(pins, store, now_us)
        replace_private(self._file, json.dumps(devices, indent=1))
        options = ["--terminals", str(self._file), "--port", str(self._port), "--interval", str(LIVE_S)]
        options.append("--ends-with-input")  # a platform that is killed takes it along
        with self._log.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "terrazzo_simulators", "run", *options),
                stdin=asyncio.subprocess.PIPE,
                stdout=log,
                stderr=log,
            )

    async def _devices(self, pins: Mapping[str, str], store: TimeSeriesStore, now_us: int) -> Sequence[dict[str, Any]]:
        return [device(each, pins[each.uid], await last_told(store, each.uid), now_us) for each in TERMINALS]

    async def stop(self) -> None:
        """Ends the simulator, after five seconds by force."""
        process = self._process
        if process is None or process.returncode is not None:
            return
        process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_S)
        except TimeoutError:
            process.kill()
            await process.wait()
