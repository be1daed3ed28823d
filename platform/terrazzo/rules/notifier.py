"""The rule notifier: new notices at once, those within a rule's window in one message, unheeded ones repeatedly."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import tzinfo
from typing import Protocol

import msgspec

from terrazzo.async_engine import AsyncConnection
from terrazzo.domain.happened import Happened
from terrazzo.domain.message_draft import MessageDraft
from terrazzo.metadata.repositories.rules import RuleRepository
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.rules import pace
from terrazzo.rules.hourly import HourlyCounts
from terrazzo.rules.message_text import MOST_NAMED, Telling, compose
from terrazzo.rules.names import SubjectNames
from terrazzo.rules.notice_store import NoticeStore, Taken
from terrazzo.rules.quiet_hours import quiet_until_us
from terrazzo.rules.rule import ActiveRules, Rule
from terrazzo.times import now_us

_NAP_S = 30.0  # at most, so that a clock that was set is noticed
_KEPT_US = 7 * 86_400 * 1_000_000
_HELD_S = 30  # between looks at what is held back
_FORGET_US = 3_600 * 1_000_000


class NotifierStats(msgspec.Struct):
    """Counters for ``/metrics``; ``messages`` are first ones, ``reminders`` repetitions."""

    notices: int = 0
    messages: int = 0
    reminders: int = 0


class MessageSender(Protocol):
    """The messenger: journals messages in the transaction that marks their notices as told."""

    async def put(self, connection: AsyncConnection, drafts: Sequence[MessageDraft]) -> object:
        """Journals messages; they are sent after the transaction's commit."""

    def wake(self) -> None:
        """Has journaled messages sent."""


