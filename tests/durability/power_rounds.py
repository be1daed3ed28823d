"""The power fails, again and again, under a load: what was acknowledged is there each time."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from load import Load, Promised, prepared, tell
from outcomes import Outcome
from test_acknowledged_is_stored import TERMINALS
from unsynced_mount import mounted, power_failure

from running import Platform

ENOUGH = 200
"""Messages of each terminal that are acknowledged before the power may fail."""


def fail_and_check(
    work: Path, data: Path, config: str, promised: Promised, following: dict[str, int], *, seed: int, heeds_syncs: bool
) -> tuple[Path, Promised, Outcome]:
    """Starts on ``data``, and lets the power fail under a load; the folder that is left, and what must be in it.

    The disk is cut off while everything runs: what was acknowledged until just before must be there.
    """
    left = work / "left"
    with mounted(work / "disk", data, heeds_syncs=heeds_syncs) as mount:
        began_s = time.monotonic()
        platform = Platform(mount).login()
        outcome = Outcome(rounds=1, ready_s=time.monotonic() - began_s)
        try:
            promised.checked(platform)
            load = Load(platform, config, promised, following, round_number=seed)
            load.wait(ENOUGH + 37 * (seed % 11))
            kept = load.so_far()
            power_failure(mount, left, seed=seed, some=seed % 2 == 1)
            load.cease()
        finally:
            platform.kill()
        load.join()
    outcome.acknowledged = kept.acknowledged - promised.acknowledged
    outcome.silent_s = load.silent_s
    return left, kept, outcome


def fail_again_and_again(
    work: Path, rounds: int, *, first: int, told: bool = False, heeds_syncs: bool = True
) -> Outcome:
    """That many failures of the power, each on what the one before has left."""
    work.mkdir(parents=True, exist_ok=True)
    data, promised, following = work / "data", Promised(), dict.fromkeys(TERMINALS, 0)
    config, outcome = prepared(data), Outcome()
    for seed in range(first, first + rounds):
        began_s = time.monotonic()
        left, promised, of_round = fail_and_check(
            work, data, config, promised, following, seed=seed, heeds_syncs=heeds_syncs
        )
        outcome.add(of_round)
        shutil.rmtree(data)
        left.rename(data)
        if told:
            tell("power failure", seed, promised, began_s)
        shutil.rmtree(work / "disk")
    with Platform(data) as platform:
        promised.checked(platform.login())
    return outcome
