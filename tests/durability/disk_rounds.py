"""A disk that is full for a while, and one that is a hundred times slower, under a load."""

from __future__ import annotations

import random
import re
import time
import urllib.request
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil
from load import Load, Promised, prepared, tell
from outcomes import Broken, Outcome
from test_acknowledged_is_stored import TERMINALS
from unsynced_mount import mounted, set_full, set_slow

from running import Platform, wait_for

ENOUGH = 100
"""Messages of each terminal that are acknowledged before the disk changes, while it is slow, and afterwards."""
TIMES_SLOWER = 100
MOST_MB = 400.0
"""What the platform may have in memory with a slow disk: 300 messages wait for their PUBACK, whatever the disk does."""
_SHORTEST_S, _LONGEST_S = 0.5, 3.0  # for which it is full
_PATIENCE_S = 180
_DELAYS = re.compile(r'^terrazzo_loop_delay_seconds_bucket\{le="([^"]+)"\} (\S+)', re.MULTILINE)


@contextmanager
def _rounds(
    work: Path, name: str, numbers: range, outcome: Outcome, *, told: bool
) -> Iterator[tuple[Path, Iterator[_Round]]]:
    """A disk of its own with the platform's data, and the rounds on it."""
    work.mkdir(parents=True, exist_ok=True)
    config = prepared(work / "data")
    with (
        mounted(work / "disk", work / "data") as mount,
        closing(_each_round(mount, config, name, numbers, outcome, told=told)) as each,
    ):
        yield mount, each


class _Round:
    """One of them: a platform that has just started, with its load. ``outcome`` is added to as it goes."""

    def __init__(self, number: int, platform: Platform, load: Load) -> None:
        self.number, self.platform, self.load = number, platform, load
        self.outcome = Outcome(rounds=1)

    def wait_for_more(self) -> None:
        """Each terminal has further PUBACKs."""
        before = self.load.counts()
        wait_for(
            lambda: all(count >= before[uid] + ENOUGH for uid, count in self.load.counts().items()),
            "further PUBACKs, by itself",
            timeout_s=_PATIENCE_S,
        )


def _each_round(
    mount: Path, config: str, name: str, numbers: range, outcome: Outcome, *, told: bool
) -> Generator[_Round, None, None]:
    """After each the platform is killed, and what was promised is looked for by the next, and by one at the end."""
    promised, following = Promised(), dict.fromkeys(TERMINALS, 0)
    platform = Platform(mount)
    try:
        for number in numbers:
            began_s, before = time.monotonic(), promised.acknowledged
            load = Load(platform.login(), config, promised, following, round_number=number)
            load.wait(ENOUGH)
            this = _Round(number, platform, load)
            try:
                yield this
            finally:
                load.cease()
                platform.kill()
            load.join()
            promised = load.so_far()
            this.outcome.acknowledged = promised.acknowledged - before
            this.outcome.silent_s = load.silent_s
            platform = platform.again()
            promised.checked(platform.login())
            outcome.add(this.outcome)
            if told:
                tell(name, number, promised, began_s)
    finally:
        platform.kill()


def fill_again_and_again(work: Path, rounds: int, *, first: int, told: bool = False) -> Outcome:
    """The disk is full that often, and has room again."""
    outcome = Outcome()
    with _rounds(work, "full disk", range(first, first + rounds), outcome, told=told) as (mount, each):
        for this in each:
            platform, changes = this.platform, this.load.changes
            changes.may_fail = True
            set_full(mount, True)
            wait_for(lambda: "store" in platform.unready_parts(), "/readyz tells of the store", timeout_s=_PATIENCE_S)  # noqa: B023
            wait_for(lambda: _says_full(changes.refused), "a change is refused in words", timeout_s=_PATIENCE_S)  # noqa: B023
            before = this.load.counts()
            time.sleep(random.Random(this.number).uniform(_SHORTEST_S, _LONGEST_S))
            if this.load.counts() != before:
                raise Broken("there were PUBACKs while nothing could be stored")
            set_full(mount, False)
            had_room_s, answered = time.monotonic(), changes.answered
            wait_for(lambda: platform.unready_parts() == [], "ready by itself", timeout_s=_PATIENCE_S)  # noqa: B023
            this.outcome.ready_s = time.monotonic() - had_room_s
            this.wait_for_more()
            wait_for(lambda: changes.answered >= answered + 2, "changes by itself", timeout_s=_PATIENCE_S)  # noqa: B023
            changes.may_fail = False
    return outcome


def _says_full(refused: list[str]) -> bool:
    """Whether the gateway did; a terminal's connection just ends, if its session can't be kept."""
    return any("full" in each or "no space" in each for each in refused)


def slow_again_and_again(work: Path, rounds: int, *, first: int, told: bool = False) -> Outcome:
    """Each write and each sync takes 100 times as long, that often."""
    outcome = Outcome()
    with _rounds(work, "slow disk", range(first, first + rounds), outcome, told=told) as (mount, each):
        for this in each:
            process, delays = psutil.Process(this.platform.pid), _loop_delays(this.platform)
            set_slow(mount, TIMES_SLOWER)
            try:
                this.wait_for_more()
                memory_mb = process.memory_info().rss / 1e6
                if memory_mb > MOST_MB:
                    raise Broken(f"{memory_mb:.0f} MB of memory beside a slow disk")
                for finding, count in _held(delays, _loop_delays(this.platform)).items():
                    this.outcome.count("the event loop was late by at most", finding, count)
            finally:
                set_slow(mount, 1)
            quick_s = time.monotonic()
            this.wait_for_more()
            this.outcome.ready_s = time.monotonic() - quick_s
    return outcome


def _loop_delays(platform: Platform) -> dict[str, float]:
    """How often the loop was late, by the bucket of how much, each with those below it."""
    with urllib.request.urlopen(f"{platform.url}/metrics", timeout=_PATIENCE_S) as answer:
        return {bound: float(count) for bound, count in _DELAYS.findall(answer.read().decode())}


def _held(before: dict[str, float], after: dict[str, float]) -> dict[str, int]:
    """How often between the two, without those below each."""
    counts, below = {}, 0.0
    for bound, count in after.items():
        of_bound = count - before.get(bound, 0.0)
        if of_bound > below:
            counts[f"{bound} s"] = int(of_bound - below)
        below = of_bound
    return counts
