"""``make torture``: the power fails under a load, ROUNDS times; it may be stopped, and goes on where it was.

Ten failures at a time follow each other on one data folder; ``build/torture/power.json`` has how many there were.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from power_rounds import fail_again_and_again  # noqa: E402

DONE = HERE.parents[1] / "build" / "torture" / "power.json"
_AT_ONCE = 10


def main() -> int:
    """What is lost is told by the exception that ends it; the next call begins with the same ten."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=100)
    given = options.parse_args()
    done, promised = _read()
    if done >= given.rounds:  # of an earlier call
        done = promised = 0
    while done < given.rounds:
        count = min(_AT_ONCE, given.rounds - done)
        with tempfile.TemporaryDirectory(prefix="torture-") as work:
            promised += fail_again_and_again(Path(work) / "power", count, first=done, told=True)
        done += count
        DONE.parent.mkdir(parents=True, exist_ok=True)
        DONE.write_text(json.dumps({"rounds": done, "readings": promised}), encoding="utf-8")
    print(f"{done} power failures: none of {promised} acknowledged readings is lost, no terminal and no command")
    return 0


def _read() -> tuple[int, int]:
    if not DONE.exists():
        return 0, 0
    found = json.loads(DONE.read_text(encoding="utf-8"))
    return found["rounds"], found["readings"]


if __name__ == "__main__":
    sys.exit(main())
