"""What a report costs in instructions of the processor and in misses of its caches, which no neighbour disturbs.

``python benchmarks/cache_misses.py [--only NAME] [--against CHECKOUT] [--cache-kib N]`` takes reports through the
ingest with and without mapping, up to the store's batches, under valgrind's cachegrind: everything that this process
does is counted, what is written in C too, as ``instructions.py`` does not. Two runs of different length are held
against each other, so that the start falls out. ``--cache-kib``: the last of the caches that are simulated; with little
of it one sees what a program costs beside others that have the real one. With another checkout beside it ratios are
printed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import instructions

WAYS = {"ingest": False, "mapping": True}  # with mapping?
BATCH = 200  # messages of a read
MESSAGES = (4_000, 12_000)  # of the two runs
COUNTED = {"instructions": "I   refs", "first cache": "D1  misses", "last cache": "LL misses"}


def take(way: str, messages: int) -> None:
    """Takes so many reports through one of the ways, not traced."""

    @contextmanager
    def not_counted(_found: Counter[str]) -> Iterator[None]:
        yield

    instructions.counted = not_counted
    asyncio.run(instructions.ingest(Counter(), mapped=WAYS[way], batch=BATCH, messages=messages))


def counts(checkout: Path, way: str, messages: int, cache_kib: int) -> dict[str, int]:
    """What valgrind counts of a whole process that takes so many reports."""
    paths = os.pathsep.join(str(checkout / package) for package in instructions.PACKAGES)
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONHASHSEED": "0"}
    with tempfile.NamedTemporaryFile() as unread:
        command = [
            *("valgrind", "--tool=cachegrind", "--cache-sim=yes", f"--cachegrind-out-file={unread.name}"),
            *("--I1=32768,8,64", "--D1=32768,8,64", f"--LL={cache_kib * 1024},16,64"),
            *(sys.executable, __file__, "--take", way, str(messages)),
        ]
        ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if ended.returncode:
        raise SystemExit(f"{checkout}: {way}:\n{ended.stderr}")
    found = {}
    for name, told in COUNTED.items():
        line = re.search(rf"{told}: +([\d,]+)", ended.stderr)
        assert line is not None, ended.stderr
        found[name] = int(line[1].replace(",", ""))
    return found


def of_a_message(checkout: Path, way: str, cache_kib: int) -> Mapping[str, float]:
    """The same of one report, without the start."""
    with ThreadPoolExecutor(2) as pool:
        few, many = pool.map(lambda messages: counts(checkout, way, messages, cache_kib), MESSAGES)
    return {name: (many[name] - few[name]) / (MESSAGES[1] - MESSAGES[0]) for name in COUNTED}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=WAYS)
    parser.add_argument("--against", type=Path, metavar="CHECKOUT")
    parser.add_argument("--cache-kib", type=int, default=1_024, metavar="N")
    parser.add_argument("--take", nargs=2, help=argparse.SUPPRESS)  # in the process that is counted
    arguments = parser.parse_args()
    if arguments.take:
        take(arguments.take[0], int(arguments.take[1]))
        return
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed (Debian: valgrind)")
    here = Path(__file__).resolve().parent.parent
    print("| way | counted | before | now | ratio |\n|---|---|---|---|---|", flush=True)
    for way in [arguments.only] if arguments.only else WAYS:
        now = of_a_message(here, way, arguments.cache_kib)
        before = of_a_message(arguments.against.resolve(), way, arguments.cache_kib) if arguments.against else {}
        for name, value in now.items():
            old = before.get(name)
            ratio = "-" if old is None else f"{value / old:.3f}"
            print(f"| {way} | {name} | {'-' if old is None else f'{old:,.0f}'} | {value:,.0f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
