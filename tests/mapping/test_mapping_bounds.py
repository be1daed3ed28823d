"""What one message may take in the mapping: names, texts, records and time are bounded, and said to be."""

from __future__ import annotations

import json
import time

import msgspec
import pytest
from mapping_rig import Stand

from terrazzo.domain.payload import PointLimits, Reject, check_nested, decode, flatten, take_points
from terrazzo.expressions.functions import as_number
from terrazzo.mapping.catalogue import MappingLimits
from terrazzo.mapping.dry_run import Sample, try_mapping
from terrazzo.mapping.effects import EventRaised
from terrazzo.mapping.engine import EVENT_CHARS, MappingEngine

LIMITS = PointLimits(name_chars=20, points=10, text_chars=50)


def test_events_cost_what_they_name_and_not_what_the_object_has():
    variables = [[f"V{n}", "", "", "STA", f"t1.p{n}", ""] for n in range(500)]
    events = [[f"E{n}", "", "", "EVNT", "", "", f"V{n} > 0 and V0 > 0"] for n in range(500)]
    stand = Stand(variables + events)
    stand.report({f"p{n}": 0 for n in range(500)}, 0)
    spent_s = []
    for second in range(1, 7):
        points = {f"p{n}": second % 2 for n in range(500)}
        began_s = time.thread_time()
        stand.report(points, second)
        spent_s.append(time.thread_time() - began_s)
    raised = stand.events()
    assert len(raised) == 1_500, "each of them three times"
    assert min(spent_s[0::2]) < 0.015, "what raises all of them"


def test_an_event_says_what_met_it():
    stand = Stand(
        [
            ["A", "", "", "STA", "t1.a", ""],
            ["N", "", "", "STA", "t1.none", ""],
            ["E1", "", "", "EVNT", "t1.b", "", "x > 5 and A > 1"],
            ["E2", "", "", "EVNT", "t1.b", "x * A", "x > 5"],
            ["E3", "", "", "EVNT", "", "", "A > 1 or N > 1"],
            ["E4", "", "", "EVNT", "", "A + 1", "A > 1"],
        ]
    )
    stand.report({"a": 2, "b": 6}, 1)
    effects = {each.code: (each.value, each.extension_value) for each in stand.effects()}
    assert effects == {"E1": ("6", "x=6, A=2"), "E2": ("12", "6"), "E3": ("2", "A=2, N="), "E4": ("3", "2")}


def test_texts_of_an_event_are_cut():
    rows = [["A", "", "", "STA", "t1.a", ""], ["B", "", "", "STA", "t1.b", ""]]
    rows += [["E", "", "", "EVNT", "", "", "A != 'x' and B != 'x'"], ["F", "", "", "EVNT", "t1.a", "", "x != ''"]]
    stand = Stand(rows)
    stand.report({"a": "a" * 4_000, "b": "b" * 4_000}, 1)
    events = [each for each in stand.effects() if isinstance(each, EventRaised)]
    assert len(events) == 2
    assert all(len(each.value) <= EVENT_CHARS and len(each.extension_value) <= EVENT_CHARS for each in events)


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ({"a" * 10: {"b" * 10: 1}}, "bbbbbbbbbb: a point's name is longer than 20 characters with the objects around"),
        ({"a": {"b": {"c" * 17: 1}}}, "longer than 20 characters"),
        ({"o": {}, "a" * 21: 1}, "longer than 20 characters"),
        ({"o": {str(n): n for n in range(10)}}, "more than 10 points and objects"),
        ({str(n): {} for n in range(11)}, "more than 10 points and objects"),
    ],
)
def test_what_would_grow_when_it_is_flat_is_refused(points, reason):
    for refuse in (flatten, check_nested):
        with pytest.raises(Reject, match=reason):
            refuse(points, LIMITS)


def test_what_fits_is_flat_and_a_flat_payload_is_left_alone():
    nested = {"a": {"b" * 18: 1}, "c": {}, "d": {"e": {"f": 2}}}
    check_nested(nested, LIMITS)
    assert flatten(nested, LIMITS) == {"a." + "b" * 18: 1, "d.e.f": 2}
    long = {"n" * 1_000: 1} | {str(n): n for n in range(100)}
    assert flatten(long, LIMITS) is long


def test_a_long_name_around_many_points_takes_no_memory():
    payload = json.dumps({"n" * 60_000: {str(n): 0 for n in range(15_000)}}).encode()
    with pytest.raises(Reject, match="longer than 1024 characters"):
        take_points(payload)


def test_a_text_that_no_variable_takes_is_null_in_it():
    payload = json.dumps({"a": "x" * 51, "o": {"b": "y" * 50, "c": "z" * 51}}).encode()
    assert take_points(payload, LIMITS) == {"a": None, "o.b": "y" * 50, "o.c": None}
    assert take_points(msgspec.msgpack.encode(decode(payload)), LIMITS) == {"a": None, "o.b": "y" * 50, "o.c": None}


def test_a_text_that_was_collected_is_bounded_too():
    stand = Stand([["C", "", "", "COL", "p", ""]])
    stand.engine.collect(17, {"p": "x" * 4_097}, 1, 1)
    assert stand.catalogue.bound(17).state.value("C") is None
    stand.engine.collect(17, {"p": "x" * 4_096}, 2, 2)
    assert len(stand.catalogue.bound(17).state.value("C")) == 4_096


def test_a_record_beyond_the_limit_is_refused_with_the_limits_name():
    engine = MappingEngine(MappingLimits(mosaic_bytes=1_024))
    stand = Stand([[f"V{n}", "", "", "STA", "t1.a", ""] for n in range(20)])
    stand.engine, engine.catalogue = engine, engine.catalogue
    stand.map([[f"V{n}", "", "", "STA", "t1.a", ""] for n in range(20)])
    stand.place()
    with pytest.raises(ValueError, match=r"object 17.*limits.mosaic_bytes is 1024"):
        stand.report({"a": "x" * 100}, 1)


def test_a_trial_knows_the_same_limits():
    rows = [["A", "", "", "STA", "t1.a", ""]]
    limits = MappingLimits(points=LIMITS)
    trial = try_mapping(rows, ["t1"], [Sample("t1", {"a": "x" * 51}, 1)], limits)
    assert trial.variables == {}
    with pytest.raises(Reject, match="longer than 20 characters"):
        try_mapping(rows, ["t1"], [Sample("t1", {"a" * 20: {"b": 1}}, 1)], limits)


def test_long_texts_are_no_numbers():
    assert as_number("9" * 400) is None, "beyond what a float holds"
    assert as_number("0." + "1" * 300) == pytest.approx(1 / 9)
    began_s = time.thread_time()
    for _ in range(1_000):
        assert as_number(" " * 200_000 + "1") is None
    assert time.thread_time() - began_s < 0.05
