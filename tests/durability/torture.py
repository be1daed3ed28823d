"""``make torture``: the worst days, one kind after the other; it may be stopped, and goes on where it was.

``--only kill,full`` chooses kinds, ``--rounds`` how many of each, in all calls together. Some rounds follow each other
on one data folder; ``build/torture/KIND.json`` has what those that are done have come to. A kind that broke a promise
is told, and the next one is done. The table at the end is that of ``docs/reliability.md``.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from clock_rounds import jump_again_and_again  # noqa: E402
from disk_rounds import fill_again_and_again, slow_again_and_again  # noqa: E402
from flipped_bytes import flip_again_and_again  # noqa: E402
from kill_rounds import kill_again_and_again  # noqa: E402
from outcomes import Broken, Outcome, read_outcome, table  # noqa: E402
from power_rounds import fail_again_and_again  # noqa: E402

BENCHMARKS = HERE.parents[1] / "benchmarks"
DONE = HERE.parents[1] / "build" / "torture"
_FILLED_MINUTES = 60


@dataclass(frozen=True)
class Kind:
    """One kind of a bad day.

    Attributes:
        run: does so many rounds, from a number on, in a folder of its own.
        rounds: as many are done unless another number is given.
        at_once: so many follow each other on one data folder.
    """

    run: Callable[..., Outcome]
    rounds: int = 100
    at_once: int = 10


def measured_by(*programs: tuple[str, ...]) -> Callable[..., Outcome]:
    """A kind whose rounds are runs of benchmarks, which say what they have found, and end with 0 when all was well."""

    def run(work: Path, rounds: int, *, first: int, told: bool) -> Outcome:
        for number in range(first, first + rounds):
            for program, *arguments in programs:
                began_s = time.monotonic()
                done = subprocess.run([sys.executable, str(BENCHMARKS / program), *arguments], check=False)
                if done.returncode:
                    raise Broken(f"{program} {' '.join(arguments)}: status {done.returncode}")
                if told:
                    print(f"{program} {number}: {time.monotonic() - began_s:.0f} s", flush=True)
        return Outcome(rounds=rounds)

    return run


def soak(minutes: float) -> Kind:
    """Memory may grow while what is kept of live frames fills, which takes half an hour."""
    grown = () if minutes >= _FILLED_MINUTES else ("--grown-mb", "40")
    return Kind(measured_by(("soak.py", "--minutes", str(minutes), *grown)), rounds=1, at_once=1)


KINDS = {
    "kill": Kind(kill_again_and_again),
    "power": Kind(fail_again_and_again),
    "full": Kind(fill_again_and_again),
    "slow": Kind(slow_again_and_again),
    "bytes": Kind(flip_again_and_again, at_once=50),
    "clock": Kind(jump_again_and_again),
    "loris": Kind(measured_by(("floods.py", "--loaded", "--only", "o,p,q,r")), rounds=1, at_once=1),
    "bombs": Kind(
        measured_by(("floods.py", "--loaded", "--only", "e,f,g,i"), ("insider_bombs.py", "--rounds", "5")),
        rounds=1,
        at_once=1,
    ),
    "returning": Kind(measured_by(("registry.py", "--returning", "10000")), rounds=1, at_once=1),
    "soak": soak(120),
}


def main() -> int:
    """0: no promise was broken."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=0, help="of each kind, in all calls together")
    options.add_argument("--only", default=",".join(KINDS), help=f"kinds, of {', '.join(KINDS)}")
    options.add_argument("--again", action="store_true", help="from the beginning, whatever has been done")
    options.add_argument("--hours", type=float, default=0.0, help="of the soak; 2 unless given")
    given = options.parse_args()
    chosen = given.only.split(",")
    if unknown := set(chosen) - KINDS.keys():
        options.error(f"no kinds: {', '.join(sorted(unknown))}")
    if given.hours:
        KINDS["soak"] = soak(given.hours * 60)
    whole = [go_on(name, given.rounds or KINDS[name].rounds, again=given.again) for name in chosen]
    done = {name: read_outcome(DONE / f"{name}.json") for name in KINDS}
    print(table({name: outcome for name, outcome in done.items() if outcome.rounds}))
    return 0 if all(whole) else 1


def go_on(name: str, rounds: int, *, again: bool = False) -> bool:
    """Does what is left of a kind's rounds; whether no promise was broken. The next call begins with the same rounds
    where one was, or where it is stopped.
    """
    kind, path = KINDS[name], DONE / f"{name}.json"
    outcome = Outcome() if again else read_outcome(path)
    while outcome.rounds < rounds:
        count = min(kind.at_once, rounds - outcome.rounds)
        with tempfile.TemporaryDirectory(prefix="torture-") as work:
            try:
                outcome.add(kind.run(Path(work) / name, count, first=outcome.rounds, told=True))
            except AssertionError as error:
                traceback.print_exc()
                if isinstance(error, Broken):
                    print(f"{name}: {error.lost} lost, {error.doubled} doubled", flush=True)
                return False
        outcome.save(path)
    return True


if __name__ == "__main__":
    sys.exit(main())
