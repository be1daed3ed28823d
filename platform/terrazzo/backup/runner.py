"""``BackupRunner``: makes backups of the running platform, one at a time, when asked and by the clock."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path

from terrazzo.backup.key_sealing import KeySealer, PassphraseUnusable
from terrazzo.backup.manifest import BackedUpFile, BackupDamaged, Manifest
from terrazzo.backup.saving import Saver, Tell, backup_ids, claim, forget_old
from terrazzo.backup.snapshot import STAGING, Checkpointed, Moment, take_snapshot
from terrazzo.backup.status import KEYS_MISSING, read_status, write_status
from terrazzo.config.backup import BackupSection
from terrazzo.database.database import Database
from terrazzo.errors import Conflict, OperationError, Unavailable
from terrazzo.ports.backup_target import BackupTarget, TargetFailed
from terrazzo.ports.store import StoreUnavailable
from terrazzo.times import now_us
from terrazzo_broker.storage import StorageError

LOOK_S = 30.0
_RETRY_US = 900_000_000  # after a failure
_LEAST_FREE = 256 << 20  # bytes that a backup leaves free on the platform's own disk

_log = logging.getLogger(__name__)
_FAILURES = (OperationError, StoreUnavailable, StorageError, TargetFailed, BackupDamaged, PassphraseUnusable, OSError)


class BackupRunner:
    """Makes backups.

    Args:
        parts: what keeps something on disk, by its folder in the data folder, the store last.
        open_target: the target with a name as in ``backup.target``; raises ``TargetFailed``.
        platform_id: by which a target knows this platform again.
        version: of the program.
    """

    def __init__(
        self,
        section: BackupSection,
        *,
        data_dir: Path,
        database: Database,
        store_kind: str,
        parts: Mapping[str, Checkpointed],
        open_target: Callable[[str], BackupTarget],
        platform_id: str,
        version: str,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.status = read_status(data_dir)
        self._section = section
        self._data_dir = data_dir
        self._database = database
        self._store_kind = store_kind
        self._parts = parts
        self._open_target = open_target
        self._platform_id = platform_id
        self._version = version
        self._clock = clock
        self._is_running = False

    async def look(self) -> None:
        """Makes a backup where one is due; a failure is logged and tried again later."""
        section, status = self._section, self.status
        if not section.target or not section.every_hours:
            return
        period_us = int(section.every_hours * 3_600_000_000)
        now = self._clock()
        if now < status.ended_us + period_us or (status.failed_us and now < status.failed_us + _RETRY_US):
            return
        try:
            await self.run(section.target)
        except _FAILURES as error:
            _log.error("the backup to %s failed: %s", section.target, error)

    async def run(self, target: str, tell: Tell = lambda _done, _total: None) -> Manifest:
        """Makes a backup; returns when the target has all of it.

        Args:
            tell: called on another thread with bytes done and bytes in all.

        Raises:
            Conflict: another one is under way.
            Unavailable, StoreUnavailable, StorageError, TargetFailed, BackupDamaged, PassphraseUnusable, OSError: it
                could not be made; there is no new backup, and those before stand.
        """
        if self._is_running:
            raise Conflict("backup: another one is under way")
        self._is_running = True
        began = time.monotonic()
        try:
            manifest, put_bytes = await self._make(target, tell)
        except BaseException as error:
            self.status.failures += 1
            self.status.failed_us = self._clock()
            self.status.last_error = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
            await asyncio.to_thread(write_status, self._data_dir, self.status)
            raise
        finally:
            self._is_running = False
            await asyncio.to_thread(shutil.rmtree, self._data_dir / STAGING, ignore_errors=True)
        self._note(target, manifest, put_bytes, time.monotonic() - began)
        await asyncio.to_thread(write_status, self._data_dir, self.status)
        return manifest

    def _note(self, target: str, manifest: Manifest, put_bytes: int, took_s: float) -> None:
        status = self.status
        status.id, status.target, status.keys = manifest.id, target, manifest.keys
        status.began_us, status.ended_us, status.failed_us, status.last_error = manifest.began_us, self._clock(), 0, ""
        status.size, status.put_bytes, status.took_s = manifest.size, put_bytes, round(took_s, 3)
        status.backups += 1
        if manifest.keys != "sealed":
            _log.warning("%s", KEYS_MISSING)

    async def _make(self, name: str, tell: Tell) -> tuple[Manifest, int]:
        sealer = None
        if self._section.passphrase_file:
            sealer = await asyncio.to_thread(KeySealer.read, self._section.passphrase_file)
        target = await asyncio.to_thread(self._open_target, name)
        await asyncio.to_thread(claim, target, self._platform_id)
        began_us = self._clock()
        backup_id = await asyncio.to_thread(_new_id, target, began_us)
        folder = self._data_dir / STAGING / backup_id
        self._check_room()
        await asyncio.to_thread(shutil.rmtree, self._data_dir / STAGING, ignore_errors=True)
        folder.mkdir(mode=0o700, parents=True)
        moment = await take_snapshot(self._database, self._parts, self._data_dir, folder)
        saver = Saver(target, sealer, tell)
        files = await asyncio.to_thread(saver.save, folder)
        keys = "left out" if saver.left_out else "sealed"
        manifest = self._manifest(backup_id, began_us, moment, files, keys=keys)
        await asyncio.to_thread(saver.finish, manifest)
        await asyncio.to_thread(forget_old, target, self._section.keep)
        return manifest, saver.put_bytes

    def _manifest(
        self, backup_id: str, began_us: int, moment: Moment, files: list[BackedUpFile], *, keys: str
    ) -> Manifest:
        return Manifest(
            id=backup_id,
            began_us=began_us,
            held_ms=round(moment.held_ms, 1),
            version=self._version,
            database=moment.database,
            store=self._store_kind,
            keys=keys,
            rows=moment.rows,
            files=files,
        )

    def _check_room(self) -> None:
        """Refuses where the copy of the database would fill the disk; checkpoints are links.

        Raises:
            Unavailable: there is too little room.
        """
        file = self._database.sqlite_file
        needed = _LEAST_FREE + (2 * file.stat().st_size if file is not None and file.exists() else 0)
        free = shutil.disk_usage(self._data_dir).free
        if free < needed:
            raise Unavailable(f"backup: the disk of {self._data_dir} has {free} bytes free, {needed} are needed")

    async def clear(self) -> None:
        """Removes what a crash has left of a backup."""
        await asyncio.to_thread(shutil.rmtree, self._data_dir / STAGING, ignore_errors=True)


def _new_id(target: BackupTarget, began_us: int) -> str:
    first = datetime.fromtimestamp(began_us / 1e6, UTC).strftime("%Y%m%dT%H%M%SZ")
    taken, number, found = set(backup_ids(target)), 1, first
    while found in taken:
        number += 1
        found = f"{first}-{number}"
    return found