class RuleNotifier:
    """Turns notices into messages, by the rules. ``load``, then ``start``.

    Args:
        notices_kept: the notices in the database.
        messenger: takes the messages.
        names: the names of what notices are about.
        tasks: runs the task.
        zone: of quiet hours and digests, and of times in messages.
        messages_per_hour: of a rule, without reminders; what comes then waits and is folded.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        notices_kept: NoticeStore,
        messenger: MessageSender,
        names: SubjectNames,
        *,
        tasks: Tasks,
        zone: tzinfo,
        messages_per_hour: int = 1_000,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = NotifierStats()
        self.active_rules = ActiveRules()
        self._is_released = False
        self._notices_kept = notices_kept
        self._messenger = messenger
        self._names = names
        self._zone = zone
        self._clock = clock
        self._messages_per_hour = messages_per_hour
        self._hourly = HourlyCounts()
        self._wake = asyncio.Event()
        self._forget_us = 0
        self._tasks = tasks
        self._task: Task | None = None

    async def load(self, rules: RuleRepository) -> None:
        """Reads all rules that are started, and follows changes of rules."""
        async for row in rules.every():
            self.active_rules.put(row)
        rules.changes.listen(self.active_rules.on_changed)
        rules.changes.listen(lambda _changed: self._wake.set())

    def start(self) -> None:
        """Starts the task."""
        self._task = self._tasks.spawn("rules", self._run, OnFailure.RESTART)

    async def stop(self) -> None:
        """Stops the task; notices that are not told yet are told after the next start."""
        if self._task is not None:
            await self._task.stop()

    async def on_effects(self, connection: AsyncConnection, happened: Sequence[Happened]) -> None:
        """Writes notices; ``EffectWriter.join`` has this called inside the transaction of what happened."""
        self.stats.notices += await self._notices_kept.note(connection, self.active_rules, happened)

    def on_happened(self, happened: Sequence[Happened]) -> None:
        """Wakes the task; ``EffectQueue.happened`` tells this after the transaction."""
        self.wake()

    def on_service(self, uids: Sequence[str]) -> None:
        """``Registry.service_changes`` tells this: what is held of terminals that are back may be due."""
        if self._notices_kept.is_any_back(uids):
            self._is_released = True
            self._wake.set()

    def wake(self) -> None:
        """Wakes the task: there are new notices."""
        self._wake.set()

    async def _run(self) -> None:
        """The task. Marking notices and journaling their message is one transaction: none is told twice or never."""
        self._messenger.wake()  # for what was written when it failed
        while True:
            self._wake.clear()
            next_us = await self.tell()
            nap_s = _NAP_S if next_us is None else (next_us - self._clock()) / 1e6
            await self._nap(min(max(nap_s, 0.001), _NAP_S))

    async def _nap(self, nap_s: float) -> None:
        try:
            async with asyncio.timeout(nap_s):
                await self._wake.wait()
        except TimeoutError:
            return

    async def tell(self) -> int | None:
        """Tells all notices that are due; returns when the next are (UTC microseconds), None where none wait."""
        now = self._clock()
        if self._is_released:
            self._is_released = False
            await self._notices_kept.release()
        fresh = await self._tell_all_fresh(now)
        again, next_us = await self._notices_kept.due_again(now)
        repeated = await self._tell_all_again(again, now)
        await self._forget(now)
        known = [each for each in (next_us, *fresh, *repeated) if each is not None]
        return min(known, default=None)

    async def _tell_all_fresh(self, now: int) -> list[int]:
        """Tells new notices; returns the times at which rules that have to wait, or to repeat, are due next."""
        later = []
        for rule_id, waiting in (await self._notices_kept.waiting()).items():
            rule = self.active_rules.get(rule_id)
            if rule is None or not rule.tells:
                await self._notices_kept.end(rule_id)
                continue
            due_us = max(pace.due_us(rule, zone=self._zone, **waiting._asdict()), self._spoken_us(rule, now))
            due_us = max(due_us, self._hourly.free_us(rule_id, self._messages_per_hour, now))
            if due_us <= now:
                await self._tell_fresh(rule, now)
                due_us = now + rule.repeat_s * 1_000_000
            later.append(due_us)
        return [each for each in later if each > now]

    async def _tell_all_again(self, rules: Sequence[int], now: int) -> list[int]:
        """Repeats notices that are due; returns the times at which these rules are due next."""
        later = []
        for rule_id in rules:
            rule = self.active_rules.get(rule_id)
            if rule is None or not rule.tells:
                await self._notices_kept.end(rule_id)
                continue
            due_us = self._spoken_us(rule, now)
            if due_us <= now:
                await self._tell_again(rule, now)
                due_us = now + (rule.repeat_s or _HELD_S) * 1_000_000
            later.append(max(due_us, now + 1_000))
        return later

    async def _tell_fresh(self, rule: Rule, now: int) -> None:
        async with self._notices_kept.database.writing() as connection:
            taken = await self._notices_kept.take_fresh(connection, rule, now)
            if taken.notices:
                await self._put(connection, rule, taken)
                self.stats.messages += 1
                self._hourly.note(rule.id, now)
        self._messenger.wake()

    async def _tell_again(self, rule: Rule, now: int) -> None:
        async with self._notices_kept.database.writing() as connection:
            taken = await self._notices_kept.take_due(connection, rule, now)
            if taken.notices:
                await self._put(connection, rule, taken)
                self.stats.reminders += 1
        self._messenger.wake()

    async def _put(self, connection: AsyncConnection, rule: Rule, taken: Taken) -> None:
        notices = taken.notices
        told = Telling(
            notices=notices,
            names=await self._names.of(rule, notices[:MOST_NAMED]),
            kinds=taken.kinds,
            shared=await self._names.shared(connection, rule, taken) if taken.total > 1 else (),
            reminder=notices[0].told - 1,
        )
        await self._messenger.put(connection, [compose(rule, told, zone=self._zone)])

    def _spoken_us(self, rule: Rule, now: int) -> int:
        return quiet_until_us(now, rule.quiet_start, rule.quiet_end, self._zone)

    async def _forget(self, now: int) -> None:
        if now >= self._forget_us:
            self._forget_us = now + _FORGET_US
            await self._notices_kept.forget_before(now - _KEPT_US)
