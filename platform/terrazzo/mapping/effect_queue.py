"""The effects that the store has and the database hasn't yet: bounded, in order, applied by one task.

A company with more than its share waiting has its terminals wait (``has_room_of``), a full queue stops the ingest
(``has_room``); nothing is dropped. While the database is away the effects wait as notes in the store, and a restart
finds them there.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Mapping, Sequence

import msgspec

from terrazzo.domain.happened import Happened
from terrazzo.errors import Unavailable
from terrazzo.listeners import Listeners
from terrazzo.mapping.effect_writer import EffectWriter, Numbered
from terrazzo.mapping.effects import Effect, EventRaised, EventsCleared, LabelClosed, decode_effects, encode_effects
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

PREFIX = "effects/"
MOST_EFFECTS = 100_000
_SHARE = 0.05  # of that, a company's: what the database takes in about half a second
_AT_ONCE = 500  # effects of one transaction, or those of one commit


class EffectQueueStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    waiting: int = 0  # effects that the database hasn't yet
    applied: int = 0
    failures: int = 0
    refused: int = 0  # effects that can't be written, and were left out
    pauses: int = 0  # the ingest had to wait
    company_pauses: int = 0  # a company's terminals had to wait


class EffectQueue:
    """Numbers effects, keeps them in order, and applies them after their commit.

    ``happened`` tells what is in the database now, after each transaction; ``room`` that there is room again.
    """

    def __init__(self, effect_writer: EffectWriter, tasks: Tasks, *, limit: int = MOST_EFFECTS) -> None:
        self.stats = EffectQueueStats()
        self._effect_writer = effect_writer
        self._tasks = tasks
        self._limit = limit
        self._share = max(1, int(limit * _SHARE))
        self._waiting_of: Counter[str] = Counter()  # by company
        self._bytes_of: Counter[str] = Counter()
        self._is_away = False  # the database
        self._crowded: set[str] = set()  # companies that are over their share, until they are at half of it
        self._last = 0  # number given
        self._applied = 0
        self._sealed: deque[Numbered] = deque()  # not committed yet
        self._committed: deque[Numbered] = deque()
        self._done: list[str] = []  # notes to delete with the next commit
        self._wake = asyncio.Event()
        self._moved = asyncio.Event()
        self._task: Task | None = None
        self.happened: Listeners[Sequence[Happened]] = Listeners("events and labels")
        self._sparse_log = SparseLog(_log)
        self.room: Listeners[[]] = Listeners("room for events and labels")

    @property
    def has_room(self) -> bool:
        """Whether more effects may come."""
        return self.stats.waiting < self._limit

    def has_room_of(self, company: str) -> bool:
        """Whether more effects of a company may come: it isn't over its share, or nobody's get anywhere now."""
        return self._is_away or company not in self._crowded

    def waiting(self) -> Mapping[str, tuple[int, int]]:
        """The bytes of the texts of effects that wait, and how many effects, by the text of their company's id."""
        return {company: (self._bytes_of[company], count) for company, count in self._waiting_of.items()}

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
            notes[_name(self._last)], sound = self._encoded(effects)
            self._enqueue(self._sealed, self._last, sound)
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
        for name, (count, size) in _sums(effects).items():
            self._waiting_of[name] += count
            self._bytes_of[name] += size
            if self._waiting_of[name] > self._share and name not in self._crowded:
                self._crowded.add(name)
                self.stats.company_pauses += 1

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
        happened = await self._apply(batches)
        had_room = self.has_room
        for seq, effects in batches:
            self._committed.popleft()
            self._take_off(effects)
            self._done.append(_name(seq))
            self._applied = seq
        self.stats.waiting -= count
        self.stats.applied += count
        self._moved.set()
        self.happened.tell(happened)
        if self._relieved() or (not had_room and self.has_room):
            self.room.tell()

    def _take_off(self, effects: Sequence[Effect]) -> None:
        for name, (count, size) in _sums(effects).items():
            self._waiting_of[name] -= count
            self._bytes_of[name] -= size
            if self._waiting_of[name] <= 0:
                del self._waiting_of[name], self._bytes_of[name]

    def _relieved(self) -> set[str]:
        """The companies that have room again."""
        found = {company for company in self._crowded if self._waiting_of[company] <= self._share // 2}
        self._crowded -= found
        return found

    async def _apply(self, batches: Sequence[Numbered]) -> list[Happened]:
        """What can't be written is left out, counted and logged: a replay of the object finds it again."""
        try:
            happened = await self._effect_writer.apply(batches)
        except Unavailable:
            self.stats.failures += 1
            if not self._is_away:
                self._is_away = True
                self.room.tell()
            raise
        except Exception as error:  # noqa: BLE001 - one of them must not keep the others from the database
            self.stats.failures += 1
            self._sparse_log.error("events and labels are written one by one: %r", error)
        else:
            self._is_away = False
            return happened
        happened = []
        for numbered in batches:
            some, refused = await self._effect_writer.apply_sound(numbered)
            happened += some
            self.stats.refused += len(refused)
        return happened

    def _encoded(self, effects: Sequence[Effect]) -> tuple[bytes, Sequence[Effect]]:
        """The note of effects, without those that no note holds."""
        try:
            return encode_effects(effects), effects
        except Exception as error:  # noqa: BLE001 - one of them must not keep a group from being committed
            self._sparse_log.error("events and labels are left out that can't be kept: %r", error)
        sound = [effect for effect in effects if _is_sound(effect)]
        self.stats.refused += len(effects) - len(sound)
        return encode_effects(sound), sound


def _is_sound(effect: Effect) -> bool:
    try:
        encode_effects(effect)
    except Exception:  # noqa: BLE001 - whatever no note holds
        return False
    return True


def _sums(effects: Sequence[Effect]) -> Mapping[str, tuple[int, int]]:
    """How many they are, and the bytes of their values, by the text of their company's id."""
    sums: dict[str, tuple[int, int]] = {}
    for effect in effects:
        name, size = str(effect.company_id), 0
        if not isinstance(effect, LabelClosed | EventsCleared):
            size = len(effect.value) + (len(effect.extension_value) if isinstance(effect, EventRaised) else 0)
        count, before = sums.get(name, (0, 0))
        sums[name] = count + 1, before + size
    return sums


def _name(seq: int) -> str:
    return f"{PREFIX}{seq:020}"
