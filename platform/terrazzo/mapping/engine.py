"""The shaping step of the ingest: messages in, mosaic records, events and labels out.

Pure: no clock, no task, no store. ``Recorder`` calls ``shape`` for each message of a terminal that feeds an object;
``seal`` ends a group: what it returns is committed together with the group's records.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from terrazzo.domain.events.definition import UNDEFINED
from terrazzo.domain.mapping_row import MappingRow
from terrazzo.domain.payload import Points, shorten, take_points
from terrazzo.domain.report_topic import series_name_in, uid_of
from terrazzo.errors import NotFound
from terrazzo.expressions.functions import Value, as_text
from terrazzo.expressions.tree import X
from terrazzo.mapping.catalogue import BoundMapping, Kept, MappingCatalogue, MappingLimits, Plan
from terrazzo.mapping.effects import (
    BY_CONDITION,
    BY_EVENT,
    Effect,
    EventRaised,
    EventsCleared,
    LabelClosed,
    LabelOpened,
)
from terrazzo.mapping.labels import Key, LabelRule, Labels, decode_labels
from terrazzo.mapping.plan import Run, changed_values
from terrazzo.mapping.rolling_window import STEPS
from terrazzo.mapping.state import ObjectState, decode_layout, decode_state, empty_state, encode, window_notes
from terrazzo.ports.store import Notes, Record
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_encode_body = msgspec.msgpack.Encoder().encode
EVENT_CHARS = 1_000
"""Of a value in an event or a label, and of what met an event's condition."""

_MOST_AGAIN = 500  # messages of an object that run again after a fault, roughly


class MappingStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    messages: int = 0  # of terminals that feed objects
    records: int = 0
    late: int = 0  # messages older than what was known
    events: int = 0
    labels_opened: int = 0
    labels_closed: int = 0
    faults: int = 0  # objects taken back to before a message that went wrong for them


