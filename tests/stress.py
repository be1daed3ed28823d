"""Runs the tests again and again beside busy loops: ``python tests/stress.py [ROUNDS] [pytest arguments]``.

A line a round; it stops at the first that fails, whose output is kept. ``--from N`` goes on with round N, ``--busy N``
sets how many loops there are (as many as cores otherwise), ``--go-on`` runs the other rounds in spite of a failure.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

LOGS = Path("build") / "stress"


@contextlib.contextmanager
def busy_loops(count: int) -> Iterator[None]:
    """Meanwhile each of so many processes takes all it gets of a core. They are ended by their process ids."""
    # a loop that its parent left behind ends too
    program = "import os\nparent = os.getppid()\nwhile os.getppid() == parent:\n    for _ in range(1_000_000): pass"
    loops = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(count)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
        for loop in loops:
            loop.wait()


def run_round(number: int, arguments: list[str]) -> bool:
    """Whether all tests passed; prints the round's line."""
    log = LOGS / f"round-{number}.log"
    begun = time.monotonic()
    with log.open("wb") as output:
        command = [sys.executable, "-m", "pytest", *arguments]
        status = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT).returncode
    lines = log.read_text(errors="replace").splitlines()
    outcome = lines[-1].strip("= ") if lines else "no output"
    print(f"round {number}: {outcome} ({time.monotonic() - begun:.0f} s)", flush=True)
    if status:
        shown = [line for line in lines if line.startswith(("FAILED", "ERROR"))]
        print("\n".join([*shown, f"the output is in {log}; --from {number} goes on"]), flush=True)
    return status == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("rounds", type=int, nargs="?", default=10)
    parser.add_argument("--from", dest="first", type=int, default=1, metavar="N")
    parser.add_argument("--busy", type=int, default=os.cpu_count() or 2, metavar="N")
    parser.add_argument("--go-on", action="store_true")
    options, arguments = parser.parse_known_args()
    LOGS.mkdir(parents=True, exist_ok=True)
    failed = 0
    with busy_loops(options.busy):
        for number in range(options.first, options.rounds + 1):
            if not run_round(number, arguments):
                failed += 1
                if not options.go_on:
                    break
    return 1 if failed else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
