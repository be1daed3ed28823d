"""Backups of a platform that runs: what is in them, and what they cost."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from pathlib import Path

import msgspec
import pytest

from own_platform import own_platform
from platform_site import peers, running_site, until
from terrazzo.backup.key_sealing import KeySealer
from terrazzo.backup.manifest import BackupDamaged
from terrazzo.backup.restoring import NotEmpty, check_contents, restore_files
from terrazzo.backup.runner import BackupRunner
from terrazzo.backup.saving import backup_ids, read_manifest
from terrazzo.cli.control import NotDone, ask_running
from terrazzo.errors import Conflict
from terrazzo_adapters.backup import FolderTarget

PASSPHRASE = "correct horse battery"


@pytest.fixture
def passphrase(tmp_path_factory):
    path = tmp_path_factory.mktemp("keys") / "passphrase"
    path.write_text(PASSPHRASE)
    return str(path)


def ask(site, target: Path):
    return asyncio.to_thread(
        ask_running, site.platform.config.data_dir, {"do": "backup", "target": str(target)}, lambda _: None
    )


def restored(target: Path, folder: Path, backup_id: str = "") -> Path:
    place = FolderTarget(target)
    manifest = read_manifest(place, backup_id or backup_ids(place)[0])
    restore_files(place, manifest, folder, sealer=None, tell=lambda *_: None)
    return folder


def runner_of(platform, *, backup=None, **given) -> BackupRunner:
    return BackupRunner(
        msgspec.structs.replace(platform.config.backup, **(backup or {})),
        data_dir=platform.config.data_dir,
        store_kind="embedded",
        platform_id="x",
        version="1",
        database=platform.metadata.database,
        parts={"broker": platform.terminals.broker, "series": platform.store},
        open_target=lambda name: FolderTarget(Path(name)),
        **given,
    )


async def test_what_was_acknowledged_before_is_in_it(site, company, peer, tmp_path):
    await company.terminal("t1")
    await company.object("t1")
    one = peer("t1")
    await one.connect()
    stop = asyncio.Event()
    acknowledged = 0

    async def report():
        nonlocal acknowledged
        while not stop.is_set():
            await one.publish("g/r", json.dumps({"n": acknowledged}).encode())
            acknowledged += 1

    reporting = asyncio.create_task(report())
    await until(lambda: acknowledged >= 50, "reports are stored")
    before = acknowledged
    told = await ask(site, tmp_path / "target")
    await until(lambda: acknowledged >= before + 20, "it goes on")
    stop.set()
    await reporting
    assert told["size"] > 0
    assert told["keys"] == "left out"
    folder = restored(tmp_path / "target", tmp_path / "restored")
    shutil.copy(site.platform.config.data_dir / "secrets-key", folder)  # which somebody has kept elsewhere
    async with running_site(folder) as again:
        kept = [json.loads(record.body)["n"] for record in await again.grid("g/t1/r")]
        assert kept == list(range(len(kept)))
        assert len(kept) >= before
        assert again.platform.metadata.registry.terminal("t1") is not None


async def test_the_drill(tmp_path, passphrase):
    """Backed up with a passphrase, lost, restored: the terminal logs in, and a command is answered."""
    backup = {"target": str(tmp_path / "target"), "passphrase_file": passphrase}
    async with running_site(tmp_path / "old", backup=backup) as site:
        company = await site.company()
        await company.terminal("t1")
        await ask(site, tmp_path / "target")
    place = FolderTarget(tmp_path / "target")
    manifest = read_manifest(place, backup_ids(place)[0])
    assert manifest.keys == "sealed"
    restore_files(place, manifest, tmp_path / "new", sealer=KeySealer.read(passphrase), tell=lambda *_: None)
    assert (tmp_path / "new" / "secrets-key").read_text() == (tmp_path / "old" / "secrets-key").read_text()
    assert (tmp_path / "new" / "secrets-key").stat().st_mode & 0o777 == 0o600
    async with running_site(tmp_path / "new") as site, peers(site) as peer:
        one = peer("t1")
        assert await one.connect() == 0
        await one.subscribe("p2p/t1")
        await site.commands.submit(company.actor, "t1", "Diag", "")
        message = (await one.received(1))[0]
        await one.publish("g/n", b'{"Result":"ok","Code":0}', correlation=message.properties.CorrelationData)
        await until(lambda: site.commands.stats.steps["answered"] == 1, "the command is answered")


async def test_the_next_one_puts_only_what_is_new(site, company, peer, tmp_path):
    await company.terminal("t1")
    one = peer("t1")
    await one.connect()
    for _ in range(20):
        await one.publish("g/r", os.urandom(2_000).hex().join('""').join(['{"a":', "}"]).encode())
    first = await ask(site, tmp_path / "target")
    second = await ask(site, tmp_path / "target")
    assert first["id"] != second["id"]
    assert first["put_bytes"] > 40_000
    assert second["put_bytes"] < first["put_bytes"] / 2
    assert not (site.platform.config.data_dir / ".backup").exists()


async def test_old_ones_go_and_what_others_need_stays(tmp_path):
    backup = {"target": str(tmp_path / "target"), "keep": 2}
    async with running_site(tmp_path / "data", backup=backup) as site:
        made = [(await ask(site, tmp_path / "target"))["id"] for _ in range(4)]
        place = FolderTarget(tmp_path / "target")
        assert backup_ids(place) == sorted(made, reverse=True)[:2]
        for backup_id in backup_ids(place):
            assert check_contents(place, read_manifest(place, backup_id), sealer=None, tell=lambda *_: None) == []
        named = {each.sha256 for kept in backup_ids(place) for each in read_manifest(place, kept).files}
        assert {held.name.rsplit("/", 1)[1] for held in place.held("objects/")} == named


async def test_a_target_belongs_to_one_platform(site, tmp_path):
    await ask(site, tmp_path / "target")
    async with running_site(tmp_path / "other") as other:
        with pytest.raises(NotDone, match="has backups of another platform"):
            await ask(other, tmp_path / "target")


async def test_one_at_a_time(site, tmp_path):
    runner = runner_of(site.platform)
    first = asyncio.create_task(runner.run(str(tmp_path / "target")))
    await asyncio.sleep(0)
    with pytest.raises(Conflict, match="another one is under way"):
        await runner.run(str(tmp_path / "target"))
    await first


async def test_the_schedule_makes_one_when_it_is_due(tmp_path):
    async with own_platform(tmp_path / "data") as (platform, _):
        now_us = 10**15
        runner = runner_of(
            platform, backup={"target": str(tmp_path / "target"), "every_hours": 1.0}, clock=lambda: now_us
        )
        await runner.look()
        assert runner.status.backups == 1
        await runner.look()
        assert runner.status.backups == 1
        now_us += 3_600_000_001
        await runner.look()
        assert runner.status.backups == 2
        again = runner_of(
            platform, backup={"target": str(tmp_path / "target"), "every_hours": 1.0}, clock=lambda: now_us
        )
        await again.look()
        assert again.status.backups == 0, "a restart knows of the last one"


async def test_a_failure_is_told_and_tried_again_later(tmp_path, caplog):
    (tmp_path / "file").write_text("")
    async with own_platform(tmp_path / "data") as (platform, _):
        now_us = 10**15
        section = {"target": str(tmp_path / "file" / "below"), "every_hours": 1.0}
        runner = runner_of(platform, backup=section, clock=lambda: now_us)
        await runner.look()
        await runner.look()
        assert (runner.status.failures, runner.status.backups) == (1, 0)
        assert "file" in runner.status.last_error
        assert "the backup to" in caplog.text
        now_us += 900_000_001
        await runner.look()
        assert runner.status.failures == 2


async def test_a_restore_wants_an_empty_folder(site, tmp_path):
    await ask(site, tmp_path / "target")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").write_text("")
    with pytest.raises(NotEmpty, match="is not empty"):
        restored(tmp_path / "target", tmp_path / "full")


@pytest.mark.parametrize("damage", ["flipped", "cut", "longer", "gone"])
async def test_a_damaged_content_is_named_and_nothing_appears(site, tmp_path, damage):
    await ask(site, tmp_path / "target")
    place = FolderTarget(tmp_path / "target")
    manifest = read_manifest(place, backup_ids(place)[0])
    hurt = next(each for each in manifest.files if each.path == "terrazzo.db")
    path = tmp_path / "target" / "objects" / hurt.sha256[:2] / hurt.sha256
    content = path.read_bytes()
    if damage == "gone":
        path.unlink()
    else:
        changed = {"flipped": bytes([content[0] ^ 1]) + content[1:], "cut": content[:-1], "longer": content + b"x"}
        path.write_bytes(changed[damage])
    wrong = check_contents(place, manifest, sealer=None, tell=lambda *_: None)
    assert [line.split(":")[0] for line in wrong] == ["terrazzo.db"]
    with pytest.raises(BackupDamaged, match=r"terrazzo\.db"):
        restored(tmp_path / "target", tmp_path / "new")
    assert [each.name for each in (tmp_path / "new").iterdir()] == [".restoring"]
    with pytest.raises(NotEmpty, match="of a restore that did not end"):
        restored(tmp_path / "target", tmp_path / "new")


async def test_what_a_crash_left_is_cleared(tmp_path):
    left = tmp_path / "data" / ".backup" / "20260101T000000Z" / "series"
    left.mkdir(parents=True)
    async with own_platform(tmp_path / "data"):
        assert not (tmp_path / "data" / ".backup").exists()


async def test_uploaded_files_are_in_it(site, tmp_path):
    folder = site.platform.config.data_dir / "files"
    folder.mkdir(exist_ok=True)
    (folder / ("a" * 32)).write_bytes(b"content")
    await ask(site, tmp_path / "target")
    new = restored(tmp_path / "target", tmp_path / "new")
    assert (new / "files" / ("a" * 32)).read_bytes() == b"content"
    assert not (new / "secrets-key").exists()
    assert not (new / "control.sock").exists()
