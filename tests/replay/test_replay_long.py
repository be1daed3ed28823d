"""Reports of a megabyte are replayed as any, and hold nobody up."""

from __future__ import annotations

import json

from replay_stand import T0, Stand

from terrazzo.ingest.decoders import POINTS, ToDecode
from terrazzo.mapping.replay.rerun import Rerun
from terrazzo.ports.store import Record
from turns_of_loop import longest_turn

MANY = {f"p{number}": number for number in range(60_000)}


async def test_a_long_report_is_replayed_as_any_and_read_elsewhere(stand: Stand) -> None:
    await stand.report((0, "t1", {"T": 50, **MANY}), (1, "t1", {"T": 70}), (2, "t1", {**MANY, "T": 90}))
    before = await stand.everything()
    row = await stand.replay(-10, 100)
    assert await stand.everything() == before
    assert (row["records_done"], row["records_skipped"]) == (3, 0)


async def test_it_holds_nobody_up(stand: Stand) -> None:
    reader = stand.platform.messaging.reader
    await reader.decoders.decode([ToDecode(POINTS, ("1024", "20000", "4096", "0", "0"), b"{}")])
    subject = stand.platform.parts.replays._parts.live.subject(1)
    assert subject is not None
    rerun = Rerun(subject.catalogue, 1)
    body = json.dumps({"T": 90, **MANY}).encode()
    async with longest_turn() as longest:
        await rerun.take_long(Record("g/t1/r", T0, body), reader.points_of)
    assert longest.cpu_s < 0.03
    (made,) = rerun.gather()
    assert b"T" in made.body
