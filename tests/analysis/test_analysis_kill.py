"""``kill -9`` while periods end and late records come: afterwards every statistic is that of the stored records."""

from __future__ import annotations

import random
import time
from datetime import UTC
from pathlib import Path

import msgspec
from analysis_stand import HOUR_US, analysis_stand, plainly, starts

from length import rounds
from loaded_process import loaded_child

ROUNDS = rounds(4, 40)
SCRIPT = [["N", "count", "A"], ["S", "sum", "A"], ["L", "last", "A"], ["D", "duration(A==1)", "A"]]


def run_and_kill(folder: Path, object_id: int, now_us: int, alive_s: float, influx: str) -> int:
    """Where the clock was when the process died."""
    program = Path(__file__).with_name("analysis_child.py")
    with loaded_child(program, str(folder), f"{object_id}", f"{now_us}", influx) as (child, said):
        assert said.readline().endswith("\n")
        time.sleep(alive_s)  # how long it lives is the point of the round, not a wait for something
        child.kill()
        lines = [line for line in said.read().splitlines(keepends=True) if line.endswith("\n")]
    return int(lines[-1]) + HOUR_US // 2 if lines else now_us


async def test_kills_leave_every_statistic_right(tmp_path: Path, influx: str) -> None:
    async with analysis_stand(tmp_path, influx=influx) as stand:
        object_id = await stand.new_object()
        script = await stand.start("statistics", [object_id], SCRIPT)
        begun_us = now_us = stand.now_us
    pick, longest_s, killed = random.Random(), 0.3, 0
    while killed < ROUNDS or (now_us == begun_us and killed < 10 * ROUNDS):
        killed += 1
        before_us = now_us
        now_us = run_and_kill(tmp_path, object_id, now_us, pick.uniform(0, longest_s), influx)
        if now_us == before_us:
            longest_s = min(2 * longest_s, 20)  # nothing came to its end: on a busy machine a round has to be longer
    assert now_us > begun_us
    async with analysis_stand(tmp_path, influx=influx) as stand:
        stand.now_us = now_us + HOUR_US
        await stand.analysis.work()
        history = []
        async for piece in stand.store.scan([f"m/{object_id}"], 0, 2**62):
            history += [(record.time_us, msgspec.msgpack.decode(record.body)) for record in piece]
        assert history
        closed_us = (stand.now_us - 10_000_000) // HOUR_US * HOUR_US
        for kind in (1, 2):
            got = await stand.periods(script, kind)
            for start_us, end_us in starts(kind, history[0][0], closed_us, UTC):
                wanted = {name: plainly(fn, code, history, start_us, end_us) for name, fn, code in SCRIPT}
                assert got.get(start_us, {"N": 0, "S": None, "L": None, "D": 0}) == wanted, (kind, start_us)
        assert await stand.store.notes("late/") == {}
