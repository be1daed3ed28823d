"""``activated``: when a terminal first logged in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from terrazzo.domain.terminal import Terminal
from terrazzo.errors import OperationError

_log = logging.getLogger(__name__)

_RETRY_S = 5.0


class ActivationRecords(Protocol):
    """Where first logins are kept."""

    async def set_all_activated(self, times_us: Mapping[str, int]) -> None:
        """Notes the first logins among these, uid to time; later ones change nothing."""


class Activations:
    """Collects first logins and writes them in batches, off the login's path."""

    def __init__(self, records: ActivationRecords) -> None:
        self._records = records
        self._waiting: dict[str, int] = {}  # bounded by the number of terminals
        self._arrived = asyncio.Event()
        self._writer: asyncio.Task[None] | None = None

    def note(self, terminal: Terminal, time_us: int) -> None:
        """A terminal has logged in."""
        if terminal.activated_us is None:
            self._waiting.setdefault(terminal.uid, time_us)
            self._arrived.set()

    def start(self) -> None:
        """Starts the writer."""
        self._writer = asyncio.create_task(self._write(), name="terminal activations")

    async def stop(self) -> None:
        """Writes what has not been written."""
        if self._writer is not None:
            self._writer.cancel()
            await asyncio.wait({self._writer})
        await self._flush()

    async def _write(self) -> None:
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            if not await self._flush():
                await asyncio.sleep(_RETRY_S)
                self._arrived.set()

    async def _flush(self) -> bool:
        batch = dict(self._waiting)
        if not batch:
            return True
        try:
            await self._records.set_all_activated(batch)
        except OperationError as error:
            _log.warning("the first logins of %d terminals could not be noted: %s", len(batch), error)
            return False
        for uid in batch:
            self._waiting.pop(uid, None)
        return True
