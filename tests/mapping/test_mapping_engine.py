"""What the kinds of rows make of messages, case by case."""

from __future__ import annotations

import pytest
from mapping_rig import OBJECT, SECOND, T0, Stand

from terrazzo.mapping.effects import EventRaised, LabelClosed, LabelOpened


def sta(code, expression="", point=None, condition=None):
    row = [code, code, code, "STA", point or f"$AdapterID-1.{code}", expression]
    return row if condition is None else [*row, condition]


def func(code, expression, trigger="Changed", source=""):
    return [code, code, code, "FUNC", trigger, source, "@Expr", expression]


def evnt(code, condition, point="$AdapterID-1.T", expression=""):
    return [code, f"{code} en", f"{code} cn", "EVNT", point, expression, condition]


def stt(code, fn, of, window_s=60):
    return [code, code, code, "STT", "Changed", str(window_s), "", {"fn": fn, "of": of}]


def test_a_variable_is_recorded_when_it_changes():
    stand = Stand([sta("T", "x * 0.5"), sta("S")])
    assert stand.report({"T": 10, "S": "on"}) == {"T": 5.0, "S": "on"}
    assert stand.report({"T": 10, "S": "on"}, 1) is None
    assert stand.report({"T": 10, "S": "off"}, 2) == {"S": "off"}
    assert stand.report({"other": 1}, 3) is None
    assert stand.report({"T": None}, 4) == {"T": None}


def test_cycled_variables_are_recorded_with_each_report():
    stand = Stand([["T", "", "", "STA", "Cycled", "$AdapterID-1.T", "@Expr", ""], sta("S")])
    assert stand.report({"T": 1, "S": 1}) == {"T": 1, "S": 1}
    assert stand.report({"T": 1, "S": 1}, 1) == {"T": 1}


def test_true_is_not_one_though_they_are_equal():
    stand = Stand([sta("T")])
    assert stand.report({"T": 1}) == {"T": 1}
    assert stand.report({"T": True}, 1) == {"T": True}
    assert stand.report({"T": 1.0}, 2) == {"T": 1.0}
    assert stand.report({"T": 1}, 3) is None


def test_points_by_place_by_uid_and_nested():
    rows = [
        sta("A", "", "$AdapterID-2.a"),
        sta("B", "", "t1.b"),
        sta("C", "", "$AdapterID-1.deep.c"),
        sta("D", "", "t9.d"),
    ]
    stand = Stand(rows)
    assert stand.report({"a": 1, "b": 2, "deep": {"c": 3}, "d": 4}) == {"B": 2, "C": 3}
    assert stand.report({"a": 1, "b": 2}, 1, uid="t2") == {"A": 1}
    assert stand.report({"d": 1}, 2, uid="t9") is None
    assert stand.report({"deep": 7, "b": {"x": 1}}, 3) is None


def test_uids_with_dots():
    stand = Stand([sta("A", "", "plant.1.a"), sta("B", "", "plant.b")], terminals=["plant", "plant.1"])
    assert stand.report({"a": 1, "b": 2}, uid="plant.1") == {"A": 1}
    assert stand.report({"a": 1, "b": 2}, uid="plant") == {"B": 2}


def test_variables_from_variables_of_several_terminals():
    stand = Stand([func("SUM", "A + B"), sta("A"), sta("B", "", "$AdapterID-2.B"), func("TWICE", "SUM * 2")])
    assert stand.report({"A": 1}) == {"A": 1}
    assert stand.report({"B": 2}, 1, uid="t2") == {"B": 2, "SUM": 3, "TWICE": 6}
    assert stand.report({"A": 5}, 2) == {"A": 5, "SUM": 7, "TWICE": 14}


def test_an_interval_records_once_in_each():
    stand = Stand([sta("T"), func("M", "T", "Cycled", "10")])
    first = T0 // 1_000_000 % 10
    assert stand.report({"T": 1}) == {"T": 1, "M": 1}
    assert stand.report({"T": 1}, 9 - first) is None
    assert stand.report({"T": 2}, 10 - first) == {"T": 2, "M": 2}
    assert stand.report({"T": 3}, 19 - first) == {"T": 3}