class TooLarge(ValueError):
    """A message makes a larger record of an object than is allowed."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"its record would have {size} bytes, limits.mosaic_bytes is {most}")


class Unmapped(ValueError):
    """A message went into some objects not at all: they are as before it. ``faults``: why, by their ids."""

    def __init__(self, faults: Mapping[int, Exception]) -> None:
        super().__init__("; ".join(f"object {key}: {error or type(error).__name__}" for key, error in faults.items()))
        self.faults = faults


class Sealed(NamedTuple):
    """What is committed with a group: notes of the states that changed, and the effects, which are a note too."""

    notes: Notes
    effects: Sequence[Effect]


class MappingEngine:
    """The objects' variables, events and labels, made of messages. Used from one thread only."""

    def __init__(self, limits: MappingLimits | None = None) -> None:
        self.catalogue = MappingCatalogue(limits)
        self.stats = MappingStats()
        self._mosaic_bytes = self.catalogue.limits.mosaic_bytes
        self._changed: dict[int, ObjectState] = {}
        self._labels: dict[int, Labels] = {}  # that changed
        self._effects: list[Effect] = []
        self._happening: list[Effect] = []  # of the message and the object at hand
        self._sealed = 0  # how many of the group's reports were there when it was sealed; it may go on after a fault
        self._sparse_log = SparseLog(_log)
        self._notes: dict[str, bytes | None] = {}  # beside the states'
        self._records: list[Record] = []  # that no message made
        self._shaped = self._made = 0  # messages and their records that ``stats`` doesn't have yet
        self._layouts: set[str] = set()  # that are kept already
        self._read: dict[int, Points] = {}  # of the group's reports whose bodies don't say their points, by id()

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

        Raises:
            Unmapped: it went wrong for some of the objects.
        """
        changed, happening, faults = self._changed, self._happening, None
        for run, bound in plans:
            try:
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
                    body = _encode_body(out)
                    if len(body) > self._mosaic_bytes:
                        raise TooLarge(len(body), self._mosaic_bytes)
                    mosaic.append(Record(bound.series, time_us, body))
                    self._made += 1
                if happening:
                    self._take_happening()
            except Exception as error:  # noqa: BLE001 - whatever is wrong with one message for one object
                faults = {**(faults or {}), bound.object_id: error}
                self._recover(bound, len(self.catalogue.reports) - 1)
        self._shaped += 1
        if faults:
            raise Unmapped(faults)

    def begin(self, reports: Sequence[Record]) -> None:
        """A group begins: the list to which each record of a report is added before it comes to ``shape``.

        From what is in it an object's state is made again that a fault has left between two messages.
        """
        catalogue = self.catalogue
        catalogue.group, catalogue.reports, self._sealed = catalogue.group + 1, reports, 0
        self._read.clear()

    def note_read(self, report: Record, points: Points) -> None:
        """What was read of a report of the group whose body doesn't say it; it may have to run again."""
        self._read[id(report)] = points

    def rows_of(self, plans: Sequence[Plan]) -> int:
        """How many rows one message runs through."""
        return sum([len(bound.state.table.rows) for _, bound in plans]) or 1

    def keep_up(self, plans: Sequence[Plan], count: int) -> None:
        """So many messages have run through these plans; objects are saved in time: few would have to run again."""
        for _, bound in plans:
            bound.fed += count
            if bound.fed > _MOST_AGAIN:
                self._save(bound)

    def _take_happening(self) -> None:
        self._effects += self._happening
        self._happening.clear()

    def _save(self, bound: BoundMapping) -> None:
        try:
            self.catalogue.save(bound)
        except Exception:  # noqa: BLE001 - a value that no note can hold: whichever message it came with didn't happen
            self._recover(bound, len(self.catalogue.reports))

    def _recover(self, bound: BoundMapping, until: int) -> None:
        """Takes an object back to where it was saved last; what fed it since then, up to ``until``, runs again.

        What fails in that is as if it hadn't been, and nothing happens twice.
        """
        self.stats.faults += 1
        group, reports = self.catalogue.group, self.catalogue.reports
        first = max(self._sealed, bound.since) if bound.group == group else self._sealed
        self._go_back(bound)
        for report in reports[first:until]:
            try:
                self._repeat(bound, report)
                self.catalogue.save(bound)
            except Exception:  # noqa: BLE001 - as it was when it came
                self._go_back(bound)
        bound.fed, bound.since, bound.group = 0, len(reports), group

    def _go_back(self, bound: BoundMapping) -> None:
        self._happening.clear()
        bound.state.go_back()
        bound.labels.go_back()
        bound.recheck = bool(bound.rules)

    def _repeat(self, bound: BoundMapping, report: Record) -> None:
        """Runs a message again, for the object's state and labels only."""
        uid = uid_of(series_name_in(report.series))
        is_report = report.series.startswith("g/")  # and no reject
        runs = [run for run, each in self.catalogue.plans(uid) if each is bound] if is_report else []
        for run in runs:
            read, time_us = self._read.get(id(report)), report.time_us
            points = take_points(report.body, self.catalogue.limits.points) if read is None else read
            out, is_late, is_fed = run(points, time_us, bound.state)
            bound.state.raised.clear()
            if is_fed and bound.rules:
                self._see(bound, changed_values(out), uid, time_us)
                self._happening.clear()
            if is_late:
                self._late(run, points, time_us, bound.state)

    def collect(self, object_id: int, values: Mapping[str, Value], collected_us: int, now_us: int) -> None:
        """Takes what was collected offline for an object: it is in its COL variables from now on.

        Args:
            values: the latest of each project, by each of the project's names.
            collected_us: when something was collected last; what the object has taken in already changes nothing.
        """
        self.remember(object_id, values)
        plan = self.catalogue.derived(object_id)
        if plan is None or plan.bound.state.derived_us >= collected_us:
            return
        self._save(plan.bound)
        try:
            self._derive(plan, now_us)
        except Exception:  # noqa: BLE001 - whatever was collected for one object
            self._recover(plan.bound, 0)
            self._sparse_log.error("what was collected for object %d is not used", object_id, exc_info=True)
        self._save(plan.bound)

    def remember(self, object_id: int, values: Mapping[str, Value]) -> None:
        """What was collected offline for an object: its COL variables have it when they are computed next."""
        known = self.catalogue.collected[object_id]
        known.clear()
        known.update(shorten(dict(values), self.catalogue.limits.points))

    def _derive(self, plan: Plan, now_us: int) -> None:
        run, bound = plan
        time_us = max(now_us, bound.state.derived_us)
        changes, _, _ = run({}, time_us, bound.state)
        out = changed_values(changes)
        self._changed[bound.object_id] = bound.state
        if bound.state.raised:
            self._raise(bound, "", time_us)
        if bound.rules:
            self._see(bound, out, "", time_us)
        self._take_happening()
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

    def _raise(self, bound: BoundMapping, uid: str, time_us: int) -> None:
        state = bound.state
        for place in state.raised:
            row = state.table.rows[place if place >= 0 else ~place]
            said = bound.events.get(row.code, UNDEFINED)
            if place < 0:
                if said.clears_itself:
                    self._clear(bound, row.code, time_us, BY_CONDITION)
                continue
            for code in said.clears:
                self._clear(bound, code, time_us, BY_EVENT)
            self._happening.append(_event(bound, row, state, uid, time_us))
        state.raised.clear()

    def _clear(self, bound: BoundMapping, code: str, time_us: int, cause: str) -> None:
        self._happening.append(EventsCleared(bound.company_id, bound.object_id, code, time_us, cause))

    def _see(self, bound: BoundMapping, out: Mapping[str, Value], uid: str, time_us: int) -> None:
        """Shows the labels what changed; all variables after a retainer was started or changed."""
        codes = bound.rules if bound.recheck else out
        bound.recheck = False
        for code in codes:
            for rule in bound.rules.get(code, ()):
                self._look(bound, rule, uid, time_us)

    def _look(self, bound: BoundMapping, rule: LabelRule, uid: str, time_us: int) -> None:
        labels, value = bound.labels, bound.state.value(rule.code)
        moment = labels.see(rule, value, time_us)
        self._labels[bound.object_id] = labels
        if moment is None:
            return
        if not labels.is_open(rule.key):
            self._happening.append(LabelClosed(bound.company_id, bound.object_id, *rule.key, moment, False))
            return
        whose = (bound.company_id, bound.object_id, uid, rule.project_id, rule.class_id)
        self._happening.append(LabelOpened(*whose, rule.code, rule.label_en, rule.label_cn, event_text(value), moment))

    def _closed(self, company_id: int, object_id: int, key: Key, closed_us: int, *, by_hand: bool = False) -> None:
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
        bound = self.catalogue.bound(object_id)
        if bound is not None:
            self._save(bound)

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
        """What is known of an object: its variables and when it reported.

        None where it isn't mapped, or by a long mapping that nobody has read yet (``PlanMaker.read`` tells when).
        """
        bound = self.catalogue.bound(object_id) if self.catalogue.is_at_hand(object_id) else None
        return None if bound is None else bound.state

    def open_labels(self, object_id: int) -> int:
        """How many labels of an object are open."""
        labels = self.catalogue.labels.get(object_id)
        return 0 if labels is None else labels.open_count

    def seal(self) -> Sealed:
        """Ends a group: the effects since the last call, and the notes that are committed with it."""
        notes: dict[str, bytes | None] = self._notes
        for state in self._changed.values():
            try:
                notes.update(state.notes())
            except Exception:  # noqa: BLE001 - one object must not keep the others' from being committed
                notes.update(self._recovered_notes(state))
            layout = state.table.layout
            if layout not in self._layouts:
                self._layouts.add(layout)
                notes[f"layout/{layout}"] = encode(state.table.slots)
        notes.update({f"labels/{object_id}": labels.note() for object_id, labels in self._labels.items()})
        self._count()
        self._sealed = len(self.catalogue.reports)
        sealed = Sealed(notes, self._effects)
        self._changed, self._labels, self._effects, self._notes = {}, {}, [], {}
        return sealed

    def _recovered_notes(self, state: ObjectState) -> dict[str, bytes]:
        """Those of an object whose state can't be written: without the messages that it fails on."""
        bound = self.catalogue.bound(state.object_id)
        if bound is None or bound.state is not state:
            return {}
        self._recover(bound, len(self.catalogue.reports))
        self._sparse_log.error("object %d: what can't be written of it is left out", state.object_id, exc_info=True)
        return state.notes()

    def _count(self) -> None:
        stats, kinds = self.stats, [type(effect) for effect in self._effects]
        stats.messages += self._shaped
        stats.records += self._made
        stats.events += kinds.count(EventRaised)
        stats.labels_opened += kinds.count(LabelOpened)
        stats.labels_closed += kinds.count(LabelClosed)
        self._shaped = self._made = 0


def event_text(value: Value) -> str:
    """A value as an event or a label keeps it: cut where it is long, and no database holds a NUL in a text."""
    return as_text(value)[:EVENT_CHARS].replace("\0", "\ufffd")


def _event(bound: BoundMapping, row: MappingRow, state: ObjectState, uid: str, time_us: int) -> EventRaised:
    condition, expression = row.condition, row.expression
    assert condition is not None  # no EVNT row is without
    met = {name: event_text(state.value(row.code if name == X else name)) for name in condition.names}
    if expression is not None:
        value = expression.evaluate({name: state.value(row.code if name == X else name) for name in expression.names})
    elif not row.point and condition.names:
        value = state.value(condition.names[0])
    else:
        value = state.value(row.code)
    several = ", ".join(f"{name}={text}" for name, text in met.items())
    whose = (bound.company_id, bound.object_id, uid, row.code, row.label_en, row.label_cn)
    met_by = next(iter(met.values())) if len(met) == 1 else several[:EVENT_CHARS]
    said = bound.events.get(row.code, UNDEFINED)
    clear_at = time_us + said.clear_after_s * 1_000_000 if said.clear_after_s else None
    return EventRaised(*whose, event_text(value), condition.text, met_by, time_us, said.rank, clear_at)
