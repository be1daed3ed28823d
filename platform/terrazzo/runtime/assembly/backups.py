"""Makes what backs the platform up, and starts it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from terrazzo.backup.manifest import Manifest
from terrazzo.backup.runner import LOOK_S, BackupRunner
from terrazzo.backup.snapshot import Checkpointed
from terrazzo.backup.status import BackupStatus
from terrazzo.config.sections import Config
from terrazzo.database.database import Database
from terrazzo.embedded.bridges import load_broker_id
from terrazzo.errors import BadParameter
from terrazzo.ports.backup_target import BackupTarget
from terrazzo.ports.bridge import Bridge
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.tasks import OnFailure
from terrazzo.runtime.build_info import build_info
from terrazzo.runtime.control_socket import Answerer, Say
from terrazzo.runtime.lifetime import Lifetime
from terrazzo.times import now_us
from terrazzo_broker.broker import Broker

OpenTarget = Callable[[str], BackupTarget]
"""Opens the target with a name as in ``backup.target``; raises ``TargetFailed``."""


def new_backup_runner(
    config: Config,
    *,
    database: Database,
    parts: Mapping[str, Checkpointed],
    open_target: OpenTarget,
    clock: Callable[[], int] = now_us,
) -> BackupRunner:
    """The maker of backups of a data folder; ``parts`` as ``take_snapshot`` takes them."""
    return BackupRunner(
        config.backup,
        data_dir=config.data_dir,
        database=database,
        store_kind=config.store.kind,
        parts=parts,
        open_target=open_target,
        platform_id=load_broker_id(config.data_dir),
        version=build_info().version,
        clock=clock,
    )


async def start_backups(
    config: Config,
    lifetime: Lifetime,
    *,
    database: Database,
    store: TimeSeriesStore,
    broker: Broker,
    bridges: Sequence[Bridge],
    open_target: OpenTarget,
) -> BackupRunner:
    """Starts the schedule."""
    parts: dict[str, Checkpointed] = {"broker": broker}
    parts |= {f"bridges/{each.name}": each for each in bridges}
    parts[config.store_dir.name if config.store.kind == "embedded" else "spool"] = store
    runner = new_backup_runner(config, database=database, parts=parts, open_target=open_target)
    await runner.clear()
    looking = lifetime.tasks.repeat("backup", LOOK_S, runner.look, OnFailure.RESTART)
    lifetime.push_async_callback(looking.stop)
    return runner


def backup_answerer(runner: BackupRunner, config: Config) -> Answerer:
    """Makes a backup when ``terrazzo backup`` asks for it."""

    async def answer(question: dict[str, Any], say: Say) -> dict[str, Any]:
        return await _make(runner, config.backup.target, question, say)

    return answer


async def _make(runner: BackupRunner, configured: str, question: dict[str, Any], say: Say) -> dict[str, Any]:
    loop = asyncio.get_running_loop()
    target = question.get("target") or configured
    if not isinstance(target, str) or not target:
        raise BadParameter("target", "expected a folder or s3://bucket/prefix, here or as backup.target")

    def tell(done: int, total: int) -> None:
        loop.call_soon_threadsafe(say, {"done": done, "total": total})

    return describe(await runner.run(target, tell), runner.status)


def describe(manifest: Manifest, status: BackupStatus) -> dict[str, Any]:
    """What is said of a backup that was made."""
    return {
        "id": manifest.id,
        "size": manifest.size,
        "put_bytes": status.put_bytes,
        "took_s": status.took_s,
        "held_ms": manifest.held_ms,
        "keys": manifest.keys,
    }