def test_an_event_rises_once_and_again_after_it_fell():
    stand = Stand([evnt("HOT", "x > 80"), sta("M")])
    reports = [70, 81, 82, None, 90, 80, 85]
    raised = []
    for at_s, value in enumerate(reports):
        stand.report({"T": value}, at_s)
        raised.append(stand.events())
    assert raised == [[], ["HOT"], [], [], [], [], ["HOT"]]


def test_an_event_says_what_met_it():
    stand = Stand([evnt("HOT", "x > 80 and M == 1", expression="x * 10"), sta("M"), sta("T")])
    stand.report({"T": 85.5, "M": 1}, 2)
    (event,) = stand.effects()
    assert event == EventRaised(
        1, OBJECT, "t1", "HOT", "HOT en", "HOT cn", "855", "x > 80 and M == 1", "x=85.5, M=1", T0 + 2_000_000
    )


def test_an_event_turns_true_by_another_variable():
    stand = Stand([evnt("HOT", "x > 80 and M == 1"), sta("M", "", "$AdapterID-2.M")])
    stand.report({"T": 85})
    assert stand.events() == []
    stand.report({"M": 1}, 1, uid="t2")
    assert stand.events() == ["HOT"]


@pytest.mark.parametrize(
    ("function", "argument", "value", "key"),
    [
        ("@Compare", [">", 80], "80.5", "x > 80"),
        ("@Compare", '["<>", "on"]', "off", "x != 'on'"),
        ("@Compare", ["<=", "5"], 5, "x <= 5"),
        ("@Condition", "x % 2 == 1", 3, "x % 2 == 1"),
        ("==", "1", True, "x == 1"),
        ("==", "true", True, "x == 'true'"),
        ("==", "on", "on", "x == 'on'"),
        ("==", 1, "1.0", "x == 1"),
    ],
)
def test_events_of_eight_columns(function, argument, value, key):
    stand = Stand([["E", "", "", "EVNT", "Changed", "$AdapterID-1.T", function, argument]])
    stand.report({"T": value})
    (event,) = stand.effects()
    assert event.extension_key == key


def test_late_messages_make_records_of_their_own_and_change_nothing_newer():
    stand = Stand([sta("T"), sta("S"), func("D", "T + S"), evnt("HOT", "x > 80")])
    stand.report({"T": 1, "S": 1}, 10)
    assert stand.report({"T": 90, "S": 2}, 5) == {"T": 90, "S": 2, "D": 92}
    assert stand.report({"T": 7}, 6) == {"T": 7}
    assert stand.engine.state(OBJECT).variables() == {"T": 1, "S": 1, "D": 2}
    assert stand.events() == []
    assert stand.report({"T": 1, "S": 2}, 11) == {"S": 2, "D": 3}


def test_a_late_message_says_nothing_about_what_follows_from_statistics():
    stand = Stand([sta("T"), stt("N", "count", "T"), func("F", "T + N")])
    assert stand.report({"T": 5}, 10) == {"T": 5, "N": 1, "F": 6}
    assert stand.report({"T": 7}, 5) == {"T": 7}, "late: how many there were is not known by the message"
    assert stand.report({"T": 5}, 12) == {"N": 3, "F": 8}, "but it counts"


def test_a_terminal_behind_another_one_is_not_late():
    stand = Stand([sta("A"), sta("B", "", "$AdapterID-2.B"), evnt("HOT", "x > 80", "$AdapterID-1.A")])
    stand.report({"B": 1}, 100, uid="t2")
    assert stand.report({"A": 90}, 50) == {"A": 90}
    assert stand.events() == ["HOT"]


def test_rolling_statistics():
    codes = ["avg", "sum", "min", "max", "count", "delta"]
    stand = Stand([sta("T"), *[stt(fn.upper(), fn, "T") for fn in codes]])
    assert stand.report({"T": 4}) == {"T": 4, "AVG": 4, "SUM": 4, "MIN": 4, "MAX": 4, "COUNT": 1, "DELTA": 0}
    assert stand.report({"T": 8}, 10) == {"T": 8, "AVG": 6, "SUM": 12, "MAX": 8, "COUNT": 2, "DELTA": 4}
    assert stand.report({"T": 8}, 60) == {"AVG": 8, "SUM": 16, "MIN": 8, "DELTA": 0}, "the first one is out"
    assert stand.report({"T": 0}, 30) == {"T": 0}, "late"
    assert stand.report({"T": 8}, 61) == {"AVG": 6, "SUM": 24, "MIN": 0, "COUNT": 4}


