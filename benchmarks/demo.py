"""The first start of ``terrazzo serve --demo``: when it is ready, when its week is there, and what that costs.

``python benchmarks/demo.py [--rounds N]`` starts an empty platform and one with the demo, each on an empty folder, in
turn. Held against: the week is there 20 s after the platform is ready, on 2 cores, and makes it ready no later. Seconds
of the processor are those of the platform and of the simulated fleet, until the week is there.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil
from registry import Server

THERE = "The demo's week of history is there"
_LONGEST_S = 300.0


def first_start(folder: Path, *, demo: bool) -> tuple[float, float, float]:
    """Seconds until it is ready, from then until the week is there, and the processor's meanwhile."""
    server = Server(sys.executable, folder / "data", ("--demo",) if demo else ())
    with (folder / "log").open("wb") as log:
        try:
            ready_s = server.start(log)
            began_s, cpu_s = time.monotonic(), 0.0
            while demo and THERE not in (folder / "log").read_text():
                if time.monotonic() > began_s + _LONGEST_S:
                    raise SystemExit(f"no week after {_LONGEST_S:.0f} s")
                cpu_s = max(cpu_s, used_s(server.process))
                time.sleep(0.05)
            return ready_s, time.monotonic() - began_s, cpu_s
        finally:
            server.stop()


def used_s(process: psutil.Process) -> float:
    """The processor's seconds of a process and of all that it has started."""
    total = 0.0
    for each in [process, *process.children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            total += times.user + times.system
    return total


def main() -> None:
    """Reads the options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    empty, demo = [], []
    for _ in range(rounds):
        for found, has_demo in ((empty, False), (demo, True)):
            with tempfile.TemporaryDirectory() as folder:
                found.append(first_start(Path(folder), demo=has_demo))
    names = "ready, s", "then its week, s", "CPU of both, s"
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    print("| first start | " + " | ".join(names) + " |\n| --- |" + " ---: |" * len(names))
    for name, found in (("empty", empty), ("demo", demo)):
        print(f"| {name} | " + " | ".join(f"{statistics.median(each):.1f}" for each in zip(*found, strict=True)) + " |")


if __name__ == "__main__":
    main()
