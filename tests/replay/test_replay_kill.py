"""``kill -9`` in the middle of a replay: the next start takes it up, and the result is the same."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from replay_stand import PLAIN, RICH, SECOND, T0, Stand

from terrazzo.store import Record

COUNT = 30_000


def run_and_kill(folder: Path, alive_s: float) -> None:
    command = [sys.executable, str(Path(__file__).with_name("replay_stand.py")), str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        time.sleep(alive_s)  # how long it lives is the point of the round, not a wait for something
        child.kill()


async def left(folder: Path) -> Stand:
    """A stand with reports that were mapped, and another mapping since; it is stopped."""
    stand = await Stand(folder).start(PLAIN)
    reports = [Record("g/t1/r", T0 + at_s * SECOND, json.dumps({"T": at_s % 100}).encode()) for at_s in range(COUNT)]
    await stand.store.append(reports)
    await stand.replay(-10, None)
    await stand.remap(RICH)
    return stand


async def test_a_replay_that_was_killed_goes_on_and_ends_as_any_other(tmp_path_factory) -> None:
    folder = tmp_path_factory.mktemp("killed")
    stand = await left(folder)
    replay_id = await stand.submit(-10, None)
    await stand.stop()
    for alive_s in (0.1, 0.2, 0.4):
        run_and_kill(folder, alive_s)
    await stand.start()
    row = await stand.ended(replay_id)
    assert (row["state"], row["info"], row["records_done"]) == ("done", "", COUNT)
    assert row["starts"] > 1, "it was never killed while it ran"
    once = await stand.everything()
    assert len(once[0]) == COUNT
    assert all(values["T"] == at_s % 100 + 273 for at_s, values in once[0])
    await stand.replay(-10, None)
    assert await stand.everything() == once
    await stand.stop()
