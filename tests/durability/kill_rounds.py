"""``kill -9``, again and again, under a load: what was acknowledged is there each time."""

from __future__ import annotations

import random
import time
from pathlib import Path

from load import Load, Promised, prepared, tell
from outcomes import Outcome
from test_acknowledged_is_stored import TERMINALS

from running import Platform

ENOUGH = 200
"""Messages of each terminal that are acknowledged before it may be killed."""
_MOST_S = 1.5  # for which the load goes on after that


def kill_again_and_again(work: Path, rounds: int, *, first: int, told: bool = False) -> Outcome:
    """That many kills on one data folder, at moments that the number of the round chooses."""
    data, promised, following = work / "data", Promised(), dict.fromkeys(TERMINALS, 0)
    config, outcome = prepared(data), Outcome()
    platform = Platform(data)
    try:
        for number in range(first, first + rounds):
            began_s, before = time.monotonic(), promised.acknowledged
            load = Load(platform.login(), config, promised, following, round_number=number)
            load.wait(ENOUGH)
            time.sleep(random.Random(number).uniform(0, _MOST_S))
            load.cease()
            platform.kill()
            load.join()
            promised = load.so_far()
            killed_s = time.monotonic()
            platform = platform.again()
            ready_s = time.monotonic() - killed_s
            promised.checked(platform.login())
            counted = promised.acknowledged - before
            outcome.add(Outcome(rounds=1, acknowledged=counted, silent_s=load.silent_s, ready_s=ready_s))
            if told:
                tell("kill", number, promised, began_s)
    finally:
        platform.kill()
    return outcome
