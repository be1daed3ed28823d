"""A simulated disk: what is written lasts when it was synced, and of the rest a crash keeps some or nothing.

``SimStateDatabase`` stands for ``StateDatabase`` of the broker; SQLite is the real one, its calls done on the loop
without its threads, so that a crash cuts it off between any two of them.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from sim_loop import SimLoop

from terrazzo_broker.storage import StorageError

_QUICK_S, _SLOW_FACTOR = 0.002, 100


class PowerFailed(Exception):
    """The machine is off: whatever still runs of the process before reaches no disk."""


class SimDisk:
    """The disk of one machine, with its moods; ``random``: of this run."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.is_slow = False
        self.is_full = False
        self.life = 0  # how often the machine has been switched on
        self.broker = KeyValueImage()
        self.connections: list[sqlite3.Connection] = []

    def work_s(self) -> float:
        """How long the next piece of work takes."""
        return self.chance.uniform(0.1, 1.0) * _QUICK_S * (_SLOW_FACTOR if self.is_slow else 1)

    def crash(self) -> None:
        """Loses what was not synced, or keeps the beginning of it; whatever runs on can't write any more."""
        self.life += 1
        self.broker.crash(self.chance)
        for connection in self.connections:
            connection.close()  # rolls back
        self.connections.clear()


class KeyValueImage:
    """What is on the disk of a key-value database, and the batches that are in its log but not synced."""

    def __init__(self) -> None:
        self.durable: dict[bytes, bytes] = {}
        self.unsynced: list[tuple[dict[bytes, bytes | None], list[tuple[bytes, bytes]]]] = []

    def crash(self, chance: random.Random) -> None:
        """Of what was not synced a beginning is there; a torn batch fails its checksum and ends the log."""
        for batch in self.unsynced[: chance.randint(0, len(self.unsynced))]:
            put(self.durable, *batch)
        self.unsynced.clear()

    def sync(self) -> None:
        """Has all of it last."""
        for batch in self.unsynced:
            put(self.durable, *batch)
        self.unsynced.clear()


def put(kept: dict[bytes, bytes], values: Mapping[bytes, bytes | None], ranges: Iterable[tuple[bytes, bytes]]) -> None:
    """Puts values, deletes keys whose value is None, then the ranges."""
    for key, value in values.items():
        if value is None:
            kept.pop(key, None)
        else:
            kept[key] = value
    for first, beyond in ranges:
        for key in [key for key in kept if first <= key < beyond]:
            del kept[key]


class SimStateDatabase:
    """``StateDatabase`` on the simulated disk."""

    def __init__(self, disk: SimDisk, folder: Path) -> None:
        self.folder = folder
        self._disk, self._life = disk, disk.life
        self._now: dict[bytes, bytes] | None = None

    def _check_power(self) -> None:
        if self._life != self._disk.life:
            raise PowerFailed

    def open(self) -> None:
        """Reads what is on the disk, with what is in the log."""
        self._check_power()
        self._now = dict(self._disk.broker.durable)
        for batch in self._disk.broker.unsynced:
            put(self._now, *batch)

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """All keys and values in the order of the keys."""
        assert self._now is not None
        yield from sorted(self._now.items())

    def get(self, key: bytes) -> bytes | None:
        """A value; None: there is none."""
        if self._now is None:
            raise StorageError(f"the broker's storage in {self.folder} is closed")
        return self._now.get(key)

    def commit(self, values: Mapping[bytes, bytes | None], ranges: Iterable[tuple[bytes, bytes]] = ()) -> None:
        """``write`` and ``sync``; opens the database if it is closed."""
        if self._now is None:
            self.open()
        self.write(values, ranges)
        self.sync()

    def write(self, values: Mapping[bytes, bytes | None], ranges: Iterable[tuple[bytes, bytes]] = ()) -> bool:
        """Into memory and the log; False: the database is closed."""
        self._check_power()
        if self._now is None:
            return False
        batch = dict(values), list(ranges)
        put(self._now, *batch)
        self._disk.broker.unsynced.append(batch)
        return True

    def sync(self) -> None:
        """Has all of it last; fails where the disk is full, and may have done it all the same."""
        self._check_power()
        if self._disk.is_full:
            self._now = None
            if self._disk.chance.random() < 0.5:
                self._disk.broker.unsynced.clear()
            raise StorageError(f"no space left for the broker's storage in {self.folder}")
        self._disk.broker.sync()

    def checkpoint(self, path: Path) -> None:
        """There are no backups here."""

    def close(self) -> None:
        """What was committed stays."""
        self._now = None


class LoopQueue:
    """Stands for the queue to a thread of aiosqlite: its calls are done on the loop, one after the other."""

    def __init__(self, loop: SimLoop, disk: SimDisk) -> None:
        self._loop, self._disk, self._life = loop, disk, disk.life
        self._free_s = 0.0

    def put_nowait(self, call: tuple[Any, Any]) -> None:
        """Has a call done after those before it."""
        future, work = call
        self._free_s = max(self._free_s, self._loop.time()) + self._disk.work_s() / 20
        self._loop.call_at(self._free_s, self._loop.perform, future, lambda: self._do(work))

    def _do(self, work: Any) -> Any:
        if self._life != self._disk.life:
            raise PowerFailed
        result = work()
        if isinstance(result, sqlite3.Connection):
            self._disk.connections.append(result)
        return result
