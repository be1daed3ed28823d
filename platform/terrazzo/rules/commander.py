"""The commander: hands commands that rules give to the pusher, when something opened or a time has come."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import tzinfo
from typing import Protocol

import msgspec

from terrazzo.audit.entry import AuditEntry
from terrazzo.database.database import Database
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import OperationError, Unavailable
from terrazzo.metadata.company_limits import Limit
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.rules.command_store import CommandStore, RuleCommand, command_rows
from terrazzo.rules.hourly import HOUR_US
from terrazzo.rules.loop_guard import LONGEST_US, LoopGuard
from terrazzo.rules.missed_runs import find_missed
from terrazzo.rules.rule import ActiveRules, Rule
from terrazzo.rules.schedule import next_run_us
from terrazzo.rules.timers import Timers
from terrazzo.sparse_log import SparseLog
from terrazzo.times import DAY_US, now_us

_NAP_S = 30.0  # at most, so that a clock that was set is noticed
_KEPT_US = 7 * DAY_US
_LATE_US = 120 * 1_000_000  # a run that is noticed later than that is missed: the process stood still

_log = SparseLog(logging.getLogger(__name__))


class CommandStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    commands: int = 0
    commands_refused: int = 0
    runs: int = 0
    runs_missed: int = 0


class CommandSender(Protocol):
    """The pusher, as rules need it."""

    async def send_for_rule(
        self, actor: Actor, *, rule_id: int, object_id: int, command: str, value: str, key: str, expiry_s: int
    ) -> object:
        """Journals the command, once for each key. Raises ``OperationError``."""


class RuleCommander:
    """Gives the commands of rules. ``start``, then ``stop``.

    Args:
        active_rules: the rules that are started.
        database: has the commands that wait.
        sender: takes the commands.
        tasks: runs the task.
        zone: of the times of schedules.
        of_company: how many commands the rules of a company may give within an hour, by its id.
        on_notices: is called when there is something to tell.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        active_rules: ActiveRules,
        database: Database,
        sender: CommandSender,
        *,
        tasks: Tasks,
        zone: tzinfo,
        of_company: Callable[[int], Limit],
        on_notices: Callable[[], object],
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = CommandStats()
        self._active_rules = active_rules
        self._database = database
        self._store = CommandStore(database)
        self._sender = sender
        self._supervisor = tasks
        self._zone = zone
        self._on_notices = on_notices
        self._clock = clock
        self._guard = LoopGuard(of_company)
        self._timers: Timers[int] = Timers()  # of schedules, by rule
        self._audited: dict[tuple[int, str], int] = {}  # when a rule's refusal was last put into the audit log
        self._forget_us = 0
        self._wake = asyncio.Event()
        self._task: Task | None = None

    def wake(self) -> None:
        """There may be commands that wait."""
        self._wake.set()

    def on_rule(self, changed: RowChange) -> None:
        """``RuleRepository.changes`` tells this, after ``ActiveRules``."""
        self._time(changed.record_id, self._clock())
        self._wake.set()

    async def start(self, away_since_us: int | None) -> None:
        """Starts; what schedules have missed since then (UTC microseconds, None: nothing) is noted, not made up for."""
        now = self._clock()
        for command, sent_us in await self._store.sent_since(now - LONGEST_US):
            rule = self._active_rules.get(command.rule_id)
            if rule is not None:
                self._guard.note(rule, command.cause_id, sent_us)
        if away_since_us is not None:
            await self._note_missed(away_since_us, now)
        for rule in self._active_rules.every():
            self._time(rule.id, now)
        self._task = self._supervisor.spawn("commands of rules", self._run, OnFailure.RESTART)

    async def stop(self) -> None:
        """Stops; commands that wait are given after the next start, if they have not expired."""
        if self._task is not None:
            await self._task.stop()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            next_us = await self.work()
            nap_s = _NAP_S if next_us is None else (next_us - self._clock()) / 1e6
            try:
                async with asyncio.timeout(min(max(nap_s, 0.001), _NAP_S)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def work(self) -> int | None:
        """Gives all commands that wait; returns when the next time of a schedule comes (UTC microseconds)."""
        await self._run_schedules()
        while waiting := await self._store.waiting():
            for command in waiting:
                await self._give(command)
        await self._forget()
        return self._timers.next

    # Schedules

    def _time(self, rule_id: int, after_us: int) -> None:
        rule = self._active_rules.get(rule_id)
        next_us = None if rule is None else next_run_us(rule.runs, after_us, self._zone)
        if next_us is None:
            self._timers.drop(rule_id)
        else:
            self._timers.set(rule_id, next_us)

    async def _run_schedules(self) -> None:
        now = self._clock()
        while (run_us := self._timers.next) is not None and run_us <= now:
            (rule_id,) = self._timers.take(run_us, 1)
            rule = self._active_rules.get(rule_id)
            try:
                if rule is not None and now - run_us > _LATE_US:
                    await self._note_missed(run_us - 1, now, [rule])
                    run_us = now
                elif rule is not None:
                    await self._store.add(command_rows(rule, 0, now, run_us))
                    self.stats.runs += 1
            except BaseException:
                self._timers.hasten(rule_id, run_us)
                raise
            self._time(rule_id, run_us)

    async def _note_missed(self, after_us: int, now: int, rules: list[Rule] | None = None) -> None:
        """Runs between two times did not happen, and will not."""
        of = list(self._active_rules.every()) if rules is None else rules
        done = await self._store.runs_since(after_us)
        missed = find_missed(of, done, after_us, now, self._zone)
        for rule, runs in missed.runs.items():
            self.stats.runs_missed += len(runs)
            _log.warning("rule %d: the platform was away at %d times of its schedule", rule, len(runs))
        if missed.runs:
            await missed.write(self._database, now)
            self._on_notices()

    # Commands

    async def _give(self, command: RuleCommand) -> None:
        rule, now = self._active_rules.get(command.rule_id), self._clock()
        if rule is None:
            await self._store.drop([command.id])  # stopped meanwhile
            return
        refusal = self._guard.refusal(rule, command.cause_id, command.noted_us, now)
        if command.expires_us <= now:
            refusal = "it expired before it could be given (command_expiry_s)"
        if not refusal:
            refusal = await self._send(rule, command, now)
        if refusal:
            await self._refuse(rule, command, refusal, now)

    async def _send(self, rule: Rule, command: RuleCommand, now: int) -> str:
        """Hands a command over; why it was refused, or empty."""
        expiry_s = max(1, (command.expires_us - now) // 1_000_000)
        try:
            await self._sender.send_for_rule(
                _actor(rule),
                rule_id=rule.id,
                object_id=command.object_id,
                command=command.command,
                value=command.value,
                key=f"rule-{rule.id}-{command.id}",
                expiry_s=expiry_s,
            )
        except Unavailable:
            raise  # it waits for the database
        except OperationError as error:
            return str(error)
        self._guard.note(rule, command.cause_id, now)
        await self._store.mark_sent(command.id, now)
        self.stats.commands += 1
        return ""

    async def _refuse(self, rule: Rule, command: RuleCommand, why: str, now: int) -> None:
        self.stats.commands_refused += 1
        _log.warning("rule %d (%s) gives no command: %s", rule.id, rule.name, why)
        entries = [_entry(rule, command, why)] if self._is_audited(rule.id, why, now) else []
        await self._store.refuse(command, why, entries, now)

    def _is_audited(self, rule_id: int, why: str, now: int) -> bool:
        """Whether a refusal comes into the audit log: the same one of a rule once an hour."""
        self._audited = {key: at for key, at in self._audited.items() if at > now - HOUR_US}
        if (rule_id, why) in self._audited:
            return False
        self._audited[rule_id, why] = now
        return True

    async def _forget(self) -> None:
        now = self._clock()
        if now >= self._forget_us:
            self._forget_us = now + HOUR_US
            await self._store.forget_before(now - _KEPT_US)


def _actor(rule: Rule) -> Actor:
    """The rule itself, in the audit log too, with the rights of an administrator: none other makes rules."""
    return Actor(user_id=0, username=f"rule {rule.id}: {rule.name}"[:64], company_id=rule.company_id, role=Role.ADMIN)


def _entry(rule: Rule, command: RuleCommand, why: str) -> AuditEntry:
    told = {"object_id": command.object_id, "command": command.command, "value": command.value, "reason": why}
    return AuditEntry(
        actor=_actor(rule),
        company_id=rule.company_id,
        action="command_refused",
        entity="rule",
        record_id=rule.id,
        uid=str(rule.id),
        after=told,
    )