def test_statistics_of_derived_variables_feed_others():
    stand = Stand([sta("T"), func("D", "T * 2"), stt("A", "avg", "D"), func("X", "A + 1")])
    assert stand.report({"T": 1}) == {"T": 1, "D": 2, "A": 2, "X": 3}


def test_collected_values():
    stand = Stand([sta("T"), ["C", "", "", "COL", "Changed", "water test", "", "x * 2"]])
    assert stand.report({"T": 1}) == {"T": 1}
    stand.catalogue.collected[OBJECT]["water test"] = 7
    assert stand.report({"T": 1}, 1) == {"C": 14}


def test_labels_open_and_close():
    stand = Stand([sta("RUN"), sta("MODE")])
    stand.retain(("RUN", "Running", "运行", "1", ""), ("MODE", "Defrost", "除霜", "3", "0"))
    for at_s, points in enumerate([{"RUN": 0, "MODE": 1}, {"RUN": 1, "MODE": 3}, {"RUN": "1.0"}, {"MODE": 2}]):
        stand.report(points, at_s)
    opened = stand.effects()
    assert [(type(effect), effect.code) for effect in opened] == [(LabelOpened, "RUN"), (LabelOpened, "MODE")]
    assert opened[0] == LabelOpened(1, OBJECT, "t1", 5, "r5", "RUN", "Running", "运行", "1", T0 + 1_000_000)
    stand.report({"RUN": None}, 5)
    assert stand.effects() == [], "null says nothing"
    stand.report({"RUN": 2, "MODE": 0}, 6)
    assert [(effect.code, effect.closed_us, effect.by_hand) for effect in stand.effects()] == [
        ("RUN", T0 + 6_000_000, False),
        ("MODE", T0 + 6_000_000, False),
    ]


def test_a_label_closed_by_hand_stays_closed_until_the_value_comes_back():
    stand = Stand([sta("RUN")])
    stand.retain(("RUN", "", "", "1", "0"))
    stand.report({"RUN": 1})
    stand.engine.close_label(OBJECT, 5, "RUN", T0 + 5)
    stand.report({"RUN": 1}, 1)
    effects = stand.effects()
    assert [type(effect) for effect in effects] == [LabelOpened, LabelClosed]
    assert effects[1].by_hand
    stand.report({"RUN": 0}, 2)
    stand.report({"RUN": 1}, 3)
    assert [type(effect) for effect in stand.effects()] == [LabelOpened]


def test_a_retainer_that_starts_looks_at_what_it_finds_and_one_that_stops_leaves_labels_open():
    stand = Stand([sta("RUN")])
    stand.report({"RUN": 1})
    stand.retain(("RUN", "", "", "1", "0"))
    stand.report({"RUN": 1}, 1)
    assert [type(effect) for effect in stand.effects()] == [LabelOpened]
    stand.retain(("RUN", "", "", "1", "0"), is_active=False)
    stand.report({"RUN": 0}, 2)
    assert stand.effects() == []
    assert stand.engine.open_labels(OBJECT) == 1
    stand.retain(("RUN", "", "", "1", "0"))
    stand.report({"RUN": 0}, 3)
    assert [type(effect) for effect in stand.effects()] == [LabelClosed]


def test_deleting_a_retainer_or_an_object_closes_its_labels_and_forgets():
    stand = Stand([sta("RUN"), stt("A", "avg", "RUN")])
    stand.retain(("RUN", "", "", "1", "0"))
    stand.retain(("RUN", "", "", "1", "0"), number=6)
    stand.report({"RUN": 1})
    assert len(stand.effects()) == 2
    stand.engine.drop_retainer(6, T0)
    assert [(type(effect), effect.project_id) for effect in stand.effects()] == [(LabelClosed, 6)]
    assert set(stand.notes) >= {f"state/{OBJECT}", f"labels/{OBJECT}"}
    stand.engine.drop_object(OBJECT, T0)
    assert [(type(effect), effect.project_id) for effect in stand.effects()] == [(LabelClosed, 5)]
    assert [name for name in stand.notes if not name.startswith("layout/")] == []
    assert stand.report({"RUN": 0}, 1) is None


