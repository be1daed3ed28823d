"""What a benchmark is: what it needs, how long it takes, and a function that makes its runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from terrazzo_bench.processes import Processes
from terrazzo_bench.result import Result

Run = Callable[[int], Iterator[Result]]
"""One run, by its number from 0: its results."""


@dataclass(frozen=True)
class Setting:
    """Where a benchmark runs. ``peers``: those that are there, by name."""

    processes: Processes
    folder: Path
    peers: frozenset[str]
    is_short: bool


@dataclass(frozen=True)
class Benchmark:
    """One entry of the list.

    Attributes:
        says: what it measures, a line.
        peers: programs that it is held against, where they are there.
        prepare: makes what all runs share; the block ends with the last run.
        setup_s: seconds for that, on two cores of 2020.
        run_s: seconds of one run with all peers.
        short_s: seconds of the whole short form.
    """

    name: str
    says: str
    peers: tuple[str, ...]
    prepare: Callable[[Setting], AbstractContextManager[Run]]
    setup_s: float
    run_s: float
    short_s: float

    def seconds(self, runs: int, *, is_short: bool) -> float:
        """What it takes, as far as known."""
        return self.short_s if is_short else self.setup_s + runs * self.run_s
