"""The shaping step of the ingest: messages in, mosaic records, events and labels out.

Pure: no clock, no task, no store. ``Recorder`` calls ``shape`` for each message of a terminal that feeds an object;
``seal`` ends a group: what it returns is committed together with the group's records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from terrazzo.domain.mapping_row import MappingRow
from terrazzo.domain.payload import Points
from terrazzo.errors import NotFound
from terrazzo.expressions.functions import Value, as_text
from terrazzo.expressions.tree import X
from terrazzo.mapping.catalogue import Bound, Kept, MappingCatalogue, Plan
from terrazzo.mapping.effects import Effect, EventRaised, LabelClosed, LabelOpened
from terrazzo.mapping.labels import Key, LabelRule, Labels, decode_labels
from terrazzo.mapping.plan import Run, changed_values
from terrazzo.mapping.rolling_window import STEPS
from terrazzo.mapping.state import ObjectState, decode_layout, decode_state, empty_state, encode, window_notes
from terrazzo.ports.store import Notes, Record

_encode_body = msgspec.msgpack.Encoder().encode
_new = tuple.__new__  # a NamedTuple without its constructor, which is written in Python: half the time


class MappingStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    messages: int = 0  # of terminals that feed objects
    records: int = 0
    late: int = 0  # messages older than what was known
    events: int = 0
    labels_opened: int = 0
    labels_closed: int = 0


class Sealed(NamedTuple):
    """What is committed with a group: notes of the states that changed, and the effects, which are a note too."""

    notes: Notes
    effects: Sequence[Effect]


class MappingEngine:
    """The objects' variables, events and labels, made of messages. Used from one thread only."""

    def __init__(self) -> None:
        self.catalogue = MappingCatalogue()
        self.stats = MappingStats()
        self._changed: dict[int, ObjectState] = {}
        self._labels: dict[int, Labels] = {}  # that changed
        self._effects: list[Effect] = []
        self._notes: dict[str, bytes | None] = {}  # beside the states'
        self._records: list[Record] = []  # that no message made
        self._shaped = self._made = 0  # messages and their records that ``stats`` doesn't have yet
        self._layouts: set[str] = set()  # that are kept already

    def load(self, notes: Mapping[str, bytes]) -> None:
        """Takes over the notes that the store has kept, by name; called before anything else."""
        catalogue, windows = self.catalogue, window_notes(notes)
        for name, body in notes.items():
            kind, _, rest = name.partition("/")
            if kind == "state":
                catalogue.kept[int(rest)] = Kept(decode_state(body), windows.get(int(rest), {}))
            elif kind == "labels":
                catalogue.labels[int(rest)] = Labels(decode_labels(body))
            elif kind == "layout":
                catalogue.layouts[rest] = decode_layout(body)
        used = {kept.note.layout for kept in catalogue.kept.values()}
        self._layouts = used & set(catalogue.layouts)
        self._notes.update({f"layout/{layout}": None for layout in catalogue.layouts if layout not in used})

    @property
    def is_dirty(self) -> bool:
        """Whether ``seal`` has something to commit."""
        return bool(self._changed or self._labels or self._effects or self._notes or self._records)

    def shape(self, plans: Sequence[Plan], points: Points, time_us: int, uid: str, mosaic: list[Record]) -> None:
        """Takes one message; appends the mosaic records that it makes.

        Args:
            plans: ``catalogue.plans(uid)``, not empty.
            points: flat, as ``flatten`` makes them.
        """
        changed = self._changed
        for run, bound in plans:
            state = bound.state
            out, is_late, is_fed = run(points, time_us, state)
            if is_fed:
                changed[bound.object_id] = state
                if state.raised:
                    self._raise(bound, uid, time_us)
                if bound.rules:
                    self._see(bound, changed_values(out), uid, time_us)
            if is_late:
                self.stats.late += 1
                out = {**self._late(run, points, time_us, state), **out}
            if out:
                mosaic.append(_new(Record, (bound.series, time_us, _encode_body(out))))
                self._made += 1
        self._shaped += 1

    def collect(self, object_id: int, values: Mapping[str, Value], collected_us: int, now_us: int) -> None:
        """Takes what was collected offline for an object: it is in its COL variables from now on.

        Args:
            values: the latest of each project, by each of the project's names.
            collected_us: when something was collected last; what the object has taken in already changes nothing.
        """
        known = self.catalogue.collected[object_id]
        known.clear()
        known.update(values)
        plan = self.catalogue.derived(object_id)
        if plan is None or plan.bound.state.derived_us >= collected_us:
            return
        run, bound = plan
        time_us = max(now_us, bound.state.derived_us)
        changes, _, _ = run({}, time_us, bound.state)
        out = changed_values(changes)
        self._changed[object_id] = bound.state
        if bound.state.raised:
            self._raise(bound, "", time_us)
        if bound.rules:
            self._see(bound, out, "", time_us)
        if out:
            self._records.append(Record(bound.series, time_us, _encode_body(out)))
            self.stats.records += 1

    def take_records(self) -> list[Record]:
        """The records that no message made, to commit with the group that is sealed next."""
        taken, self._records = self._records, []
        return taken

    def _late(self, run: Run, flat: Points, time_us: int, state: ObjectState) -> dict[str, Value]:
        """What a message that is older than what is known says by itself; it changes windows only."""
        table = state.table
        alone = empty_state(table)
        out, _, _ = run(flat, time_us, alone)
        found: dict[str, Value] = {
            code: value
            for code, value in changed_values(out).items()
            if value is not None and state.times[table.places[code]] > time_us and not state.windows[table.places[code]]
        }
        for row, window in zip(table.rows, state.windows, strict=True):
            if window is not None and row.of in found:
                window.add(time_us, found[row.of])
                self._changed[state.object_id] = state
        return found

    def _raise(self, bound: Bound, uid: str, time_us: int) -> None:
        state = bound.state
        for place in state.raised:
            row = state.table.rows[place]
            self.stats.events += 1
            self._effects.append(_event(bound, row, state, uid, time_us))
        state.raised.clear()

    def _see(self, bound: Bound, out: Mapping[str, Value], uid: str, time_us: int) -> None:
        """Shows the labels what changed; all variables after a retainer was started or changed."""
        codes = bound.rules if bound.recheck else out
        bound.recheck = False
        for code in codes:
            for rule in bound.rules.get(code, ()):
                self._look(bound, rule, uid, time_us)

    def _look(self, bound: Bound, rule: LabelRule, uid: str, time_us: int) -> None:
        labels, value = bound.labels, bound.state.value(rule.code)
        moment = labels.see(rule, value, time_us)
        self._labels[bound.object_id] = labels
        if moment is None:
            return
        if not labels.is_open(rule.key):
            self._closed(bound.company_id, bound.object_id, rule.key, moment)
            return
        self.stats.labels_opened += 1
        whose = (bound.company_id, bound.object_id, uid, rule.project_id, rule.class_id)
        self._effects.append(LabelOpened(*whose, rule.code, rule.label_en, rule.label_cn, storable_text(value), moment))

    def _closed(self, company_id: int, object_id: int, key: Key, closed_us: int, *, by_hand: bool = False) -> None:
        self.stats.labels_closed += 1
        self._effects.append(LabelClosed(company_id, object_id, *key, closed_us, by_hand))

    def close_label(self, object_id: int, project_id: int, code: str, now_us: int) -> None:
        """Closes a label by hand; it opens again when its variable leaves the open value and comes back.

        Raises:
            NotFound: no such label is open.
        """
        key, spec = (project_id, code), self.catalogue.object(object_id)
        labels = self.catalogue.labels.get(object_id)
        closed_us = labels.close(key, now_us) if labels and spec else None
        if labels is None or spec is None or closed_us is None:
            raise NotFound("code", code[:64])
        self._labels[object_id] = labels
        self._closed(spec.company_id, object_id, key, closed_us, by_hand=True)

    def drop_object(self, object_id: int, now_us: int) -> None:
        """An object was deleted: its labels close, and nothing is kept of it."""
        spec, labels = self.catalogue.object(object_id), self.catalogue.labels.get(object_id)
        for key in list(labels.standings) if labels else ():
            closed_us = labels.close(key, now_us) if labels else None
            if closed_us is not None:
                self._closed(spec.company_id if spec else 0, object_id, key, closed_us)
        state = self.catalogue.states.get(object_id)
        kept = self.catalogue.kept.get(object_id)
        codes = {row.code for row in state.table.rows if row.window_us} if state else set(kept.steps if kept else ())
        steps = [f"window/{object_id}/{step}/{code}" for code in codes for step in range(STEPS)]
        self._notes.update(dict.fromkeys((f"state/{object_id}", f"labels/{object_id}", *steps)))
        self._changed.pop(object_id, None)
        self._labels.pop(object_id, None)
        self.catalogue.drop_object(object_id)

    def drop_retainer(self, project_id: int, now_us: int) -> None:
        """A retainer script was deleted: nobody could close its labels any more."""
        self.catalogue.drop_retainer(project_id)
        for object_id, labels in self.catalogue.labels.items():
            for key in [key for key in labels.standings if key[0] == project_id]:
                closed_us = labels.close(key, now_us)
                del labels.standings[key]
                self._labels[object_id] = labels
                spec = self.catalogue.object(object_id)
                if closed_us is not None:
                    self._closed(spec.company_id if spec else 0, object_id, key, closed_us)

    def adopt(self, object_id: int, state: ObjectState, labels: Labels) -> Notes:
        """Puts what was found anew in the place of what is known of an object; the notes that say so."""
        self.catalogue.adopt(object_id, state, labels)
        self._changed[object_id], self._labels[object_id] = state, labels
        layout = state.table.layout
        slots = encode(state.table.slots)
        return {**state.all_notes(), f"layout/{layout}": slots, f"labels/{object_id}": labels.note()}

    def forget_unknown(self, now_us: int) -> None:
        """Drops what is kept of objects and retainers that were deleted elsewhere; after all records were put in."""
        for object_id in self.catalogue.unknown():
            self.drop_object(object_id, now_us)
        for project_id in self.catalogue.unknown_retainers():
            self.drop_retainer(project_id, now_us)

    def state(self, object_id: int) -> ObjectState | None:
        """What is known of an object: its variables and when it reported; None where it isn't mapped."""
        bound = self.catalogue.bound(object_id)
        return None if bound is None else bound.state

    def open_labels(self, object_id: int) -> int:
        """How many labels of an object are open."""
        labels = self.catalogue.labels.get(object_id)
        return 0 if labels is None else labels.open_count

    def seal(self) -> Sealed:
        """Ends a group: the effects since the last call, and the notes that are committed with it."""
        notes: dict[str, bytes | None] = self._notes
        for state in self._changed.values():
            notes.update(state.notes())
            layout = state.table.layout
            if layout not in self._layouts:
                self._layouts.add(layout)
                notes[f"layout/{layout}"] = encode(state.table.slots)
        notes.update({f"labels/{object_id}": labels.note() for object_id, labels in self._labels.items()})
        self.stats.messages += self._shaped
        self.stats.records += self._made
        self._shaped = self._made = 0
        sealed = Sealed(notes, self._effects)
        self._changed, self._labels, self._effects, self._notes = {}, {}, [], {}
        return sealed


def storable_text(value: Value) -> str:
    """A value as the database keeps it: no database holds a NUL in a text."""
    return as_text(value).replace("\0", "\ufffd")


def _event(bound: Bound, row: MappingRow, state: ObjectState, uid: str, time_us: int) -> EventRaised:
    known = {**state.variables(), X: state.value(row.code)}
    condition = row.condition
    assert condition is not None  # no EVNT row is without
    met = {name: storable_text(known.get(name)) for name in condition.names}
    value = known[X] if row.expression is None else row.expression.evaluate(known)
    if not row.point and row.expression is None and condition.names:
        value = known.get(condition.names[0])
    several = ", ".join(f"{name}={text}" for name, text in met.items())
    whose = (bound.company_id, bound.object_id, uid, row.code, row.label_en, row.label_cn)
    met_by = next(iter(met.values())) if len(met) == 1 else several
    return EventRaised(*whose, storable_text(value), condition.text, met_by, time_us)
