"""A migration that is killed goes on where it was: nothing is missing, nothing is there twice."""

from __future__ import annotations

import asyncio
import json
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from migration_stand import clean, environment, in_store, migrate, new_source, rows_of, started

from length import rounds
from loaded_process import run_loaded_text
from open_stores import supervisor
from own_platform import open_store
from terrazzo.backup.migration import rows, series
from terrazzo.backup.migration.marker import MIGRATING, Unmovable, alone
from terrazzo.backup.migration.runner import Migration, Report, make_plan
from terrazzo.config.sections import Config, load_config
from terrazzo.database.database import Database
from terrazzo.ports.store import Record, TimeSeriesStore

pytestmark = pytest.mark.timeout(600)  # each starts a dozen processes, one after the other

TO = "TERRAZZO_TO_"


class Cut(BaseException):
    """The power goes."""


class Fuse:
    """Cuts once it was asked so often."""

    def __init__(self, left: int) -> None:
        self.left = left

    def burn(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Cut


class CutStore:
    """A store whose process ends right after a commit, or right before it."""

    def __init__(self, store: TimeSeriesStore, fuse: Fuse) -> None:
        self._store = store
        self._fuse = fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def append(self, *given: Any, **more: Any) -> None:
        self._fuse.burn()
        await self._store.append(*given, **more)
        self._fuse.burn()


async def run_until(fuse: Fuse, source: Path, target: Path, given: dict[str, str]) -> Report:
    """One process' work."""
    tasks = supervisor()

    async def opened(config: Config) -> Any:
        return CutStore(await open_store(config, tasks), fuse)

    here = load_config(None, {}).with_data_dir(source)
    there = load_config(None, given).with_data_dir(target)
    try:
        plan = make_plan(here, there)
        return await Migration(plan, open_store=opened, tell=lambda *_: None).run()
    finally:
        await tasks.close()


def test_cut_anywhere(tmp_path, postgresql, influxd, monkeypatch):
    monkeypatch.setattr(series, "_BATCH_RECORDS", 9)
    monkeypatch.setattr(rows, "_MOST_ROWS", 50)
    source = new_source(tmp_path / "source", series=2, records=20)
    servers = {"database": postgresql.database(), "influx": (influxd.url, "cut")}
    seed = random.randrange(2**32)
    choice, cuts = random.Random(seed), 0
    write = Database.writing

    def cutting(self: Database) -> Any:
        fuse.burn()
        return write(self)

    monkeypatch.setattr(Database, "writing", cutting)
    for most in range(8, 8_000, 8):
        fuse = Fuse(choice.randrange(1, most))
        try:
            report = asyncio.run(run_until(fuse, source, tmp_path / "there", environment(**servers)))
        except Cut:
            cuts += 1
            assert (tmp_path / "there" / MIGRATING).exists() or cuts == 1
            continue
        break
    else:
        raise AssertionError(f"it never ends: {seed}")
    assert cuts >= 2, seed
    assert report.differences == [], seed
    assert report.records == 9 * 20 + 2
    monkeypatch.undo()
    back = migrate(tmp_path / "there", tmp_path / "back", **environment(**servers))
    assert back.returncode == 0, (seed, back.stderr)
    assert rows_of(tmp_path / "back") == rows_of(source), seed
    assert in_store(tmp_path / "back", {}) == in_store(source, {}), seed


POINTS = (
    ("tables", 1),
    ("tables", 20),
    ("records", 1),
    ("records", 7),
    ("files", 1),
    ("tables of the source compared", 2),
    ("records of the target compared", 1),
    ("verified", 1),
    ("database released", 1),
)


def test_killed_at_each_point(tmp_path, postgresql, influxd):
    """Each process goes on where the one before was killed; the last has nothing left but to end."""
    source = new_source(tmp_path / "source", series=2, records=20)
    wanted = rows_of(source), in_store(source, {})
    servers = {"database": postgresql.database(), "influx": (influxd.url, "points")}
    for what, count in POINTS:
        given = ["migrate", "--data", str(source), "--to-data", str(tmp_path / "there")]
        words = [str(Path(__file__).with_name("killed_migration.py")), what, str(count), *given]
        process = run_loaded_text(words, env={**clean(), **environment(TO, **servers)})
        assert process.returncode == -signal.SIGKILL, (what, count, process.stderr)
        assert (tmp_path / "there" / MIGRATING).exists(), what
    done = migrate(source, tmp_path / "there", "--json", **environment(TO, **servers))
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["equal"]
    assert told["records"] == 9 * 20 + 2
    assert not (tmp_path / "there" / MIGRATING).exists()
    back = migrate(tmp_path / "there", tmp_path / "back", **environment(**servers))
    assert back.returncode == 0, back.stderr
    assert rows_of(tmp_path / "back") == wanted[0]
    assert in_store(tmp_path / "back", {}) == wanted[1]


@pytest.mark.parametrize("way", ["there", "back"])
def test_killed(tmp_path, postgresql, influxd, way):
    source = new_source(tmp_path / "source", records=2_000)
    servers = {"database": postgresql.database(), "influx": (influxd.url, f"killed{way}")}
    wanted = rows_of(source), in_store(source, {})
    from_servers: dict[str, str] = {}
    to_servers = environment(TO, **servers)
    if way == "back":
        assert migrate(source, tmp_path / "there", **to_servers).returncode == 0
        source, from_servers, to_servers = tmp_path / "there", environment(**servers), {}
    for _ in range(rounds(4, 40)):
        process = started(source, tmp_path / "target", **from_servers, **to_servers)
        try:
            process.wait(timeout=random.uniform(0.1, 3))  # the point is drawn, none is waited for
            break
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    began = time.monotonic()
    done = migrate(source, tmp_path / "target", **from_servers, **to_servers)
    if "is not empty" in done.stderr:  # it had ended before
        assert not (tmp_path / "target" / MIGRATING).exists()
    else:
        assert done.returncode == 0, (time.monotonic() - began, done.stderr)
    if way == "there":
        assert migrate(tmp_path / "target", tmp_path / "back", **environment(**servers)).returncode == 0
    there = tmp_path / ("back" if way == "there" else "target")
    assert rows_of(there) == wanted[0]
    assert in_store(there, {}) == wanted[1]


def test_a_source_that_ran_meanwhile_is_told(tmp_path, influxd, monkeypatch):
    """What was copied is not copied again: records that came behind it are found missing."""
    monkeypatch.setattr(series, "_BATCH_RECORDS", 9)
    source = new_source(tmp_path / "source", series=1, records=20)
    given = environment(influx=(influxd.url, "meanwhile"))
    with pytest.raises(Cut):
        asyncio.run(run_until(Fuse(40), source, tmp_path / "there", given))
    asyncio.run(_report_more(source))
    report = asyncio.run(run_until(Fuse(0), source, tmp_path / "there", given))
    assert [line for line in report.differences if line.startswith("series ")]
    assert (tmp_path / "there" / MIGRATING).exists()


def test_too_little_room_is_told_before_anything_is_copied(tmp_path, influxd, monkeypatch):
    source = new_source(tmp_path / "source", series=1, records=5)
    given = environment(influx=(influxd.url, "room"))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000))
    with pytest.raises(OSError, match=r"needs about \d+ bytes, 1000 are free"):
        asyncio.run(run_until(Fuse(0), source, tmp_path / "there", given))
    monkeypatch.undo()
    assert asyncio.run(run_until(Fuse(0), source, tmp_path / "there", given)).differences == []


def test_two_at_once_are_refused(tmp_path, influxd):
    source = new_source(tmp_path / "source", series=1, records=5)
    given = environment(influx=(influxd.url, "twice"))
    with alone(tmp_path / "there"), pytest.raises(Unmovable, match="another migration works on"):
        asyncio.run(run_until(Fuse(0), source, tmp_path / "there", given))


async def _report_more(source: Path) -> None:
    tasks = supervisor()
    store = await open_store(Config().with_data_dir(source), tasks)
    name = (await store.series("c/"))[0]
    await store.append([Record(name, 3, b"{}")])
    await store.close()
    await tasks.close()
