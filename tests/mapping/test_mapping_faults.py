"""A message that goes wrong for an object leaves it as it was before, and keeps nothing from others."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import msgspec
import pytest
from mapping_rig import OBJECT, T0, Stand

from terrazzo.mapping.engine import Unmapped
from terrazzo.ports.store import Record

POISON = object()
"""A value that no record and no note can hold; what its like might be in years to come, nobody knows."""

ROWS = [
    ["A", "", "", "STA", "t1.a", ""],
    ["B", "", "", "STA", "t1.b", ""],
    ["S", "", "", "FUNC", "", "A + 1"],
    ["MEAN", "", "", "STT", "600", '{"fn": "avg", "of": "A"}'],
    ["EACH", "", "", "FUNC", "Cycled", "3600", "@Expr", "A * 2"],
    ["E", "E", "", "EVNT", "", "", "A > 5"],
    ["P", "P", "", "EVNT", "t1.b", "", "x == 77"],
]
TWO = 18


class Group(Stand):
    """As ``Stand``, with the records of a group's reports, as the ingest keeps them."""

    def __init__(self, rows: Any = ROWS) -> None:
        super().__init__(rows, terminals=("t1",))
        self.place(TWO)
        self.retain(("A", "high", "", "9", "1"))
        self.begin()

    def begin(self) -> None:
        self.reports: list[Record] = []
        self.engine.begin(self.reports)

    def feed(self, points: dict[str, Any], at_s: float) -> list[Record]:
        body = msgspec.json.encode({name: None if value is POISON else value for name, value in points.items()})
        self.catalogue.plans("t1")  # asked for first, as the ingest does
        self.reports.append(Record("g/t1#7/r", T0 + round(at_s * 1e6), body))
        return self.take("t1", points, at_s)

    def poison(self, at_s: float, **points: Any) -> None:
        with pytest.raises(Unmapped):
            self.feed({"a": 100, "b": POISON, **points}, at_s)

    def commit(self) -> list[Any]:
        effects = self.effects()
        self.begin()
        return effects

    def everything(self) -> Any:
        """All that is known of both objects, as it would be written."""
        found = {}
        for object_id in (OBJECT, TWO):
            state = self.engine.state(object_id)
            windows = [None if each is None else (dict(each.steps), each._newest) for each in state.windows]
            own = (state.values, state.times, state.edges, state.marks, state.derived_us, state.newest_us)
            found[object_id] = msgspec.msgpack.encode((own, [window and str(window) for window in windows]))
            found[-object_id] = self.catalogue.labels[object_id].note()
        return found


def story(group: Group, *, poisoned: bool) -> list[Any]:
    """The same messages, with or without some between them that go wrong; what each makes, and what happens."""
    made: list[Any] = []
    for second, a in enumerate((1, 9, 9, 2, 7, 1, 9, 3, 8)):
        if poisoned:
            group.poison(second + 0.5)
        made.append(group.feed({"a": a, "b": second}, second + 1))
        if poisoned and second % 2:
            group.poison(second + 1)
        if second in (2, 5):
            made.append(group.commit())
            if poisoned:
                group.poison(second + 1.2, a=-1)
    if poisoned:
        group.poison(4_000)
        group.poison(0.1, a=500)
    made.append(group.everything())
    made.append(group.commit())
    return made


def test_objects_are_as_if_what_went_wrong_had_never_been():
    assert story(Group(), poisoned=True) == story(Group(), poisoned=False)


def test_the_other_object_of_the_terminal_goes_on():
    group = Group([["A", "", "", "STA", "t1.a", ""]])
    group.catalogue.put_mapping(4, [["A", "", "", "STA", "t1.a", ""], ["B", "", "", "STA", "t1.b", ""]])
    group.place(OBJECT, mapping_id=4)
    group.feed({"a": 1, "b": 1}, 1)
    with pytest.raises(Unmapped) as raised:
        group.feed({"a": 2, "b": POISON}, 2)
    assert list(raised.value.faults) == [OBJECT]
    assert group.engine.state(OBJECT).value("A") == 1
    assert group.engine.state(TWO).value("A") == 2
    assert group.engine.stats.faults == 1


def test_what_is_noticed_only_when_it_is_written_is_taken_back():
    """The point of an event is in no record, only in the state."""
    group, plain = Group(), Group()
    for each in (group, plain):
        each.feed({"a": 1, "b": 1}, 1)
        each.commit()
        each.feed({"a": 2, "b": 2}, 2)
    state = group.engine.state(OBJECT)
    state.values[state.table.places["P"]] = POISON
    group.feed({"a": 3}, 3)
    plain.feed({"a": 3}, 3)
    other = group.engine.state(TWO).value("A")
    effects = group.commit()
    plain.commit()
    assert group.notes.keys() == plain.notes.keys()
    assert group.engine.stats.faults > 0
    assert group.engine.state(OBJECT).value("A") == other == 3
    assert group.everything() == plain.everything()
    assert effects == []
    group.feed({"a": 6}, 4)
    assert [each.code for each in group.commit()] == ["E", "E"], "both objects go on"


