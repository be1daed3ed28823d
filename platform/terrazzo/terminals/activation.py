"""The field ``activated`` of terminals: when each first logged in."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Protocol

from terrazzo.domain.terminal import Terminal
from terrazzo.errors import OperationError
from terrazzo.ports.tasks import OnFailure, Task, Tasks

_log = logging.getLogger(__name__)


class ActivationRecords(Protocol):
    """The terminals' records, as first logins need them."""

    async def set_all_activated(self, times_us: Mapping[str, int]) -> None:
        """Writes the times of first logins, uid to UTC microseconds; those that have one already stay as they are."""


class Activations:
    """Collects first logins and writes them in batches, off the login's path."""

    def __init__(self, records: ActivationRecords, tasks: Tasks) -> None:
        self._records = records
        self._tasks = tasks
        self._waiting: dict[str, int] = {}  # bounded by the number of terminals
        self._arrived = asyncio.Event()
        self._writer: Task | None = None

    def note(self, terminal: Terminal, time_us: int) -> None:
        """Notes a login at ``time_us`` (UTC microseconds), if the terminal never logged in before."""
        if terminal.activated_us is None:
            self._waiting.setdefault(terminal.uid, time_us)
            self._arrived.set()

    def start(self) -> None:
        """Starts the task that writes."""
        self._writer = self._tasks.spawn("terminal activations", self._write, OnFailure.RESTART)

    async def stop(self) -> None:
        """Stops the task and writes what has not been written."""
        if self._writer is not None:
            await self._writer.stop()
        try:
            await self._flush()
        except OperationError as error:
            _log.warning("the first logins of %d terminals could not be noted: %s", len(self._waiting), error)

    async def _write(self) -> None:
        while True:
            self._arrived.clear()
            await self._flush()
            await self._arrived.wait()

    async def _flush(self) -> None:
        """Writes the first logins that wait; they stay where that fails."""
        batch = dict(self._waiting)
        if batch:
            await self._records.set_all_activated(batch)
        for uid in batch:
            self._waiting.pop(uid, None)
