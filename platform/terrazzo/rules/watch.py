"""The watch over terminals and objects: what rules tell of them, looked at when it may have changed.

Each terminal or object that a rule is about has one time at which it is looked at next. Who is connected needs none:
the end of the connection sets it. A report costs nothing: who reports is found to have done so at the next look.

Of those whose time has come, companies take turns. One that can't be looked at rests; the others are looked at.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec

from terrazzo.company_queue import CompanyQueue
from terrazzo.database.database import Database
from terrazzo.domain.refusals.entry import ToldRefusal
from terrazzo.domain.refusals.reasons import CLOCK_OFF, REASONS
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import Unavailable
from terrazzo.listeners import Listeners
from terrazzo.loop_pauses import LoopPauses, next_turn
from terrazzo.metadata.company_limits import Limit
from terrazzo.metadata.definitions.rules import OUTAGE
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.ports.bus import MessageBus, Presence
from terrazzo.ports.tasks import OnFailure, Task, Tasks
from terrazzo.rules.condition import CONDITIONS
from terrazzo.rules.condition_store import ConditionChanges, ConditionStore
from terrazzo.rules.looks import Looks, Sight
from terrazzo.rules.notice import condition_notice
from terrazzo.rules.open_conditions import ConditionKey, OpenConditions, Subject
from terrazzo.rules.rule import MINUTE_US, ActiveRules, Rule
from terrazzo.rules.scope import Scopes, WatchedRule
from terrazzo.rules.timers import Timers
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us
from terrazzo_broker.hooks import Client

BEAT_S = 10.0  # how exactly an outage of the platform's own is known
_AT_ONCE = 500  # subjects that are looked at in a turn of the loop, and whose changes one transaction has
_LEAST_NAP_S, _MOST_NAP_S = 0.2, 30.0
_SETTLE_US = 2 * 1_000_000  # how long changes of terminals, objects and groups are gathered before rules follow
_RETRY_US = 5 * 1_000_000
_REST_US = 60 * 1_000_000  # after a fault of one terminal, object or rule
_RULES_AT_ONCE = 20  # that are looked up before others are looked at again
_MOST_REFUSED = 20_000  # terminals whose refusals wait to be looked at; a company has as many as are free at most

_log = SparseLog(logging.getLogger(__name__))


class Refused(NamedTuple):
    """Why a terminal of a company was refused, and when (UTC microseconds)."""

    company_id: int
    text: str
    time_us: int


Refusals = Mapping[tuple[Subject, str], Refused]
"""By terminal and kind of rules."""


class WatchStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    looks: int = 0
    watched: int = 0  # terminals and objects that are looked at when their time comes, now
    open: int = 0  # conditions that are not over, now
    unopened: int = 0  # conditions that were not noted, because a company has as many as it may
    untold_refusals: int = 0
    faults: int = 0  # terminals, objects and rules that could not be looked at, and rest


class ConditionWatch:
    """Follows terminals and objects by the rules about them. ``start`` when the platform listens, then ``stop``.

    Args:
        active_rules: the rules that are started.
        database: has tags, groups, what is open, and the heartbeat.
        registry: the terminals and objects.
        bus: knows who is connected, and when each was heard of last.
        on_notices: is called when there is something to tell.
        tasks: runs the watch.
        most_of_company: conditions of a company that may be open, by its id.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        active_rules: ActiveRules,
        database: Database,
        registry: Registry,
        bus: MessageBus,
        *,
        on_notices: Callable[[], object],
        tasks: Tasks,
        most_of_company: Callable[[int], Limit],
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = WatchStats()
        self._active_rules = active_rules
        self._store = ConditionStore(database)
        self._scopes = Scopes(database, registry)
        self._registry = registry
        self._sight = Sight(registry, bus)
        self._on_notices = on_notices
        self._supervisor = tasks
        self._most_of_company = most_of_company
        self._clock = clock
        self._listening_us = 0
        self._ran_us = 0  # the last beat
        self._open = OpenConditions()
        self._timers: Timers[Subject] = Timers()
        self._watched: dict[int, dict[int, WatchedRule]] = {}  # by company and rule
        self._stale: dict[int, int] = {}  # rule id -> when it has to be looked up again
        self._refused: dict[tuple[Subject, str], Refused] = {}
        self._subject_turns: CompanyQueue[Subject] = CompanyQueue()  # whose time has come
        self._refusal_turns: CompanyQueue[tuple[Subject, str]] = CompanyQueue()
        self._rule_turns: CompanyQueue[int] = CompanyQueue()  # rules that are to be looked up now
        self._wake = asyncio.Event()
        self._tasks: list[Task] = []
        self._presence: Listeners[Client, Presence] = Listeners("presence")

    # What others tell

    def on_rule(self, changed: RowChange) -> None:
        """``RuleRepository.changes`` tells this, after ``ActiveRules``."""
        self._stale[changed.record_id] = self._clock()
        self._wake.set()

    def follow(self, presence: Listeners[Client, Presence]) -> None:
        """Hears of connections (``PresenceRegister.changes``) while there are rules about terminals or objects."""
        self._presence = presence

    def on_presence(self, client: Client, presence: Presence) -> None:
        """A terminal connected or is gone."""
        terminal = self._registry.terminal(client.client_id)
        if terminal is not None and terminal.company_id in self._watched:
            self._look_soon(terminal, is_there=presence.online)

    def on_refusals(self, refusals: Sequence[ToldRefusal]) -> None:
        """``RefusalJournal.changes`` tells this."""
        for terminal, entry in refusals:
            reason = REASONS[entry.reason]
            if terminal is None or reason.is_ordinary or terminal.company_id not in self._watched:
                continue
            company_id = terminal.company_id
            if self._refusal_turns.of_company(company_id) >= _MOST_REFUSED - len(self._refused):
                self.stats.untold_refusals += 1
                continue
            text = f"{reason.text}: {entry.detail}" if entry.detail else reason.text
            for kind in ("refused", "clock_off") if reason is CLOCK_OFF else ("refused",):
                self._refused[terminal.id, kind] = Refused(company_id, text, entry.last_us)
                self._refusal_turns.put(company_id, (terminal.id, kind))
        if self._refused:
            self._wake.set()

    def on_terminal(self, before: Terminal | None, after: Terminal | None) -> None:
        """``Registry.terminal_changes`` tells this."""
        for each in (before, after):
            if each is not None and each.company_id in self._watched:
                self._look_soon(each, is_there=False)

    def on_service(self, uids: Sequence[str]) -> None:
        """``Registry.service_changes`` tells this: what is open of those that went out ends without a word."""
        for uid in uids:
            terminal = self._registry.terminal(uid)
            if terminal is not None and terminal.company_id in self._watched:
                self._look_soon(terminal, is_there=False)

    def on_terminal_record(self, changed: RowChange) -> None:
        """A terminal's record was created, changed or deleted: its tags may be others."""
        terminal = self._registry.terminal_by_id(changed.record_id)
        for company_id in self._watched if terminal is None else (terminal.company_id,):
            self._follow(company_id)

    def on_object(self, changed: RowChange) -> None:
        """An object was created, changed or deleted; called after the registry knows it."""
        subject, company_id = -changed.record_id, self._registry.object_company(changed.record_id)
        if self._watched and (company_id is None or company_id in self._watched):
            self._timers.hasten(subject, self._clock())
            for each in self._watched if company_id is None else (company_id,):
                self._follow(each)

    def on_group(self, _changed: RowChange) -> None:
        """An object came into a group, or left one."""
        for company_id in self._watched:
            self._follow(company_id)

    @property
    def is_wanted(self) -> bool:
        """Whether any rule is about terminals or objects."""
        return bool(self._watched)

    def _look_soon(self, terminal: Terminal, *, is_there: bool) -> None:
        """Has a terminal and its objects looked at, unless it has come and nobody waited for it."""
        now = self._clock()
        for subject in (terminal.id, *(-each for each in self._registry.terminal_objects(terminal.uid))):
            if not is_there or self._open.has(subject):
                self._timers.hasten(subject, now)
        self._wake.set()

    def _follow(self, company_id: int) -> None:
        """Has the company's rules that select some terminals or objects look up which they are."""
        due_us = self._clock() + _SETTLE_US
        for rule_id, watched in self._watched.get(company_id, {}).items():
            if watched.members is not None:
                self._stale.setdefault(rule_id, due_us)
        self._wake.set()

    # Life

    async def start(self) -> int | None:
        """Takes up what is open, tells of an outage of the platform's own, and starts: minutes count from now on.

        Returns when the platform was last known to run, UTC microseconds; None at its first start.
        """
        self._listening_us = self._ran_us = now = self._clock()
        for key, condition in await self._store.every():
            self._open.put(key, condition)
        gone = [each for each in self._open.rules() if self._active_rules.get(each) is None]
        await self._forget_rules(gone)
        last_us = await self._store.last_beat_us()
        await self._tell_outage(last_us, now)
        for rule in self._active_rules.every():
            self._stale[rule.id] = now
        self._tasks = [
            self._supervisor.spawn("rules about terminals", self._run, OnFailure.RESTART),
            self._supervisor.repeat("heartbeat", BEAT_S, self._beat, OnFailure.RESTART),
        ]
        return last_us

    async def stop(self) -> None:
        """Stops, and notes when the platform was last there."""
        for task in self._tasks:
            await task.stop()
        if self._tasks:
            await self._beat()

    async def _beat(self) -> None:
        """Notes that the platform runs; one that stood still meanwhile was away, and listens again from now on."""
        last_us, self._ran_us = self._ran_us, self._clock()
        if self._ran_us - last_us >= MINUTE_US:
            self._listening_us = self._ran_us
            await self._tell_outage(last_us, self._ran_us)
        else:
            await self._store.beat(self._ran_us)

    async def _tell_outage(self, last_us: int | None, now: int) -> None:
        """Notes for each rule that counts minutes that nobody was heard for so long, as the platform was away."""
        notices = []
        if last_us is not None and now - last_us >= MINUTE_US:
            for rule in self._active_rules.every():
                if rule.tells and _counts(rule) and now - last_us >= rule.away_us:
                    notices.append(_outage(rule, last_us, now))
        await self._store.beat(now, notices)
        if notices:
            self._on_notices()

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            next_us = await self.work()
            nap_s = _MOST_NAP_S if next_us is None else (next_us - self._clock()) / 1e6
            try:
                async with asyncio.timeout(min(max(nap_s, _LEAST_NAP_S), _MOST_NAP_S)):
                    await self._wake.wait()
                await asyncio.sleep(_LEAST_NAP_S)  # many go at once: they are looked at together
            except TimeoutError:
                continue

    async def work(self) -> int | None:
        """Looks at all whose time has come; returns the next time (UTC microseconds), None where there is none."""
        while True:
            await self._look_up_rules()
            now = self._clock()
            await self._line_up(now)
            taken = self._subject_turns.take_some(_AT_ONCE)
            refused = {key: self._refused[key] for key in self._refusal_turns.take_some(_AT_ONCE)}
            if not taken and not refused and not self._rule_turns:
                break
            await self._look_at(taken, refused, now)
            await next_turn()
        self.stats.watched, self.stats.open = len(self._timers), self._open.count
        return min((each for each in (self._timers.next, *self._stale.values()) if each is not None), default=None)

    async def _line_up(self, now: int) -> None:
        """Has all whose time has come wait for their companies' turns; that takes little beside looking at them."""
        pauses = LoopPauses()
        while taken := self._timers.take(now, _AT_ONCE):
            for subject in taken:
                self._subject_turns.put(self._company_of(subject), subject)
            await pauses.pause()

    def _company_of(self, subject: Subject) -> int:
        """A terminal's or object's company; 0 where it is gone."""
        if subject < 0:
            return self._registry.object_company(-subject) or 0
        terminal = self._registry.terminal_by_id(subject)
        return 0 if terminal is None else terminal.company_id

    async def _look_at(self, taken: Sequence[Subject], refused: Refusals, now: int) -> None:
        """Looks at some; where that fails, at each half of them by itself, until the one is found that is to blame."""
        parts: list[tuple[Sequence[Subject], Refusals]] = [(taken, refused)]
        try:
            while parts:
                try:
                    await self._look_at_together(*parts[-1], now)
                    parts.pop()
                except Unavailable:
                    raise
                except Exception as error:  # noqa: BLE001 - whatever is wrong with one of them
                    subjects, refusals = parts.pop()
                    if len(subjects) + len(refusals) > 1:
                        parts.extend(_halves(subjects, refusals))
                    else:
                        self._rest(subjects, refusals, now, error)
        finally:
            for subjects, refusals in parts:  # the database is away, or this task ends
                for subject in subjects:
                    self._timers.hasten(subject, now + _RETRY_US)
                for key, told in refusals.items():
                    self._refusal_turns.put(told.company_id, key)

    def _rest(self, subjects: Sequence[Subject], refusals: Refusals, now: int, error: Exception) -> None:
        """One that can't be looked at is looked at later; a refusal is not told."""
        self.stats.faults += 1
        for subject in (*subjects, *(key[0] for key in refusals)):
            kind = "object" if subject < 0 else "terminal"
            company_id = self._company_of(subject)
            _log.error("rules about %s %d of company %d failed: %r", kind, abs(subject), company_id, error)
            self._timers.hasten(subject, now + _REST_US)
        self._forget_refusals(refusals)

    async def _look_at_together(self, taken: Sequence[Subject], refused: Refusals, now: int) -> None:
        looks = Looks(self._open, listening_us=self._listening_us, most_of_company=self._most_of_company)
        due: dict[Subject, int | None] = {}
        self._look_at_refused(looks, refused, now)
        pauses = LoopPauses()
        for subject in taken:
            due[subject] = self._look(looks, subject, now)
            await pauses.pause()
        if any(looks.changes):
            await self._store.apply(looks.changes)
        self._forget_refusals(refused)
        self._take_over(looks, due, now)

    def _forget_refusals(self, refused: Refusals) -> None:
        """What was told is not told again, unless another refusal came meanwhile."""
        for key, told in refused.items():
            if self._refused.get(key) == told:
                del self._refused[key]
                self._refusal_turns.drop(key)

    def _look(self, looks: Looks, subject: Subject, now: int) -> int | None:
        self.stats.looks += 1
        seen = self._sight.of(subject)
        rules = {} if seen is None else self._watched.get(seen.company_id, {})
        opened = [*self._open.of_subject(subject)]
        looks.end(key for key in opened if key.rule_id not in rules or not rules[key.rule_id].is_about(subject))
        return None if seen is None else looks.look(subject, seen, rules.values(), now)

    def _look_at_refused(self, looks: Looks, refused: Refusals, now: int) -> None:
        for (subject, kind), (_, text, time_us) in refused.items():
            seen = self._sight.of(subject)
            for watched in () if seen is None else self._watched.get(seen.company_id, {}).values():
                if seen is not None and kind in watched.rule.kinds and watched.is_about(subject):
                    looks.refuse(subject, seen, watched.rule, kind, text=text, time_us=time_us, now=now)

    def _take_over(self, looks: Looks, due: dict[Subject, int | None], now: int) -> None:
        """What the database has is so in memory from now on."""
        for key, condition in looks.changes.opened:
            self._open.put(key, condition)
            self._timers.hasten(key.subject, now + _SETTLE_US)
        for key in looks.changes.ended:
            self._open.drop(key)
        for subject, next_us in due.items():
            if next_us is not None:
                self._timers.hasten(subject, max(next_us, now + 1))
        self.stats.unopened += looks.refused
        if looks.refused:
            keys = "limits.company_rule_conditions, limit_rule_conditions of companies' records"
            _log.warning("%d conditions are not noted: %s", looks.refused, keys)
        if looks.changes.notices or looks.changes.commands:
            self._on_notices()

    # Which rules there are

    async def _look_up_rules(self) -> None:
        """Looks up some of the rules that are due, companies in turn; one that can't be looked up rests."""
        now = self._clock()
        for rule_id in [each for each, due_us in self._stale.items() if due_us <= now]:
            del self._stale[rule_id]
            rule = self._active_rules.get(rule_id)
            self._rule_turns.put(0 if rule is None else rule.company_id, rule_id)
        for _ in range(min(_RULES_AT_ONCE, len(self._rule_turns))):
            rule_id = self._rule_turns.take() or 0
            try:
                await self._look_up(rule_id)
            except (Unavailable, asyncio.CancelledError):
                self._stale.setdefault(rule_id, now + _RETRY_US)
                raise
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one rule
                self.stats.faults += 1
                _log.error("rule %d can't be looked up: %r", rule_id, error)
                self._stale.setdefault(rule_id, now + _REST_US)

    async def _look_up(self, rule_id: int) -> None:
        rule = self._active_rules.get(rule_id)
        if rule is not None and rule.is_about_more:
            await self._put(await self._scopes.resolve(rule))
        else:
            await self._forget_rules([rule_id])

    async def _put(self, watched: WatchedRule) -> None:
        """Follows a rule from now on, and looks at all that it is about, and at what is open and it was about."""
        rule, now = watched.rule, self._clock()
        self._watched.setdefault(rule.company_id, {})[rule.id] = watched
        self._presence.set_listening(self.on_presence, is_on=True)
        pauses = LoopPauses()
        strays = [key for key in self._open.of_rule(rule.id) if key.kind not in rule.kinds]
        await self._end(strays)
        open_subjects = [key.subject for key in self._open.of_rule(rule.id)]
        for subject in (*self._scopes.all_of(watched), *open_subjects):
            self._timers.hasten(subject, now)
            await pauses.pause()

    async def _forget_rules(self, rule_ids: Iterable[int]) -> None:
        gone = [*rule_ids]
        for company_id, rules in [*self._watched.items()]:
            for rule_id in gone:
                rules.pop(rule_id, None)
            if not rules:
                del self._watched[company_id]
        self._presence.set_listening(self.on_presence, is_on=bool(self._watched))
        known = [each for each in gone if self._open.of_rule(each)]
        if known:
            await self._store.end_of_rules(known)
            for rule_id in known:
                for key in [*self._open.of_rule(rule_id)]:
                    self._open.drop(key)

    async def _end(self, keys: Sequence[ConditionKey]) -> None:
        if keys:
            await self._store.apply(ConditionChanges([], list(keys), [], []))
            for key in keys:
                self._open.drop(key)


def _halves(
    subjects: Sequence[Subject], refusals: Refusals
) -> tuple[tuple[Sequence[Subject], Refusals], tuple[Sequence[Subject], Refusals]]:
    """Two parts of about the same size of what was looked at together."""
    if not subjects or not refusals:
        told = list(refusals.items())
        at, of_told = (len(subjects) + 1) // 2, (len(told) + 1) // 2
        return (subjects[:at], dict(told[:of_told])), (subjects[at:], dict(told[of_told:]))
    return (subjects, {}), ((), refusals)


def _counts(rule: Rule) -> bool:
    """Whether a rule counts minutes, or is about outages."""
    return OUTAGE in rule.kinds or any(kind in CONDITIONS for kind in rule.kinds)


def _outage(rule: Rule, last_us: int, now: int) -> dict[str, object]:
    return condition_notice(
        rule, OUTAGE, record_id=0, object_id=0, code="platform", text="", since_us=last_us, until_us=now, now=now
    )
