"""``python -m terrazzo_simulators run``: runs a fleet from the command line."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time

from .fleet import Fleet
from .options import Run, parse_run
from .sealing import SealError


def main(arguments: list[str] | None = None) -> int:
    """Runs a fleet until its time is over or a signal comes.

    Returns the exit status: 0; 1 if no terminal ever connected; 2 for bad options.
    """
    run = parse_run(sys.argv[1:] if arguments is None else arguments)
    try:
        return asyncio.run(simulate(run))
    except SealError as error:
        print(f"terrazzo_simulators: {error}", file=sys.stderr)
        return 2


async def simulate(run: Run) -> int:
    """Runs the fleet; prints a summary line at intervals and one at the end. Returns the exit status."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    fleet = Fleet(run.specs, run.fleet)
    if run.ends_with_input:
        loop.add_reader(sys.stdin, _end_with_input, fleet, stopping)
    summary = Summary(fleet, run)
    async with fleet.running():
        while not stopping.is_set() and summary.left_s > 0:
            try:
                async with asyncio.timeout(min(run.summary_s, summary.left_s)):
                    await stopping.wait()
            except TimeoutError:
                fleet.check()
                summary.show()
    summary.show(final=True)
    return 0 if fleet.statistics.connects else 1


def _end_with_input(fleet: Fleet, stopping: asyncio.Event) -> None:
    """Reads what has come; at the end of the input whoever began this is gone, killed perhaps.

    Nothing is sent again then: whoever takes its place begins a fleet of its own.
    """
    if not os.read(sys.stdin.fileno(), 4_096):
        asyncio.get_running_loop().remove_reader(sys.stdin)
        fleet.abandon()
        stopping.set()


class Summary:
    """Prints the fleet's counters, as text or (``--json``) as JSON lines."""

    def __init__(self, fleet: Fleet, run: Run) -> None:
        self._fleet, self._run = fleet, run
        self._started_s = self._shown_s = time.monotonic()
        self._published = 0

    @property
    def left_s(self) -> float:
        """The seconds that remain of the run."""
        if self._run.duration_s == 0:
            return float("inf")
        return self._run.duration_s - (time.monotonic() - self._started_s)

    def show(self, *, final: bool = False) -> None:
        """Prints one line; the final one of a fleet that never connected has the last reason."""
        now_s, statistics = time.monotonic(), self._fleet.statistics
        elapsed_s = now_s - self._started_s
        if self._run.as_json:
            record = {"elapsed_s": round(elapsed_s, 3), "terminals": len(self._fleet.devices), "final": final}
            line = json.dumps({**record, **statistics.as_dict()})
        else:
            line = statistics.line(
                elapsed_s=elapsed_s,
                terminals=len(self._fleet.devices),
                published_before=0 if final else self._published,
                since_s=elapsed_s if final else now_s - self._shown_s,
            )
        print(("" if self._run.as_json or not final else "total ") + line, flush=True)
        self._shown_s, self._published = now_s, statistics.published
        if statistics.connects == 0:
            self._explain()

    def _explain(self) -> None:
        errors = [device.last_error for device in self._fleet.devices.values() if device.last_error is not None]
        if errors:
            print(f"terrazzo_simulators: nobody is connected: {errors[-1] or 'timed out'}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
