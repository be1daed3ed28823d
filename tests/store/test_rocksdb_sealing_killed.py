"""``kill -9`` at any moment of sealing, merging, replacing and deleting: each record is there once, or as before."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from sealing_child import SERIES, make_step
from store_oracle import Oracle

from length import rounds
from loaded_process import LoadedChild
from open_stores import open_rocks, seal

CHILD = Path(__file__).with_name("sealing_child.py")


def apply(oracle: Oracle, step: int) -> None:
    """Does to the oracle what the process does to the store in a step."""
    kind, what = make_step(step)
    if kind == "append":
        oracle.append(what)
    elif kind == "drop":
        oracle.drop_before(what)
    elif kind == "replace":
        oracle.replace(*what)


async def test_after_kill_9_each_record_is_there_once(tmp_path: Path) -> None:
    oracle, next_step, chance = Oracle(), 0, random.Random()
    for _ in range(rounds(4, 50)):
        done = await work_and_be_killed(tmp_path, next_step, next_step + chance.randrange(10, 40), chance.random() / 20)
        for step in range(next_step, done + 1):
            apply(oracle, step)
        store = await open_rocks(tmp_path)
        try:
            next_step = done + 1
            if not await is_same(store, oracle):  # the step that was under way may have been done, whole
                apply(oracle, next_step)
                next_step += 1
            assert await is_same(store, oracle), f"step {next_step - 1}: {make_step(next_step - 1)[0]}"
            await seal(store, block=16)
            assert await is_same(store, oracle), "when all of it is sealed"
        finally:
            await store.close()


async def is_same(store, oracle: Oracle) -> bool:
    for name in SERIES:
        expected = oracle.page([name], 0, 2**62, offset=0, limit=1_000_000)
        found = [each for piece in [piece async for piece in store.scan([name], 0, 2**62)] for each in piece]
        if found != expected.records[::-1]:
            return False
        assert (await store.page([name], 0, 2**62, offset=0, limit=1)).total == expected.total, "counters"
        middle_us = expected.records[len(expected.records) // 2].time_us if expected.records else 0
        half = oracle.page([name], 0, middle_us, offset=3, limit=5)
        assert await store.page([name], 0, middle_us, offset=3, limit=5) == half
    return True


async def work_and_be_killed(folder: Path, first: int, until_step: int, more_s: float) -> int:
    """The last step that was done for sure."""
    child = await LoadedChild.start(CHILD, str(folder), str(first))
    done = first - 1
    try:
        async with asyncio.timeout(120):
            while done < until_step:
                done = int(await child.stdout.readline())
            await asyncio.sleep(more_s)  # somewhere in a step
    finally:
        child.kill()
        rest = await child.stdout.read()
        await child.wait()
    whole_lines = rest.decode().split("\n")[:-1]
    return int(whole_lines[-1]) if whole_lines else done
