"""A replay writes so much at a time: everybody's commits go through the same thread."""

from __future__ import annotations

import asyncio
import time

import pytest
from replay_stand import RICH, Stand

from terrazzo.mapping.replay import run
from terrazzo.mapping.replay.piece_pace import PiecePace
from terrazzo.mapping.replay.rerun import Rerun
from terrazzo.ports.store import Record


async def test_a_piece_has_a_size_in_bytes_of_what_is_made(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    replace = stand.store.replace

    async def measured(series, start_us, end_us, records, *, given):
        sizes.append(sum(len(record.body) for record in records))
        return await replace(series, start_us, end_us, records, given=given)

    await stand.report(*((second, "t1", {"T": second}) for second in range(60)))
    before = await stand.mosaic()
    await stand.remap(RICH)
    monkeypatch.setattr(stand.store, "replace", measured)
    monkeypatch.setattr(run, "_PIECE_BYTES", 100)
    assert (await stand.ended(await stand.submit(-10, 100)))["state"] == "done"
    assert len(sizes) >= 5, "not one"
    assert max(sizes) < 100 + 50, "and the last record"
    assert len(await stand.mosaic()) == len(before)


async def test_pieces_get_short_where_they_take_long(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others' commits stand behind each piece; the next waits as long as the last took."""
    sizes: list[int] = []
    replace = stand.store.replace

    async def slow(series, start_us, end_us, records, *, given):
        sizes.append(sum(len(record.body) for record in records))
        await asyncio.sleep(0.03)
        return await replace(series, start_us, end_us, records, given=given)

    await stand.report(*((second, "t1", {"T": second}) for second in range(120)))
    before = await stand.mosaic()
    await stand.remap(RICH)
    monkeypatch.setattr(stand.store, "replace", slow)
    monkeypatch.setattr(run, "_PIECE_BYTES", 300)
    monkeypatch.setattr(run, "_LEAST_BYTES", 40)
    assert (await stand.ended(await stand.submit(-10, 200)))["state"] == "done"
    assert sizes[0] >= 300
    assert sizes[4] < 40 + 50, "the least, and the last record"
    assert len(await stand.mosaic()) == len(before)


def test_a_pace_follows_what_pieces_take() -> None:
    pace = PiecePace(512 * 1024, 64 * 1024)
    assert pace.note(0.001) == 0.001
    assert pace.allowed == 512 * 1024
    for _ in range(10):
        assert pace.note(0.1) == 0.1
    assert pace.allowed == 64 * 1024
    assert pace.note(60) == 0.5, "a replay goes on"
    for _ in range(20):
        pace.note(0.001)
    assert pace.allowed == 512 * 1024


async def test_a_replay_lets_others_have_their_turn_by_time(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much a report is to map: a hundred of a thousand rows each would hold the loop for 50 ms."""
    take = Rerun.take

    def slow(self: Rerun, record: Record) -> None:
        until_s = time.thread_time() + 0.002
        while time.thread_time() < until_s:
            pass
        take(self, record)

    await stand.report(*((second, "t1", {"T": second}) for second in range(60)))
    await stand.remap(RICH)
    monkeypatch.setattr(Rerun, "take", slow)
    replay_id = await stand.submit(-10, 100)
    ended, longest_s = asyncio.create_task(stand.ended(replay_id)), 0.0
    while not ended.done():
        began_s = time.thread_time()
        await asyncio.sleep(0)
        longest_s = max(longest_s, time.thread_time() - began_s)
    assert (await ended)["state"] == "done"
    assert longest_s < 0.06, "not the 120 ms of all"
