"""Which mapping, terminals and retainers each object has, and from that the plans of each terminal.

Changes only mark what they touch: mappings are read and plans are made when the next message of a terminal asks for
them, so that a change is in force with the next batch and costs little however many objects share the mapping. What is
put in again as it was, or with another name, touches nothing, whoever writes it.

Reading a large mapping and making its plans takes seconds. Whoever can wait takes the steps of ``preparation`` first;
what is asked for without them is made at once.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from terrazzo.domain.events.definition import EventDefinition, parse_event_definitions
from terrazzo.domain.mapping_table import MappingTable, Slot, table_steps
from terrazzo.domain.payload import PointLimits
from terrazzo.expressions.functions import Value
from terrazzo.mapping.labels import LabelRule, Labels, label_rules_of
from terrazzo.mapping.plan import PlanSteps, Run, derived_steps, made_at_once, plan_steps
from terrazzo.mapping.scripts import MappingScripts, rows_in
from terrazzo.mapping.state import ObjectState, StateNote, StepNote
from terrazzo.member_sets import MemberSets
from terrazzo.ports.store import Record

_log = logging.getLogger(__name__)

_SHORT = 10_000  # bytes of rows that are read in some milliseconds


class ObjectSpec(msgspec.Struct, frozen=True):
    """What the mapping needs of an object's record: company, mapping, terminals."""

    id: int
    company_id: int
    mapping_id: int | None
    terminals: tuple[str, ...]
    is_available: bool = True


class RetainerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What the mapping needs of a retainer script's record: its objects, its rows, whether it is started."""

    id: int
    uid: str
    objects: tuple[int, ...]
    script: tuple[tuple[str, ...], ...]
    is_active: bool


class BoundMapping:
    """An object bound to its mapping: its state, its labels and their rules."""

    __slots__ = (
        "company_id",
        "events",
        "fed",
        "group",
        "labels",
        "object_id",
        "points",
        "recheck",
        "rules",
        "series",
        "since",
        "state",
    )

    def __init__(
        self,
        spec: ObjectSpec,
        state: ObjectState,
        labels: Labels,
        rules: Mapping[str, list[LabelRule]],
        events: Mapping[str, EventDefinition],
    ) -> None:
        self.fed = 0  # messages since it was saved, roughly
        self.group = 0  # in which it was saved last, and how many reports that had then
        self.since = 0
        self.object_id = spec.id
        self.company_id = spec.company_id
        self.series = f"m/{spec.id}"
        self.state = state
        self.points = state.table.bind(spec.terminals)  # uid -> index of slot -> point
        self.labels = labels
        self.rules = rules
        self.events = events  # by code, those of which something is said
        self.recheck = bool(rules)  # look at all labels with the next message, whatever it changes


class Plan(NamedTuple):
    """What a message of one terminal does for one object: the function to call, and the object as bound."""

    run: Run
    bound: BoundMapping


class MappingLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What one message may take in the mapping. ``mosaic_bytes``: the largest record that it makes of an object."""

    points: PointLimits = PointLimits()
    mosaic_bytes: int = 2**20


class Kept(NamedTuple):
    """What was kept of an object when the platform last ran: its values, windows and labels."""

    note: StateNote
    steps: dict[str, list[StepNote]]


class MappingCatalogue:
    """Objects, mappings and retainers by id; plans by terminal."""

    def __init__(self, limits: MappingLimits | None = None) -> None:
        self.limits = limits or MappingLimits()
        self.group = 0  # the number of the group at hand
        self.reports: Sequence[Record] = ()  # of it, so far; nobody else keeps them: what was committed is let go
        self.states: dict[int, ObjectState] = {}
        self.kept: dict[int, Kept] = {}
        self.labels: defaultdict[int, Labels] = defaultdict(Labels)
        self.layouts: dict[str, tuple[Slot, ...]] = {}
        self.collected: defaultdict[int, dict[str, Value]] = defaultdict(dict)  # object -> project -> latest value
        self.scripts = MappingScripts()
        self._unread: set[int] = set()  # mappings whose rows are no tables
        self._tables: dict[int, MappingTable | None] = {}
        self._events: defaultdict[int, dict[str, EventDefinition]] = defaultdict(dict)  # mapping -> code
        self._runs: dict[int, dict[tuple[tuple[int, str], ...], Run]] = {}
        self._objects: dict[int, ObjectSpec] = {}
        self._objects_of = MemberSets()
        self._mapped: defaultdict[int, set[int]] = defaultdict(set)  # mapping -> objects
        self._retainers: dict[int, RetainerSpec] = {}
        self._rules: defaultdict[int, dict[int, list[LabelRule]]] = defaultdict(dict)  # object -> retainer -> its rules
        self._bound: dict[int, BoundMapping] = {}
        self.made: dict[str, tuple[Plan, ...]] = {}  # plans that are in force, by terminal; to be looked up only
        self._lanes: dict[str, int | None] = {}

    def unknown(self) -> list[int]:
        """Objects of which something is kept and that aren't there any more."""
        return [object_id for object_id in {*self.kept, *self.labels} if object_id not in self._objects]

    def unknown_retainers(self) -> set[int]:
        """The ids of retainer scripts that were deleted and still have labels."""
        named = {project_id for labels in self.labels.values() for project_id, _ in labels.standings}
        return named - self._retainers.keys()

    def memory(self) -> Iterator[tuple[int, int, int]]:
        """For each object that was fed: its company, the bytes of its values as they were kept last, and its rows."""
        for bound in list(self._bound.values()):
            state = bound.state
            yield bound.company_id, len(state.saved or b""), len(state.values)

    def object(self, object_id: int) -> ObjectSpec | None:
        """What is known of the object with this id, or None."""
        return self._objects.get(object_id)

    def put_mapping(self, mapping_id: int, rows: Any, company_id: int = 0) -> None:
        """A mapping was made, changed, or deleted (``rows`` None). Rows that are no mapping feed nothing."""
        if not self.scripts.put(mapping_id, rows, company_id):
            return
        self._forget_made(mapping_id)
        if rows is None:
            self._unread.discard(mapping_id)
            self._runs.pop(mapping_id)
        for object_id in self._mapped.get(mapping_id, ()):
            self._unbind(object_id)

    def _forget_made(self, mapping_id: int) -> None:
        self._tables.pop(mapping_id, None)
        self._unread.add(mapping_id)
        self._runs[mapping_id] = {}
        self.scripts.forget_made(mapping_id)

    def put_events(self, mapping_id: int, definitions: Any, company_id: int = 0) -> None:
        """What is said of a mapping's events was changed: for what is raised from now on."""
        self.scripts.put_events(mapping_id, definitions, company_id)
        if not definitions and mapping_id not in self._events:
            return
        known = self._events[mapping_id]
        known.clear()
        try:
            known.update(parse_event_definitions(definitions or {}))
        except ValueError as error:
            _log.warning("mapping %d: what is said of its events is not used: %s", mapping_id, error)

    def load_objects(self, specs: Iterable[ObjectSpec]) -> None:
        """Takes over objects that aren't known yet, before anything is bound to them: at a start."""
        for spec in specs:
            self._objects[spec.id] = spec
            self._objects_of.add_to_all(spec.terminals, spec.id)
            if spec.mapping_id is not None:
                self._mapped[spec.mapping_id].add(spec.id)

    def put_object(self, spec: ObjectSpec) -> None:
        """An object was made or changed."""
        before = self._objects.get(spec.id)
        if before == spec:
            return
        self._forget_links(spec.id)
        self._lanes.clear()
        self._objects[spec.id] = spec
        self._objects_of.add_to_all(spec.terminals, spec.id)
        if spec.mapping_id is not None:
            self._mapped[spec.mapping_id].add(spec.id)
        self._unbind(spec.id)
        self._let_go(before)

    def drop_object(self, object_id: int) -> None:
        """An object was deleted."""
        self._forget_links(object_id)
        self._lanes.clear()
        self._let_go(self._objects.pop(object_id, None))
        for known in (self.states, self.kept, self.labels, self.collected, self._rules):
            known.pop(object_id, None)

    def put_retainer(self, spec: RetainerSpec) -> None:
        """A retainer script was made, changed, started or stopped."""
        if self._retainers.get(spec.id) == spec:
            return
        self.drop_retainer(spec.id)
        self._retainers[spec.id] = spec
        if spec.is_active:
            rules = label_rules_of(spec.id, spec.uid, spec.script)
            for object_id in spec.objects:
                self._rules[object_id][spec.id] = rules
                self._unbind(object_id)

    def drop_retainer(self, project_id: int) -> None:
        """A retainer script was deleted."""
        before = self._retainers.pop(project_id, None)
        for object_id in before.objects if before else ():
            if self._rules[object_id].pop(project_id, None) is not None:
                self._unbind(object_id)

    def lane(self, uid: str) -> int | None:
        """The first of all objects that terminals join to those of this one; None where it shares none."""
        if uid not in self._lanes:
            self._find_lane(uid)
        return self._lanes[uid]

    def _find_lane(self, uid: str) -> None:
        objects: set[int] = set()
        found, waiting = {uid}, [uid]
        while waiting:
            for object_id in set(self._objects_of.of(waiting.pop())) - objects:
                objects.add(object_id)
                new = set(self._objects[object_id].terminals) - found
                found |= new
                waiting += new
        self._lanes.update(dict.fromkeys(found, min(objects) if len(found) > 1 else None))

    def plans(self, uid: str) -> tuple[Plan, ...]:
        """The plans that a terminal's messages run, one for each object that it feeds; empty for most terminals."""
        plans = self.made.get(uid)
        if plans is None:
            objects = sorted(self._objects_of.of(uid))
            plans = self.made[uid] = tuple(plan for each in objects for plan in self._sound_plan(each, uid))
        return plans

    def is_ready(self, uid: str) -> bool:
        """Whether ``plans`` of a terminal are there, or none to be made."""
        return uid in self.made or not self._objects_of.of(uid)

    def company_of(self, uid: str) -> int:
        """Whose the objects are that a terminal feeds; 0 where it feeds none."""
        for object_id in self._objects_of.of(uid):
            return self._objects[object_id].company_id
        return 0

    def preparation(self, uid: str) -> PlanSteps[None]:
        """The steps that make the plans of a terminal; something changed meanwhile where they aren't there then."""
        failed = set()
        for object_id in sorted(self._objects_of.of(uid)):
            try:
                yield from self._prepare(object_id, uid)
            except Exception:  # noqa: BLE001 - ``plans`` finds it again, and says so
                failed.add(object_id)
        if all(each in failed or self._is_prepared(each, uid) for each in self._objects_of.of(uid)):
            self.plans(uid)

    def _is_prepared(self, object_id: int, uid: str) -> bool:
        spec, bound = self._objects[object_id], self._bound.get(object_id)
        if bound is None:
            return not spec.is_available or (spec.mapping_id not in self._unread and self._table(spec) is None)
        points = bound.points.get(uid)
        return not points or (spec.mapping_id is not None and tuple(points.items()) in self._runs[spec.mapping_id])

    def preparation_of_object(self, object_id: int) -> PlanSteps[None]:
        """The steps after which all is at hand that an object needs, whatever feeds it."""
        spec = self._objects.get(object_id)
        for uid in spec.terminals if spec else ():
            yield from self._prepare(object_id, uid)
        spec, bound = self._objects.get(object_id), self.bound(object_id)
        if spec is None or spec.mapping_id is None or bound is None:
            return
        runs = self._runs[spec.mapping_id]  # those of the table: nothing comes between here and there
        if () not in runs:
            runs[()] = yield from derived_steps(bound.state.table)
            self._note_run(spec.mapping_id, bound.state.table, 0)

    def _prepare(self, object_id: int, uid: str) -> PlanSteps[None]:
        spec = self._objects.get(object_id)
        if spec is not None and spec.mapping_id is not None and spec.is_available:
            yield from self.reading(spec.mapping_id)
        yield None
        spec, bound = self._objects.get(object_id), self.bound(object_id)
        points = None if bound is None else bound.points.get(uid)
        if spec is None or spec.mapping_id is None or bound is None or not points:
            return
        runs, key = self._runs[spec.mapping_id], tuple(points.items())  # those of the table, as above
        if key not in runs:
            runs[key] = yield from plan_steps(bound.state.table, points)
            self._note_run(spec.mapping_id, bound.state.table, len(points))

    def reading(self, mapping_id: int) -> PlanSteps[None]:
        """The steps that make a mapping's rows a table, if they aren't."""
        if mapping_id not in self._unread:
            return
        packed, table = self.scripts.packed(mapping_id), None
        try:
            table = yield from table_steps(rows_in(packed))
        except ValueError as error:
            _log.warning("mapping %d is not used: %s", mapping_id, error)
        is_same = self.scripts.packed(mapping_id) is packed and mapping_id in self._unread
        if is_same and self._mapped.get(mapping_id):
            self._tables[mapping_id] = table
            self._unread.discard(mapping_id)
            if table is not None:
                self.scripts.note_table(mapping_id)

    def is_at_hand(self, object_id: int) -> bool:
        """Whether ``bound`` has little to do for an object: its mapping is read, or short."""
        spec = self._objects.get(object_id)
        mapping_id = None if spec is None else spec.mapping_id
        return mapping_id is None or mapping_id not in self._unread or len(self.scripts.packed(mapping_id)) <= _SHORT

    @property
    def unread(self) -> list[int]:
        """The mappings that objects have and whose rows are no tables yet."""
        return [mapping_id for mapping_id in self._unread if self._mapped.get(mapping_id)]

    def objects_of_mapping(self, mapping_id: int) -> Sequence[int]:
        """The objects that have a mapping."""
        return tuple(self._mapped.get(mapping_id, ()))

    def _sound_plan(self, object_id: int, uid: str) -> Sequence[Plan]:
        """A plan that can't be made is none, and keeps nothing from the terminal's other objects."""
        try:
            return tuple(self._plan(object_id, uid))
        except Exception:  # noqa: BLE001 - whatever is wrong with one mapping
            _log.exception("object %d takes nothing from %s: its plan can't be made", object_id, uid)
            return ()

    def bound(self, object_id: int) -> BoundMapping | None:
        """An object that is mapped, with its state; None for one that isn't."""
        bound = self._bound.get(object_id)
        if bound is None:
            spec = self._objects.get(object_id)
            table = self._table(spec)
            if spec is None or table is None:
                return None
            rules, labels = self._rules_by_code(object_id), self.labels[object_id]
            labels.keep(rules)
            assert spec.mapping_id is not None  # else it had no table
            events = self._events[spec.mapping_id]
            bound = self._bound[object_id] = BoundMapping(spec, self._state(object_id, table), labels, rules, events)
            self.save(bound)
        return bound

    def save(self, bound: BoundMapping) -> None:
        """From now on a fault takes the object back to how it is now; raises where that can't be written."""
        bound.state.save()
        bound.labels.note()
        bound.fed, bound.since, bound.group = 0, len(self.reports), self.group

    def derived(self, object_id: int) -> Plan | None:
        """What follows for an object from something else than a message; None for one that isn't mapped."""
        bound, spec = self.bound(object_id), self._objects.get(object_id)
        if bound is None or spec is None or spec.mapping_id is None:
            return None
        runs = self._runs[spec.mapping_id]
        run = runs.get(())
        if run is None:
            run = runs[()] = made_at_once(derived_steps(bound.state.table))
            self._note_run(spec.mapping_id, bound.state.table, 0)
        return Plan(run, bound)

    def alone(self, object_id: int) -> MappingCatalogue | None:
        """A catalogue of this object only, under the same mapping and retainers, that remembers nothing of it.

        None for an object that isn't mapped.
        """
        bound, spec = self.bound(object_id), self._objects.get(object_id)
        if bound is None or spec is None or spec.mapping_id is None:
            return None
        copy = MappingCatalogue(self.limits)
        copy._tables[spec.mapping_id], copy._runs[spec.mapping_id] = bound.state.table, self._runs[spec.mapping_id]
        copy._events[spec.mapping_id] = self._events[spec.mapping_id]
        copy.scripts = self.scripts  # where plans count that the two share
        copy.put_object(spec)
        for retainer in self._retainers.values():
            if object_id in retainer.objects:
                copy.put_retainer(retainer)
        return copy

    def adopt(self, object_id: int, state: ObjectState, labels: Labels) -> None:
        """Puts a state that another catalogue made in the place of what is known of an object."""
        self.kept.pop(object_id, None)
        state.collected = self.collected[object_id]
        self.states[object_id], self.labels[object_id] = state, labels
        self._unbind(object_id)

    def _table(self, spec: ObjectSpec | None) -> MappingTable | None:
        if spec is None or spec.mapping_id is None or not spec.is_available:
            return None
        if spec.mapping_id in self._unread:
            made_at_once(self.reading(spec.mapping_id))
        return self._tables.get(spec.mapping_id)

    def _plan(self, object_id: int, uid: str) -> Iterable[Plan]:
        bound = self.bound(object_id)
        spec = self._objects[object_id]
        if bound is None or spec.mapping_id is None:
            return
        table = bound.state.table
        points = bound.points.get(uid)
        if points:
            runs = self._runs[spec.mapping_id]
            key = tuple(points.items())
            run = runs.get(key)
            if run is None:
                run = runs[key] = made_at_once(plan_steps(table, points))
                self._note_run(spec.mapping_id, table, len(points))
            yield Plan(run, bound)

    def _state(self, object_id: int, table: MappingTable) -> ObjectState:
        before = self.states.get(object_id)
        if before is not None and before.table is table:
            return before
        state = self.states[object_id] = ObjectState(object_id, table, collected=self.collected[object_id])
        kept = self.kept.pop(object_id, None)
        if before is not None:
            state.adopt(before)
        elif kept is not None:
            state.restore(kept.note, self.layouts.get(kept.note.layout, ()), kept.steps)
        return state

    def _rules_by_code(self, object_id: int) -> dict[str, list[LabelRule]]:
        by_code: dict[str, list[LabelRule]] = {}
        for rules in self._rules.get(object_id, {}).values():
            for rule in rules:
                by_code.setdefault(rule.code, []).append(rule)
        return by_code

    def _forget_links(self, object_id: int) -> None:
        before = self._objects.get(object_id)
        if before is None:
            return
        self._unbind(object_id)
        for uid in before.terminals:
            self._objects_of.discard(uid, object_id)
        if before.mapping_id is not None:
            self._mapped[before.mapping_id].discard(object_id)

    def _let_go(self, before: ObjectSpec | None) -> None:
        """Keeps but the rows of a mapping that the last object has given up."""
        mapping_id = None if before is None else before.mapping_id
        if mapping_id is None or self._mapped.get(mapping_id):
            return
        self._mapped.pop(mapping_id, None)
        if self.scripts.packed(mapping_id):
            self._forget_made(mapping_id)

    def _note_run(self, mapping_id: int, table: MappingTable, fed: int) -> None:
        self.scripts.note_plan(mapping_id, fed + len(table.derived))

    def _unbind(self, object_id: int) -> None:
        self._bound.pop(object_id, None)
        spec = self._objects.get(object_id)
        for uid in spec.terminals if spec else ():
            self.made.pop(uid, None)
