"""The effects that the store has and the database hasn't yet: bounded, in order, applied by one task.

A full outbox stops the ingest (``has_room``); nothing is dropped. While the database is away the effects wait as notes
in the store, and a restart finds them there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence

import msgspec

from terrazzo.domain.happened import Happened
from terrazzo.listeners import Listeners
from terrazzo.mapping.effect_writer import EffectWriter, Numbered
from terrazzo.mapping.effects import Effect, decode_effects, encode_effects
from terrazzo.ports.tasks import OnFailure, Task, Tasks

_log = logging.getLogger(__name__)

PREFIX = "effects/"
MOST_EFFECTS = 100_000
_AT_ONCE = 2_000  # effects of one transaction


class EffectQueueStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    waiting: int = 0  # effects that the database hasn't yet
    applied: int = 0
    failures: int = 0
    pauses: int = 0  # the ingest had to wait


class EffectQueue:
    """Numbers effects, keeps them in order, and applies them after their commit.

    ``happened`` tells what is in the database now, after each transaction; ``room`` that there is room again.
    """

    def __init__(self, effect_writer: EffectWriter, tasks: Tasks, *, limit: int = MOST_EFFECTS) -> None:
        self.stats = EffectQueueStats()
        self._effect_writer = effect_writer
        self._tasks = tasks
        self._limit = limit
        self._last = 0  # number given
        self._applied = 0
        self._sealed: deque[Numbered] = deque()  # not committed yet
        self._committed: deque[Numbered] = deque()
        self._done: list[str] = []  # notes to delete with the next commit
        self._wake = asyncio.Event()
        self._moved = asyncio.Event()
        self._task: Task | None = None
        self.happened: Listeners[Sequence[Happened]] = Listeners("events and labels")
        self.room: Listeners[[]] = Listeners("room for events and labels")

    @property
    def has_room(self) -> bool:
        """Whether more effects may come."""
        return self.stats.waiting < self._limit

    async def start(self, notes: Mapping[str, bytes]) -> None:
        """Applies what an earlier run left (``effects/``), then takes more.

        Raises:
            Unavailable: the database doesn't answer.
        """
        self._applied = await self._effect_writer.applied()
        for name, body in sorted(notes.items()):
            seq = int(name.removeprefix(PREFIX))
            self._last = max(self._last, seq)
            if seq > self._applied:
                self._enqueue(self._committed, seq, decode_effects(body))
            else:
                self._done.append(name)
        self._last = max(self._last, self._applied)
        while self._committed:
            await self._apply_some()
        self._task = self._tasks.spawn("effects", self._run, OnFailure.REPORT)

    async def stop(self, timeout_s: float = 2.0) -> None:
        """Applies what is committed if the database takes it in time; the rest is found by the next start."""
        if self._task is None:
            return
        try:
            async with asyncio.timeout(timeout_s):
                await self.settled(self._committed[-1][0] if self._committed else 0)
        except TimeoutError:
            _log.warning("%d events and labels wait for the database until the next start", self.stats.waiting)
        await self._task.stop()

    def seal(self, effects: Sequence[Effect]) -> dict[str, bytes | None]:
        """The notes of a commit: these effects, and none of those that are applied."""
        notes: dict[str, bytes | None] = dict.fromkeys(self._done)
        self._done = []
        if effects:
            self._last += 1
            notes[_name(self._last)] = encode_effects(effects)
            self._enqueue(self._sealed, self._last, effects)
        return notes

    @property
    def last(self) -> int:
        """The number of the newest effects that were sealed."""
        return self._last

    def on_committed(self) -> None:
        """The ingest calls this after a commit: all effects that were sealed are durable and may be applied."""
        if self._sealed:
            self._committed += self._sealed
            self._sealed.clear()
            self._wake.set()

    async def settled(self, seq: int) -> None:
        """Returns when the effects up to this number are in the database."""
        while self._applied < seq:
            self._moved.clear()
            await self._moved.wait()

    def _enqueue(self, queue: deque[Numbered], seq: int, effects: Sequence[Effect]) -> None:
        queue.append((seq, effects))
        self.stats.waiting += len(effects)
        if not self.has_room:
            self.stats.pauses += 1

    async def _run(self) -> None:
        """What it fails on stays first; the database knows the number of what it has, so that nothing is twice."""
        while True:
            self._wake.clear()
            while self._committed:
                await self._apply_some()
            await self._wake.wait()

    async def _apply_some(self) -> None:
        batches, count = [], 0
        for numbered in self._committed:
            batches.append(numbered)
            count += len(numbered[1])
            if count >= _AT_ONCE:
                break
        try:
            happened = await self._effect_writer.apply(batches)
        except Exception:
            self.stats.failures += 1
            raise
        had_room = self.has_room
        for seq, _ in batches:
            self._committed.popleft()
            self._done.append(_name(seq))
            self._applied = seq
        self.stats.waiting -= count
        self.stats.applied += count
        self._moved.set()
        self.happened.tell(happened)
        if not had_room and self.has_room:
            self.room.tell()


def _name(seq: int) -> str:
    return f"{PREFIX}{seq:020}"
