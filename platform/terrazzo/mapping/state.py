"""What is remembered of an object: the newest value and time of each variable, edges, windows.

It is kept as notes beside the records that it follows from:

=============================================  ===========================================================
``state/<object_id>``                          a ``StateNote``
``labels/<object_id>``                         how its labels stand (``labels.Standing``)
``layout/<layout>``                            what the places of its lists mean, shared by many objects
``window/<object_id>/<step>/<code>``           one step of a rolling statistic; ``step`` is its number modulo 60
=============================================  ===========================================================
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from terrazzo.domain.mapping_row import RowKind
from terrazzo.domain.mapping_table import MappingTable, Slot
from terrazzo.expressions.functions import Value
from terrazzo.mapping.rolling_window import STEPS, RollingWindow, SilentWindow, Step

NEVER = -1


class StateNote(msgspec.Struct, array_like=True, gc=False):
    """What of a state is written with each commit that changed it; ``edges`` and ``marks`` are empty without rows."""

    layout: str
    values: list[Value]
    times: list[int]
    edges: list[bool]
    marks: list[int]
    derived_us: int


class StepNote(msgspec.Struct, array_like=True):
    """One step of a rolling window, as the store keeps it."""

    step_us: int
    step: Step


encode = msgspec.msgpack.Encoder().encode
decode_state = msgspec.msgpack.Decoder(StateNote).decode
decode_layout = msgspec.msgpack.Decoder(tuple[Slot, ...]).decode
decode_step = msgspec.msgpack.Decoder(StepNote).decode


class ObjectState:
    """The state of one object under one mapping; lists are by slot.

    ``values``: of a variable its newest value, of an event with a point the point's. ``times``: when. ``marks``: the
    interval in which a row with an interval was computed last. ``derived_us``: the newest time at which the rows that
    follow from others were computed. ``newest_us``: the time of the newest message that fed the object. ``raised``: the
    indexes of the events' rows whose conditions the message at hand has turned true, inverted where it was false.

    ``save`` notes how all of this is, ``go_back`` comes back to it; ``notes`` saves too, at no cost.
    """

    __slots__ = (
        "collected",
        "derived_us",
        "edges",
        "marks",
        "newest_us",
        "object_id",
        "raised",
        "saved",
        "saved_newest_us",
        "table",
        "times",
        "values",
        "windows",
    )

    def __init__(self, object_id: int, table: MappingTable, *, collected: Mapping[str, Value] | None = None) -> None:
        count = len(table.rows)
        self.object_id = object_id
        self.table = table
        self.collected: Mapping[str, Value] = {} if collected is None else collected
        self.values: list[Value] = [None] * count
        self.times = [NEVER] * count
        self.edges = [False] * count
        self.marks = [NEVER] * count
        self.windows = [RollingWindow(row.window_us, row.fn) if row.kind is RowKind.STT else None for row in table.rows]
        self.derived_us = NEVER
        self.newest_us = NEVER
        self.raised: list[int] = []
        self.saved: bytes | None = None  # a ``StateNote``; None: as it was made
        self.saved_newest_us = NEVER

    def value(self, code: str) -> Value:
        """The newest value of a variable, null for one that isn't there."""
        place = self.table.places.get(code)
        return None if place is None else self.values[place]

    def variables(self) -> dict[str, Value]:
        """All variables that have a value."""
        rows = zip(self.table.rows, self.values, strict=True)
        return {row.code: value for row, value in rows if row.kind is not RowKind.EVNT and value is not None}

    def notes(self, *, written: bool = True) -> dict[str, bytes]:
        """What has to be written for the state as it is; ``written``: forgets which windows had changed."""
        table = self.table
        edges = self.edges if table.has_edges else []
        marks = self.marks if table.has_marks else []
        saved = encode(StateNote(table.layout, self.values, self.times, edges, marks, self.derived_us))
        notes = {f"state/{self.object_id}": saved}
        if table.windowed:
            notes.update(self._window_notes())
            for window in filter(None, self.windows):
                window.save()
                if written:
                    window.changed.clear()
        self.saved, self.saved_newest_us = saved, self.newest_us
        return notes

    def _window_notes(self) -> dict[str, bytes]:
        notes = {}
        for place in self.table.windowed:
            row, window = self.table.rows[place], self.windows[place]
            if window is None:
                continue
            for number in window.changed:
                name = f"window/{self.object_id}/{number % STEPS}/{row.code}"
                notes[name] = encode(StepNote(window.step_us, window.steps[number]))
        return notes

    def save(self) -> None:
        """From now on ``go_back`` comes back to how it is now, unless that can't be written: then it raises."""
        self.notes(written=False)

    def go_back(self) -> None:
        """All is as it was when it was saved last."""
        count = len(self.table.rows)
        note = StateNote("", [None] * count, [NEVER] * count, [], [], NEVER)
        if self.saved is not None:
            note = decode_state(self.saved)
        self.values, self.times = note.values, note.times
        self.edges, self.marks = note.edges or [False] * count, note.marks or [NEVER] * count
        self.derived_us, self.newest_us = note.derived_us, self.saved_newest_us
        self.raised.clear()
        for window in filter(None, self.windows):
            window.go_back()

    def all_notes(self) -> dict[str, bytes | None]:
        """What has to be written for the state to stand in the place of another; what that one had goes."""
        notes: dict[str, bytes | None] = {}
        for row, window in zip(self.table.rows, self.windows, strict=True):
            if window is not None:
                notes.update(dict.fromkeys(f"window/{self.object_id}/{step}/{row.code}" for step in range(STEPS)))
                window.changed.update(window.steps)
        notes.update(self.notes())
        return notes

    def restore(self, note: StateNote, slots: tuple[Slot, ...], steps: Mapping[str, list[StepNote]]) -> None:
        """Takes over what was kept, perhaps under an earlier version of the mapping: slots that are equal.

        Args:
            slots: what the places in ``note`` mean.
            steps: of windows, by code.
        """
        places = {slot: place for place, slot in enumerate(self.table.slots)}
        codes = {slot.code: place for slot, place in places.items() if slot.kind != RowKind.EVNT.value}
        for before, slot in enumerate(slots):
            place = places.get(slot, codes.get(slot.code))
            if place is None:
                continue
            self.values[place], self.times[place] = note.values[before], note.times[before]
            if slot in places:
                self.edges[place] = note.edges[before] if note.edges else False
                self.marks[place] = note.marks[before] if note.marks else NEVER
        self.derived_us = note.derived_us
        self.newest_us = max(self.derived_us, *self.times) if self.times else NEVER
        for row, window in zip(self.table.rows, self.windows, strict=True):
            if window is not None:
                kept = [each.step for each in steps.get(row.code, ()) if each.step_us == window.step_us]
                newest = max((step.number for step in kept), default=-1)
                window.restore(step for step in kept if step.number > newest - STEPS)

    def adopt(self, before: ObjectState) -> None:
        """Takes over from the state under an earlier version of the mapping."""
        note = decode_state(before.notes()[f"state/{self.object_id}"])
        steps = {
            row.code: [StepNote(window.step_us, step) for step in window.steps.values()]
            for row, window in zip(before.table.rows, before.windows, strict=True)
            if window is not None
        }
        self.restore(note, before.table.slots, steps)
        for window in self.windows:
            if window is not None:
                window.changed.update(window.steps)


def window_notes(notes: Mapping[str, bytes]) -> dict[int, dict[str, list[StepNote]]]:
    """Picks the notes of windows out of all notes, by object and code."""
    found: dict[int, dict[str, list[StepNote]]] = {}
    for name, body in notes.items():
        if not name.startswith("window/"):
            continue
        _, object_id, _, code = name.split("/", 3)
        found.setdefault(int(object_id), {}).setdefault(code, []).append(decode_step(body))
    return found


def empty_state(table: MappingTable) -> ObjectState:
    """A state in which a message is looked at alone; statistics and rows with an interval stay silent."""
    state = ObjectState(0, table)
    state.windows = [None if window is None else SilentWindow() for window in state.windows]
    state.marks = [2**63] * len(table.rows)
    return state
