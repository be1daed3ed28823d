"""Rounds of faults on several nodes under load: ``python tests/cluster/torture.py --rounds 100`` (``make
torture-cluster``). Exits with 1 where the checker finds something.

Legs of ``--leg`` rounds each have a stand of their own; ``--seed`` names the first leg, the next one has the next. What
a leg leaves behind is kept where something was found.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from random import Random

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cluster.cluster_checker import Verdict, check
from cluster.cluster_faults import FAULTS, Fault
from cluster.cluster_run import Round, Run
from cluster.cluster_stand import Stand
from postgresql_server import PostgreSQL, running_postgresql


async def run_leg(
    folder: Path,
    postgresql: PostgreSQL,
    random: Random,
    faults: list[Fault],
    *,
    nodes: int,
    hold_s: tuple[float, float],
) -> tuple[Verdict, list[Round], list[str]]:
    """Rounds with these faults on one stand: the checker's verdict, each round, and what ended as it never should."""
    names = "abc"[:nodes]
    stand = Stand(folder, postgresql, nodes=names, fronts=("f1", "f2"))
    rounds: list[Round] = []
    try:
        await stand.start()
        run = Run(stand, random, terminals=6, per_second=25)
        await run.prepare()
        for fault in faults:
            rounds.append(await run.round(fault, hold_s=random.uniform(*hold_s)))
            _print_round(rounds[-1])
        verdict = check(await run.finish())
        return verdict, rounds, stand.crashes
    finally:
        await stand.close()


def _print_round(done: Round) -> None:
    print(
        f"{time.strftime('%H:%M:%S')} {done.kind:<20} {done.where:<32} held {done.held_s:4.1f} s, without PUBACK"
        f" {done.gap_s:5.1f} s, whole {done.whole_s:5.1f} s after",
        flush=True,
    )


def choose(random: Random, count: int, kinds: list[Fault]) -> list[Fault]:
    """So many faults, each kind as often as any other but for one."""
    found: list[Fault] = []
    while len(found) < count:
        found += random.sample(kinds, len(kinds))
    return found[:count]


def print_times(rounds: list[Round]) -> None:
    """How long each kind of fault took."""
    by_kind = defaultdict(list)
    for each in rounds:
        by_kind[each.kind].append(each)
    print(f"{'fault':<20} {'rounds':>6} {'without PUBACK, median and most':>32} {'whole after its end':>24}")
    for kind, those in sorted(by_kind.items()):
        gaps, wholes = [each.gap_s for each in those], [each.whole_s for each in those]
        print(
            f"{kind:<20} {len(those):>6} {statistics.median(gaps):>22.1f} {max(gaps):>7.1f} s"
            f" {statistics.median(wholes):>14.1f} {max(wholes):>7.1f} s"
        )


def main() -> int:
    """Reads the arguments, runs all legs; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--leg", type=int, default=20, help="rounds on one stand")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--nodes", type=int, default=2, choices=(2, 3))
    parser.add_argument("--hold", type=float, nargs=2, default=(1.0, 8.0), help="seconds that a fault lasts")
    parser.add_argument("--only", default="", help="faults whose name has this in it")
    given = parser.parse_args()
    kinds = [each for each in FAULTS if given.only in each.kind]
    rounds: list[Round] = []
    failures = 0
    for number in range(-(-given.rounds // given.leg)):
        seed = given.seed + number
        random, folder = Random(seed), Path(tempfile.mkdtemp(prefix="terrazzo-torture-"))
        faults = choose(random, min(given.leg, given.rounds - len(rounds)), kinds)
        print(f"seed {seed}, {len(faults)} rounds, in {folder}", flush=True)
        try:
            with running_postgresql() as postgresql:
                leg = run_leg(folder, postgresql, random, faults, nodes=given.nodes, hold_s=tuple(given.hold))
                verdict, done, crashes = asyncio.run(leg)
        except AssertionError as error:
            failures += 1
            print(f"seed {seed}: {error}", flush=True)
            continue
        rounds += done
        print(f"seed {seed}: {verdict.summary()}", flush=True)
        for each in [*verdict.findings[:50], *crashes]:
            print(f"  {each}", flush=True)
        failures += len(verdict.findings) + len(crashes)
        if not verdict.findings and not crashes:
            shutil.rmtree(folder)
    print_times(rounds)
    print(f"{len(rounds)} rounds, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