def test_integers_that_grow_beyond_what_a_note_holds_are_floats():
    group = Group([["A", "", "", "STA", "t1.a", ""], ["N", "", "", "STT", "600", '{"fn": "sum", "of": "A"}']])
    for second in range(5):
        assert len(group.feed({"a": 9_223_372_036_854_775_807 - second}, second)) == 2
    group.commit()
    assert group.engine.state(OBJECT).value("N") == pytest.approx(4.6e19, rel=0.01)
    assert group.engine.stats.faults == 0


def test_a_label_that_was_closed_by_hand_stays_closed_after_a_fault():
    group = Group()
    group.feed({"a": 9, "b": 0}, 1)
    group.engine.close_label(OBJECT, 5, "A", T0 + 2_000_000)
    group.poison(3)
    assert group.engine.open_labels(OBJECT) == 0
    group.feed({"a": 9, "b": 0}, 4)
    assert group.engine.open_labels(OBJECT) == 0
    group.commit()


def test_what_was_collected_meanwhile_stays():
    group = Group([["A", "", "", "STA", "t1.a", ""], ["B", "", "", "STA", "t1.b", ""], ["C", "", "", "COL", "p", ""]])
    group.feed({"a": 1, "b": 1}, 1)
    group.engine.collect(OBJECT, {"p": 42}, T0, T0)
    group.feed({"a": 2, "b": 1}, 2)
    group.poison(3)
    state = group.engine.state(OBJECT)
    assert (state.value("A"), state.value("C")) == (2, 42)


def test_what_cannot_be_used_of_one_objects_collected_data_stops_nothing():
    group = Group([["C", "", "", "COL", "p", ""]])
    group.engine.collect(OBJECT, {"p": 1}, 1, 1)
    group.engine.collect(OBJECT, {"p": POISON}, 2, 2)  # type: ignore[dict-item]
    assert group.engine.state(OBJECT).value("C") == 1
    group.engine.collect(TWO, {"p": 3}, 3, 3)
    assert group.engine.state(TWO).value("C") == 3


def test_few_messages_run_again_however_many_a_group_has():
    group = Group()
    runs = 0
    for second in range(2_000):
        group.feed({"a": second % 7, "b": 0}, second)
        group.engine.keep_up(group.catalogue.plans("t1"), 1)
    repeat = group.engine._repeat

    def counted(*given: Any) -> None:
        nonlocal runs
        runs += 1
        repeat(*given)

    group.engine._repeat = counted  # type: ignore[method-assign]
    group.poison(3_000)
    assert 0 < runs <= 2 * 501
    runs = 0
    group.poison(3_001)
    assert runs == 0, "it is saved where it was found"


def test_a_plan_that_cannot_be_made_keeps_nothing_from_other_objects(monkeypatch):
    group = Group()
    group.catalogue.put_mapping(4, ROWS[:2])
    group.place(OBJECT, mapping_id=4)
    bound = group.catalogue.bound(OBJECT)
    assert bound is not None
    table = bound.state.table
    group.place(OBJECT, mapping_id=4, company_id=2)
    monkeypatch.setattr(type(table), "bind", lambda self, terminals: {"t1": {0: "a"}} if self is not table else 1 / 0)
    assert [plan.bound.object_id for plan in group.catalogue.plans("t1")] == [TWO]


def test_a_report_that_is_no_object_runs_again_as_it_was_read() -> None:
    """After a fault an object is made again of the group's reports: of what was read of them, not of their bodies."""
    told = []
    for poisoned in (False, True):
        group = Group()
        for at_s, points in ((1, {"a": 3, "b": 1}), (2, {"a": 7, "b": 2})):
            report = Record("g/t1#7/r", T0 + at_s * 1_000_000, b"[3, 1]")
            group.catalogue.plans("t1")
            group.reports.append(report)
            group.engine.note_read(report, points)
            group.take("t1", points, at_s)
        if poisoned:
            group.poison(3)
        told.append((group.everything(), [each.code for each in group.commit()]))
    assert told[0] == told[1]
    assert msgspec.msgpack.decode(told[0][0][OBJECT])[0][0][:3] == [7, 2, 8]


def test_nobody_keeps_what_was_committed() -> None:
    class Reports(list[Record]):
        """One that says when it is gone."""

    group = Group()
    group.reports = Reports()
    group.engine.begin(group.reports)
    for number in range(600):
        group.feed({"a": number % 5, "b": 1}, number)
    group.engine.keep_up(group.catalogue.plans("t1"), 600)
    kept = weakref.ref(group.reports)
    group.commit()
    gc.collect()
    assert kept() is None, "objects that were saved in that group don't hold on to its reports"
    group.poison(700)
    assert group.feed({"a": 4}, 701)
