"""What a RocksDB store acknowledged survives ``kill -9``; a full disk stops it and does not break it."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from rocksdb_child import SERIES, stored_batches

from loaded_process import LoadedChild
from open_stores import open_rocks
from support import shared_modules

CHILD = [sys.executable, str(Path(__file__).with_name("rocksdb_child.py"))]


async def test_acknowledged_batches_survive_kill_9_again_and_again(tmp_path):
    acknowledged = 0
    for _ in range(5):
        acknowledged = await append_and_be_killed(tmp_path, acknowledged + 20)
        store = await open_rocks(tmp_path)
        stored = await stored_batches(store)
        assert stored >= acknowledged
        newest = await store.latest(SERIES, 1000)
        numbers = [record.time_us for record in newest]
        assert numbers == sorted(set(numbers), reverse=True)
        assert all(record.body.startswith(b'{"n":%d,' % record.time_us) for record in newest)
        await store.close()
        acknowledged = stored


async def append_and_be_killed(folder: Path, until: int) -> int:
    child = await LoadedChild.start(Path(CHILD[1]), "for-ever", str(folder))
    acknowledged = 0
    try:
        async with asyncio.timeout(60):
            while acknowledged < until:
                acknowledged = int(await child.stdout.readline())
    finally:
        child.kill()
        rest = await child.stdout.read()
        await child.wait()
    whole_lines = rest.decode().split("\n")[:-1]
    return int(whole_lines[-1]) if whole_lines else acknowledged


def test_a_write_that_the_system_refuses_stops_nothing_for_good(tmp_path):
    survived(
        subprocess.run(
            [*CHILD, "file-limit", str(tmp_path)], capture_output=True, text=True, timeout=120, env=shared_modules()
        )
    )


def test_a_full_disk_is_said_and_later_forgotten(tmp_path):
    said = survived(run_on_small_disk(tmp_path, "full-disk"))
    assert said[1].startswith("check no space left for the time-series store in ")


def test_nothing_is_lost_when_the_disk_is_full_while_records_are_sealed(tmp_path):
    run = run_on_small_disk(tmp_path, "full-disk-sealing")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "refused 3\n"


def run_on_small_disk(tmp_path: Path, mode: str) -> subprocess.CompletedProcess[str]:
    """Runs the process on a disk of 16 MiB."""
    mount = f"mount -t tmpfs -o size=16m tmpfs '{tmp_path}' && exec \"$@\""
    apart = ["unshare", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], check=False).returncode:
        pytest.skip("this machine lets nobody mount a small disk of their own")
    command = [*apart, "sh", "-c", mount, "sh", *CHILD, mode, str(tmp_path)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, env=shared_modules())


def survived(run: subprocess.CompletedProcess[str]) -> list[str]:
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    assert lines[0].startswith("refused no space left for the time-series store in ")
    assert lines[-1].startswith("stored ")
    return lines
