"""``make simulate``: runs of many seeds, with a fault planted or none; a failure prints its seed and shortest schedule.

``python tests/simulation/simulate.py --seeds 1000 [--first 0] [--steps 40] [--fault NAME] [--minutes 10]``; with
``--each-fault`` in place of ``--fault`` all of them are searched for, one after the other, from ``--first`` on.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent)]

from sim_faults import FAULTS, planted  # noqa: E402
from sim_schedule import Step, schedule, shortest  # noqa: E402
from sim_world import Result, run  # noqa: E402

_SHRINKING_RUNS = 60


def main() -> int:
    """1 where a run broke a promise; with ``--fault`` where none did."""
    given = _arguments()
    if given.each_fault:
        return _search(given)
    until_s = time.monotonic() + 60 * given.minutes
    for number in range(given.first, given.first + given.seeds):
        seed = str(number)
        steps = schedule(seed, given.steps)
        result = _run(given.fault, seed, steps)
        if result.broken:
            _tell(given.fault, seed, steps, result)
            return 0 if given.fault else 1
        if time.monotonic() > until_s:
            break
        print(f"seed {seed}: {result.messages} messages, {result.crashes} crashes, all kept", flush=True)
    return 1 if given.fault else 0


def _search(given: argparse.Namespace) -> int:
    """How many seeds and seconds of a core each fault takes; 1 where ``--minutes`` of them don't find one."""
    missed = 0
    for fault in FAULTS:
        began_s, found = time.process_time(), ""
        for count in range(1, given.seeds + 1):
            seed = str(given.first + count - 1)
            broken = _run(fault, seed, schedule(seed, given.steps)).broken
            took_s = time.process_time() - began_s
            if broken:
                found = f"seed {seed}: {broken[0]}"
            if broken or took_s > 60 * given.minutes:
                break
        missed += not found
        print(f"{fault}: {count} seeds, {took_s:.0f} s of a core, {found or 'not found'}", flush=True)
    return min(missed, 1)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Simulates the worst day, seed by seed.")
    parser.add_argument("--seeds", type=int, default=100, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--steps", type=int, default=40, help="of each schedule")
    parser.add_argument("--minutes", type=float, default=1e6, help="at most")
    parser.add_argument("--each-fault", action="store_true", help="how long each takes to find, in processor time")
    parser.add_argument("--fault", choices=sorted(FAULTS), default="", help="planted, to see that it is found")
    return parser.parse_args()


def _run(fault: str, seed: str, steps: Sequence[Step]) -> Result:
    with planted(fault):
        return run(seed, steps)


def _tell(fault: str, seed: str, steps: Sequence[Step], result: Result) -> None:
    print(f"seed {seed} breaks {len(result.broken)} promises:", *result.broken, sep="\n  ", flush=True)
    few = shortest(steps, lambda fewer: bool(_run(fault, seed, fewer).broken), most_runs=_SHRINKING_RUNS)
    print(f"the shortest schedule that was found to fail, {len(few)} of {len(steps)} steps:", *few, sep="\n  ")
    print("and then:", *_run(fault, seed, few).broken, sep="\n  ")


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # the order of sets is part of a run
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | {"PYTHONHASHSEED": "0"})
    sys.exit(main())