def test_a_changed_mapping_is_in_force_with_the_next_message_and_keeps_what_is_the_same():
    rows = [sta("T"), sta("S"), evnt("HOT", "x > 80"), stt("C", "count", "T")]
    stand = Stand(rows)
    stand.report({"T": 90, "S": 1})
    assert stand.events() == ["HOT"]
    stand.map([sta("N", "", "$AdapterID-1.S"), *rows])
    assert stand.report({"T": 91, "S": 1}, 1) == {"N": 1, "T": 91, "C": 2}
    assert stand.events() == [], "the edge is remembered"
    stand.map([evnt("HOT", "x > 85"), sta("T", "x + 1")])
    assert stand.report({"T": 91, "S": 2}, 2) == {"T": 92}
    assert stand.events() == ["HOT"], "another condition is another edge"
    stand.place(terminals=("t2", "t1"))
    assert stand.report({"T": 1}, 3) is None
    assert stand.report({"T": 1}, 4, uid="t2") == {"T": 2}
    stand.place(is_available=False)
    assert stand.report({"T": 5}, 5, uid="t2") is None


def test_everything_is_there_after_a_restart():
    rows = [sta("T"), func("D", "T * 2"), evnt("HOT", "x > 80"), stt("C", "count", "T"), func("M", "T", "Cycled", "10")]
    script = ("T", "", "", "90", "0")
    stand = Stand(rows)
    stand.retain(script)
    stand.report({"T": 90})
    assert len(stand.effects()) == 2
    again = stand.restart(rows)
    again.retain(script)
    assert again.engine.state(OBJECT).variables() == {"T": 90, "D": 180, "C": 1, "M": 90}
    assert again.report({"T": 90}, 1) == {"C": 2}
    assert again.effects() == []
    assert again.report({"T": 1}, 0.5) == {"T": 1, "D": 2}, "late"
    assert again.report({"T": 0}, 2) == {"T": 0, "D": 0, "C": 4}
    assert [type(effect) for effect in again.effects()] == [LabelClosed]


def test_a_restart_under_a_changed_mapping_keeps_what_is_the_same():
    rows = [sta("T"), evnt("HOT", "x > 80"), evnt("COLD", "x < 5")]
    stand = Stand(rows)
    stand.report({"T": 90})
    assert stand.events() == ["HOT"]
    again = stand.restart([sta("NEW"), *rows[::-1]])
    again.report({"T": 91, "NEW": 1}, 1)
    assert again.events() == []
    assert len([name for name in again.notes if name.startswith("layout/")]) == 2
    third = again.restart(rows)
    third.effects()
    assert len([name for name in third.notes if name.startswith("layout/")]) == 1, "unused ones go"


def test_what_is_kept_of_objects_that_are_gone_is_forgotten():
    stand = Stand([sta("T")])
    stand.report({"T": 1})
    again = stand.restart([sta("T")])
    again.catalogue.drop_object(OBJECT)
    assert again.engine.catalogue.unknown() == []
    lost = Stand.__new__(Stand)
    lost.engine, lost.notes = type(stand.engine)(), dict(stand.notes)
    lost.engine.load(lost.notes)
    lost.engine.forget_unknown(T0)
    lost.effects()
    assert [name for name in lost.notes if name.startswith("state/")] == []


def test_labels_of_a_script_that_was_deleted_meanwhile_close_at_the_start() -> None:
    rows = [["RUN", "", "", "STA", "$AdapterID-1.run", ""]]
    stand = Stand(rows)
    stand.retain(("RUN", "on", "on", "1", "0"))
    stand.report({"run": 1})
    again = stand.restart(rows)
    again.engine.forget_unknown(T0 + SECOND)
    (closed,) = again.effects()
    assert isinstance(closed, LabelClosed)
    assert (closed.code, closed.closed_us, closed.by_hand) == ("RUN", T0 + SECOND, False)
    assert again.engine.open_labels(OBJECT) == 0
