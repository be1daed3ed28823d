"""A look at one terminal or object: which conditions open and end by it, and when the next look is due."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from terrazzo.domain.registry import Registry
from terrazzo.metadata.company_limits import Limit
from terrazzo.metadata.definitions.rules import BACK
from terrazzo.ports.bus import MessageBus, Presence
from terrazzo.rules.command_store import command_rows
from terrazzo.rules.condition import CONDITIONS, Condition, any_of
from terrazzo.rules.condition_store import ConditionChanges
from terrazzo.rules.notice import condition_notice
from terrazzo.rules.open_conditions import ConditionKey, OpenCondition, OpenConditions, Subject
from terrazzo.rules.rule import Rule
from terrazzo.rules.scope import WatchedRule

_LOOK_US = (5 * 1_000_000, 60 * 1_000_000)  # between looks at what is open: at least, at most


class Seen(NamedTuple):
    """A terminal, or an object with its terminals, and how they are connected."""

    company_id: int
    name: str  # the terminal's uid, or the object's id
    object_id: int  # the object, or the first one that lists the terminal; 0: none
    parts: Sequence[Presence]
    is_known: bool  # it has been here, or another terminal may report for it


class Sight:
    """Finds out how terminals and objects are connected.

    Args:
        registry: the terminals and objects.
        bus: knows who is connected, and when each was heard of last.
    """

    def __init__(self, registry: Registry, bus: MessageBus) -> None:
        self._registry = registry
        self._bus = bus

    def of(self, subject: Subject) -> Seen | None:
        """What is to be seen of a terminal or object; None where it is gone, not admitted or out of service."""
        return self._object(-subject) if subject < 0 else self._terminal(subject)

    def _terminal(self, record_id: int) -> Seen | None:
        terminal = self._registry.terminal_by_id(record_id)
        if terminal is None or not terminal.is_admitted or terminal.uid in self._registry.out_of_service:
            return None
        known = self._bus.presence(terminal.uid)
        has_been_here = terminal.activated_us is not None or known.online or known.last_seen_us is not None
        objects = self._registry.terminal_objects(terminal.uid)
        is_known = has_been_here or known.last_telemetry_us is not None or self._has_router(objects)
        return Seen(terminal.company_id, terminal.uid, min(objects, default=0), (known,), is_known)

    def _object(self, object_id: int) -> Seen | None:
        company_id = self._registry.object_company(object_id)
        if company_id is None:
            return None
        found = [self._registry.terminal(uid) for uid in self._registry.object_terminals(object_id)]
        seen = [each for each in (self._terminal(one.id) for one in found if one is not None) if each is not None]
        if not seen:
            return None
        parts = [part for each in seen for part in each.parts]
        return Seen(company_id, str(object_id), object_id, parts, any(each.is_known for each in seen))

    def _has_router(self, objects: Iterable[int]) -> bool:
        """Whether a terminal that may report for others belongs to one of the objects."""
        for object_id in objects:
            for uid in self._registry.object_terminals(object_id):
                other = self._registry.terminal(uid)
                if other is not None and other.is_route:
                    return True
        return False


class Looks:
    """Looks at terminals and objects, and collects what has changed. Times in UTC microseconds.

    Args:
        opened: what is open.
        listening_us: since when the platform listens.
        most_of_company: conditions of a company that may be open, by its id.
    """

    def __init__(self, opened: OpenConditions, *, listening_us: int, most_of_company: Callable[[int], Limit]) -> None:
        self.refused = 0  # conditions that did not open, because the company has as many as it may
        self.changes = ConditionChanges([], [], [], [])
        self._open = opened
        self._listening_us = listening_us
        self._most = most_of_company
        self._new: Counter[int] = Counter()  # by company

    def look(self, subject: Subject, seen: Seen, rules: Iterable[WatchedRule], now: int) -> int | None:
        """Looks at a subject by the rules about it; returns when the next look is due, None: when it changes."""
        due: list[int] = []
        for watched in rules:
            if watched.is_about(subject):
                for kind in watched.rule.lasting:
                    next_us = self._look_for(ConditionKey(watched.rule.id, kind, subject), seen, watched.rule, now)
                    if next_us is not None:
                        due.append(next_us)
        return min(due, default=None)

    def refuse(self, subject: Subject, seen: Seen, rule: Rule, kind: str, *, text: str, time_us: int, now: int) -> None:
        """A terminal was refused, which opens the condition ``kind`` of a rule, or shows that it is not over."""
        key = ConditionKey(rule.id, kind, subject)
        found = self._open.get(key)
        if found is None:
            self._begin(key, seen, rule, OpenCondition(rule.company_id, time_us, now, time_us), text)
        else:
            found.last_us, found.well_us = max(found.last_us, time_us), None

    def end(self, keys: Iterable[ConditionKey]) -> None:
        """Conditions end without a word: their terminal or rule is gone."""
        self.changes.ended.extend(keys)

    def _look_for(self, key: ConditionKey, seen: Seen, rule: Rule, now: int) -> int | None:
        found = self._open.get(key)
        counted = CONDITIONS.get(key.kind)
        if counted is None:
            return None if found is None else self._look_at_refused(key, found, seen, rule, now)
        if found is None and not (seen.is_known or seen.name in rule.terminals):
            return None  # it was never here: nothing is missing
        condition = any_of([counted(part, self._listening_us) for part in seen.parts])
        is_away = condition.well_us is None and now - condition.away_us >= rule.away_us
        if found is not None:
            well_us = None if is_away else _well_us(condition, found, now)
            return self._go_on(key, found, seen, rule, well_us, now)
        if is_away:
            self._begin(key, seen, rule, OpenCondition(rule.company_id, condition.since_us, now, now), "")
            return now + _pause_us(rule)
        return None if condition.well_us is not None else condition.away_us + rule.away_us

    def _look_at_refused(self, key: ConditionKey, found: OpenCondition, seen: Seen, rule: Rule, now: int) -> int | None:
        (known,) = seen.parts
        well_us = max(known.since_us or 0, found.last_us) if known.online else None
        return self._go_on(key, found, seen, rule, well_us, now)

    def _go_on(
        self, key: ConditionKey, found: OpenCondition, seen: Seen, rule: Rule, well_us: int | None, now: int
    ) -> int | None:
        """What is open ends when it has been well for as long as the rule says."""
        found.well_us = well_us
        if well_us is None:
            return now + _pause_us(rule)
        if now - well_us < rule.back_us:
            return min(well_us + rule.back_us, now + _LOOK_US[1])
        self.changes.ended.append(key)
        if rule.tells_back and rule.tells:
            self.changes.notices.append(_notice(key, seen, rule, BACK, key.kind, found.since_us, well_us, now))
        return now + rule.away_us

    def _begin(self, key: ConditionKey, seen: Seen, rule: Rule, condition: OpenCondition, text: str) -> None:
        limit = self._most(rule.company_id)
        if self._open.of_company(rule.company_id) + self._new[rule.company_id] >= limit.most:
            self.refused += 1
            return
        self._new[rule.company_id] += 1
        self.changes.opened.append((key, condition))
        since_us, now = condition.since_us, condition.opened_us
        if rule.tells:
            self.changes.notices.append(_notice(key, seen, rule, key.kind, text, since_us, now, now))
        if rule.command_objects or seen.object_id:
            self.changes.commands.extend(command_rows(rule, seen.object_id, now) if rule.commands else ())


def _notice(
    key: ConditionKey, seen: Seen, rule: Rule, kind: str, text: str, since_us: int, until_us: int, now: int
) -> dict[str, object]:
    return condition_notice(
        rule,
        kind,
        record_id=abs(key.subject),
        object_id=seen.object_id,
        code=seen.name,
        text=text,
        since_us=since_us,
        until_us=until_us,
        now=now,
    )


def _well_us(condition: Condition, found: OpenCondition, now: int) -> int | None:
    """Since when what is open is well: connected, or heard of for a while; None where it is not."""
    if condition.well_us is not None:
        return condition.well_us
    return (found.well_us or now) if condition.is_heard else None


def _pause_us(rule: Rule) -> int:
    least, most = _LOOK_US
    return min(max(rule.back_us // 4, least), most)
