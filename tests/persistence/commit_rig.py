"""A broker on real RocksDB whose commits can be held up, and made to fail: in one process."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from persistence_client import Client

from terrazzo_broker import Broker, BrokerSettings
from terrazzo_broker.persistence import DiskStorage
from terrazzo_broker.persistence.database import StateDatabase
from terrazzo_broker.standalone import OpenHooks
from terrazzo_broker.storage import StorageError

HOUR_S = 3600


class Rig:
    """A broker whose commits can be held up, on a clock that can be moved."""

    def __init__(self, folder: Path, now_us: Callable[[], int], hooks: OpenHooks, **limits: Any) -> None:
        self.storage = DiskStorage(folder, now_us=now_us)
        self.gate = threading.Event()
        self.gate.set()
        self.commits = 0
        self.fails = False
        self.is_unreadable = False
        self.reads = 0
        self.storage._database.write = self._write  # type: ignore[method-assign]
        self.storage._database.sync = self._sync  # type: ignore[method-assign]
        self.storage._database.get = self._get  # type: ignore[method-assign]
        settings = BrokerSettings(sweep_interval_s=0.02, sys_interval_s=0, **limits)
        self.broker = Broker(settings, hooks, self.storage)
        self.broker.core.now_us = now_us  # type: ignore[method-assign]
        self.port = 0
        self._clients: list[Client] = []

    def _write(self, *arguments: Any) -> bool:
        if self.fails:
            raise StorageError("no space left")
        return StateDatabase.write(self.storage._database, *arguments)

    def _sync(self) -> None:
        assert self.gate.wait(10)
        StateDatabase.sync(self.storage._database)
        self.commits += 1

    def _get(self, key: bytes) -> bytes | None:
        if self.is_unreadable:
            raise StorageError("Corruption: block checksum mismatch")
        self.reads += 1
        return StateDatabase.get(self.storage._database, key)

    async def open(self) -> Client:
        """A connection without a CONNECT yet."""
        client = await Client.open(self.port)
        self._clients.append(client)
        return client

    async def close(self) -> None:
        """Ends the broker and the clients."""
        self.gate.set()
        await self.broker.close(1.0)
        for client in self._clients:
            await client.finish()

    async def dial(self, client_id: str, *, expiry_s: int = HOUR_S, clean: bool = False, **options: Any) -> Client:
        client = await self.open()
        options.setdefault("session_expiry_interval", expiry_s)
        await client.connect(client_id, clean_start=clean, **options)
        return client


class Clock:
    """Microseconds that pass only when told to."""

    def __init__(self) -> None:
        self.now_us = 1_800_000_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def advance(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)


async def crash(rig: Rig) -> None:
    """As ``kill -9`` leaves the folder: nothing is committed any more, connections end without a word."""
    rig.storage._commits._is_closed = True
    if rig.storage._commits._group is not None:
        await asyncio.wait([rig.storage._commits._group.written])
    rig.storage._database.close()
    await rig.broker.close(1.0)
