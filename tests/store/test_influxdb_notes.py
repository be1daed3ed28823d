"""Records and the notes that follow from them: after a kill at any request both are there, once, or none of them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from notes_child import BATCH, NOTES, SERIES
from store_locations import InfluxLocation

from influx_gate import Gate
from loaded_process import LoadedChild
from waiting import until


async def killed_at(gate: Gate, location: InfluxLocation, number: int, *, after: bool) -> bool:
    """Whether a process that appends came to its n-th request, where it was killed."""
    gate.stop_at(number, after=after)
    program = Path(__file__).with_name("notes_child.py")
    child = await LoadedChild.start(program, gate.url, location.database, str(location.spool))
    said = asyncio.create_task(child.stdout.readline(), name="child")
    stopped = asyncio.create_task(gate.stopped.wait(), name="gate")
    async with asyncio.timeout(30):
        await asyncio.wait({said, stopped}, return_when=asyncio.FIRST_COMPLETED)
        is_stopped = not said.done()
        child.kill()
        await child.wait()
        await said
    gate.open()
    stopped.cancel()
    return is_stopped


@pytest.mark.parametrize("after", [False, True], ids=["not reached", "reached, not answered"])
async def test_a_kill_leaves_records_with_their_notes_or_neither(new_influx_location, after):
    outcomes = []
    location = new_influx_location()
    async with Gate(location.url) as gate:
        number, is_over = 0, False
        while not is_over:
            number += 1
            fresh = InfluxLocation(
                location.url, f"{location.database}-{number}", location.spool.with_name(f"notes-{number}")
            )
            is_over = not await killed_at(gate, fresh, number, after=after)
            store = await fresh.open()
            await store.check()
            await until(lambda: not store.stats().spool_batches)  # noqa: B023 - it is waited for here
            records, notes = await store.latest([SERIES], 99), await store.notes("late/")
            outcomes.append((gate.seen[number - 1] if not is_over else "", len(records), notes))
            assert (records, notes) in (([], {}), (BATCH[::-1], NOTES)), outcomes
            await store.append([])
            await store.close()
    assert ("/write", 6, NOTES) in outcomes
    assert outcomes[0][1] == 0
