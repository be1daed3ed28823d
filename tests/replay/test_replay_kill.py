"""``kill -9`` at random moments of replays under changing mappings; the end is as after one that nothing stopped."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import Any

from replay_stand import RICH, SECOND, T0, Stand

from length import rounds
from loaded_process import loaded_child
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.ports.store import Record

COUNT = 9_000
ROUNDS = {"rocksdb": rounds(5, 60), "influxdb": rounds(3, 30)}  # each starts a whole platform


def reports() -> list[Record]:
    """Every second one of a terminal; every tenth one of the other, whose labels open and close."""
    pick = random.Random(3)
    first = [("t1", at_s, {"T": at_s % 100}) for at_s in range(COUNT)]
    second = [("t2", at_s, {"RUN": pick.randrange(3)}) for at_s in range(0, COUNT, 10)]
    rows = sorted([*first, *second], key=lambda row: row[1])
    return [Record(f"g/{uid}/r", T0 + at_s * SECOND, json.dumps(points).encode()) for uid, at_s, points in rows]


def run_and_kill(stand: Stand, alive_s: float) -> None:
    program = Path(__file__).with_name("replay_stand.py")
    with loaded_child(program, str(stand.folder), stand.influx) as (child, said):
        assert said.readline() == "ready\n"
        time.sleep(alive_s)  # how long it lives is the point of the round, not a wait for something
        child.kill()


async def happened(stand: Stand) -> tuple[Any, Any, Any]:
    """The mosaic, and the rows of events and labels without their ids."""
    rows = [await stand.rows(table) for table in (EVENT, LABEL)]
    events, labels = [[{**row, "id": 0} for row in some] for some in rows]
    return await stand.mosaic(), events, labels


async def test_replays_that_are_killed_end_as_one_that_nothing_stopped(new_stand: Any, influx: str) -> None:
    whole = await new_stand(RICH)
    await whole.store.append(reports())
    begun_s = time.monotonic()
    await whole.replay(-10, None)
    took_s = time.monotonic() - begun_s
    wanted = await happened(whole)
    assert min(map(len, wanted)) > 100
    stand = await new_stand(RICH)
    await stand.store.append(reports())
    await stand.stop()
    pick = random.Random()
    for _ in range(ROUNDS["influxdb" if influx else "rocksdb"]):
        run_and_kill(stand, pick.uniform(0, 1.3 * took_s))
    await stand.start()
    rows = (await stand.replays.page(stand.actor, page_size=100)).rows
    assert sum(row["starts"] for row in rows) > len(rows), "none was ever killed while it ran"
    await stand.ended(rows[0]["id"])
    await stand.remap(RICH)
    for _ in range(2):
        await stand.replay(-10, None)
        assert await happened(stand) == wanted
