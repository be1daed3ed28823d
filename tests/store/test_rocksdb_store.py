"""What only the embedded store has: its folder, its backup, a reader in another process, and waiting out a stall."""

from __future__ import annotations

import asyncio
import sys

import pytest

from open_stores import open_rocks
from support import shared_modules
from terrazzo.ports.store import Page, Record, StoreUnavailable

T0 = 1_700_000_000_000_000


def record(number: int, series: str = "g/T1/r") -> Record:
    return Record(series, T0 + number, b'{"n":%d}' % number)


async def test_a_second_opener_is_told_that_the_folder_is_in_use(tmp_path):
    store = await open_rocks(tmp_path)
    try:
        with pytest.raises(StoreUnavailable, match=f"{tmp_path} is in use by another process"):
            await open_rocks(tmp_path)
    finally:
        await store.close()


async def test_another_process_is_told_too(tmp_path):
    store = await open_rocks(tmp_path)
    try:
        script = f"import asyncio, open_stores; asyncio.run(open_stores.open_rocks({str(tmp_path)!r}))"
        command = [sys.executable, "-c", script]
        child = await asyncio.create_subprocess_exec(*command, env=shared_modules(), stderr=asyncio.subprocess.PIPE)
        _, said = await child.communicate()
        assert b"is in use by another process" in said
    finally:
        await store.close()


async def test_a_folder_that_cant_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreUnavailable, match="file"):
        await open_rocks(tmp_path / "file")


async def test_damaged_files_are_an_error_in_words(tmp_path):
    store = await open_rocks(tmp_path)
    await store.append([record(1)])
    await store.close()
    (tmp_path / "CURRENT").write_text("nonsense\n")
    with pytest.raises(StoreUnavailable, match="failed"):
        await open_rocks(tmp_path)


async def test_a_checkpoint_is_a_store_as_of_then(tmp_path):
    store = await open_rocks(tmp_path / "db")
    await store.append([record(1)])
    await store.checkpoint(tmp_path / "backup")
    await store.append([record(2)])
    with pytest.raises(FileExistsError, match="backup"):
        await store.checkpoint(tmp_path / "backup")
    await store.close()
    copy = await open_rocks(tmp_path / "backup")
    assert await copy.page(["g/T1/r"], 0, 2**60, offset=0, limit=9) == Page([record(1)], 1)
    await copy.close()


async def test_an_append_waits_out_a_stall_while_the_loop_runs_on(tmp_path):
    store = await open_rocks(tmp_path)
    await store.append([record(1)])
    rocksdb = store._engine.database.rdict
    rocksdb.set_options({"level0_slowdown_writes_trigger": "1", "level0_stop_writes_trigger": "1"})
    rocksdb.flush()
    stalled = asyncio.create_task(store.append([record(2)]), name="stalled append")
    done, _ = await asyncio.wait([stalled], timeout=0.3)
    assert not done
    rocksdb.set_options({"level0_stop_writes_trigger": "36", "level0_slowdown_writes_trigger": "20"})
    async with asyncio.timeout(20):
        await stalled
    assert await store.latest(["g/T1/r"], 9) == [record(2), record(1)]
    await store.close()


async def test_a_batch_reported_as_failed_is_taken_back_when_it_shows_up_later(tmp_path):
    """Its log reached the disk though the sync failed, and the folder could not be opened again at once."""
    store = await open_rocks(tmp_path)
    await store.append([record(1)], notes={"kept": b"1", "dropped": b"1"})
    engine = store._engine
    batch = engine._encode([record(2), record(3, "g/T2/r")], {"kept": b"2", "dropped": None, "new": b"2"})
    engine.database.commit(batch.fill)
    engine.database.close("the sync failed")
    engine._unsettled = batch
    with pytest.raises(StoreUnavailable, match="the sync failed"):
        await store.latest(["g/T1/r"], 1)
    await store.append([record(4)])
    assert await store.page(["g/T1/r"], 0, 2**60, offset=0, limit=9) == Page([record(4), record(1)], 2)
    assert await store.series("") == ["g/T1/r"]
    assert await store.notes("") == {"dropped": b"1", "kept": b"1"}
    await store.close()


async def test_a_batch_that_was_stored_despite_an_error_is_acknowledged_once(tmp_path):
    store = await open_rocks(tmp_path)
    engine = store._engine
    commit = engine.database.commit

    def commit_and_fail(fill):
        commit(fill)
        engine.database.commit = commit
        raise StoreUnavailable("the sync failed")

    engine.database.commit = commit_and_fail
    await store.append([record(1)])
    assert await store.latest(["g/T1/r"], 9) == [record(1)]
    await store.close()
