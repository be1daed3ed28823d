"""Labels of a range made anew: at its edges, and where somebody closed one by hand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from terrazzo.mapping.effects import LabelOpened
from terrazzo.mapping.replay.label_merge import (
    Changes,
    Interval,
    Range,
    divided,
    is_outdated,
    merge_labels,
    openings,
    still_open,
)

Row = dict[str, Any]


def found(opened: int, closed: int | None, code: str = "A") -> Interval:
    return Interval(LabelOpened(1, 17, "t", 5, "r5", code, "en", "cn", "1", opened), closed)


def row(opened: int, closed: int | None, *, by_hand: int = 0, number: int = 1, code: str = "A") -> Row:
    texts = {"terminal_id": "t", "class_id": "r5", "code": code, "label_en": "en", "label_cn": "cn", "value": "1"}
    times = {"opened_at": opened, "created": opened, "close_at": closed, "by_hand": by_hand}
    more = {"reference": "", "is_available": 1}
    return {"id": number, "company_id": 1, "object_id": 17, "project_id": 5, **texts, **times, **more}


def applied(rows: Sequence[Row], changes: Changes) -> list[Row]:
    after = [{**each, **changes.updates.get(each["id"], {})} for each in rows if each["id"] not in changes.deletes]
    number = max((each["id"] for each in rows), default=0)
    for place, new in enumerate(changes.inserts, 1):
        after.append({"reference": "", "is_available": 1, **new, "id": number + place})
    return sorted(after, key=lambda each: each["opened_at"])


def spans(rows: Sequence[Row]) -> list[tuple[int, int | None, int]]:
    return [(each["opened_at"], each["close_at"], each["by_hand"]) for each in rows]


PAST = Range(100, 200)
NOW = Range(100, None)

CASES = [
    ("a new one", PAST, [], [found(110, 120)], [(110, 120, 0)]),
    ("the same", PAST, [row(110, 120)], [found(110, 120)], [(110, 120, 0)]),
    ("closes later", PAST, [row(110, 120)], [found(110, 130)], [(110, 130, 0)]),
    ("gone", PAST, [row(110, 120)], [], []),
    ("two at once, of one", PAST, [row(110, 120)], [found(110, 110), found(110, 120)], [(110, 110, 0), (110, 120, 0)]),
    ("one, of two at once", PAST, [row(110, 110), row(110, 120, number=2)], [found(110, 120)], [(110, 120, 0)]),
    ("others stay", PAST, [row(10, 99), row(201, None, number=2)], [], [(10, 99, 0), (201, None, 0)]),
    ("began before, ends within", PAST, [row(50, 150)], [found(40, 140)], [(50, 140, 0)]),
    ("was not open when it began", PAST, [row(50, 150)], [], [(50, 100, 0)]),
    ("was open when it began, and nobody knew", PAST, [], [found(50, 150)], [(100, 150, 0)]),
    ("goes on behind the end", PAST, [row(150, 250)], [found(160, None)], [(160, 250, 0)]),
    ("goes on and is open", PAST, [row(150, None)], [found(150, None)], [(150, None, 0)]),
    ("nobody knew that it goes on", PAST, [], [found(150, None)], [(150, 200, 0)]),
    ("what is behind the end stays", PAST, [row(150, None)], [], [(201, None, 0)]),
    ("closed within, known behind the end", PAST, [row(150, None)], [found(150, 160)], [(150, 160, 0), (201, None, 0)]),
    ("all the time", PAST, [row(50, None)], [found(40, None)], [(50, None, 0)]),
    ("all the time, and never", PAST, [row(50, None)], [], [(50, 100, 0), (201, None, 0)]),
    ("twice", PAST, [row(50, None)], [found(40, 120), found(150, None)], [(50, 120, 0), (150, None, 0)]),
    ("up to now", NOW, [row(110, 120), row(130, None, number=2)], [found(110, None)], [(110, None, 0)]),
    ("up to now, from before", NOW, [row(50, None)], [found(50, None)], [(50, None, 0)]),
    ("by hand", PAST, [row(110, 115, by_hand=1)], [found(110, 130)], [(110, 115, 1)]),
    ("by hand, before it began", PAST, [row(50, 60, by_hand=1)], [found(50, 150)], [(50, 60, 1)]),
    ("by hand, up to now", NOW, [row(110, 115, by_hand=1)], [found(110, None)], [(110, 115, 1)]),
    ("by hand, began before", PAST, [row(50, 115, by_hand=1)], [found(50, None)], [(50, 115, 1)]),
]


@pytest.mark.parametrize(
    ("span", "rows", "intervals", "expected"), [pytest.param(*case, id=name) for name, *case in CASES]
)
def test_what_becomes_of_rows(
    span: Range, rows: list[Row], intervals: list[Interval], expected: list[tuple[int, int | None, int]]
) -> None:
    once = applied(rows, merge_labels(rows, intervals, span))
    assert spans(once) == expected
    assert merge_labels(once, intervals, span) == Changes(), "a second time changes nothing"


def test_a_label_that_occurs_again_keeps_its_row_and_takes_its_words() -> None:
    before = [{**row(110, 120, number=9), "label_en": "old", "reference": "kept"}]
    after = applied(before, merge_labels(before, [found(110, 120)], PAST))
    assert [(each["id"], each["label_en"], each["reference"]) for each in after] == [(9, "en", "kept")]


def test_what_is_open_at_the_end_and_was_not_closed_by_hand() -> None:
    rows = [row(110, 115, by_hand=1), row(110, None, code="B", number=2)]
    intervals = [found(110, None), found(110, None, "B"), found(110, 120, "C")]
    assert still_open(rows, intervals) == {(5, "B")}


@st.composite
def disjoint(draw: Any) -> list[tuple[int, int | None]]:
    """Spans of one label, in order, some at once; the last one may be open."""
    times = sorted(draw(st.lists(st.integers(0, 300) | st.sampled_from([0, 100, 150, 200, 201, 300]), max_size=8)))
    pairs: list[tuple[int, int | None]] = list(zip(times[::2], times[1::2], strict=False))
    if len(times) % 2:
        pairs.append((times[-1], None))
    return pairs


@given(known=disjoint(), replayed=disjoint(), to_now=st.booleans(), hands=st.sets(st.integers(0, 3)))
def test_any_replay_is_idempotent_leaves_the_outside_and_never_overlaps(
    known: list[tuple[int, int | None]], replayed: list[tuple[int, int | None]], to_now: bool, hands: set[int]
) -> None:
    span, rows, intervals = _case(known, replayed, to_now, hands)
    asked = _asked(rows, span)
    once = applied(rows, merge_labels(asked, intervals, span))
    again = _asked(once, span)
    assert merge_labels(again, intervals, span) == Changes()
    for left, right in pairwise(once):
        assert left["close_at"] is not None
        assert left["close_at"] <= right["opened_at"]
    for moment in (*range(99), *(range(202, 320) if not to_now else ())):
        assert _open_at(rows, moment) == _open_at(once, moment)
    if not to_now:
        assert [each["close_at"] for each in once[-1:] if each["close_at"] is None] == [
            None for each in rows if each["close_at"] is None
        ], "what is open now stays so: whoever holds it open will close it"


@given(known=disjoint(), replayed=disjoint(), to_now=st.booleans(), hands=st.sets(st.integers(0, 3)))
def test_what_goes_whatever_else_is_there_may_go_before_the_rest_is_merged(
    known: list[tuple[int, int | None]], replayed: list[tuple[int, int | None]], to_now: bool, hands: set[int]
) -> None:
    span, rows, intervals = _case(known, replayed, to_now, hands)
    asked = _asked(rows, span)
    whole = merge_labels(asked, intervals, span)
    found = openings(intervals, span)
    outdated = {each["id"] for each in asked if is_outdated(each, found, span)}
    assert outdated <= set(whole.deletes)
    rest = merge_labels([each for each in asked if each["id"] not in outdated], intervals, span)
    assert (rest.updates, rest.inserts) == (whole.updates, whole.inserts)
    assert {*rest.deletes, *outdated} == set(whole.deletes)


@given(
    known=disjoint(),
    replayed=disjoint(),
    to_now=st.booleans(),
    hands=st.sets(st.integers(0, 3)),
    most=st.integers(1, 3),
)
@example(known=[(0, 0), (0, 101)], replayed=[(0, 0), (0, 100), (101, None)], to_now=False, hands={1}, most=1)
def test_parts_of_a_label_make_what_the_whole_makes(
    known: list[tuple[int, int | None]],
    replayed: list[tuple[int, int | None]],
    to_now: bool,
    hands: set[int],
    most: int,
) -> None:
    span, rows, intervals = _case(known, replayed, to_now, hands)
    whole = applied(rows, merge_labels(_asked(rows, span), intervals, span))
    made, is_open = rows, set[Any]()
    parts = divided(intervals, span, most, {each["close_at"] for each in rows if each["by_hand"]})
    for part, some in parts:
        is_open |= still_open(_asked(made, part), some)
        made = applied(made, merge_labels(_asked(made, part), some, part))
    assert spans(made) == spans(whole)
    assert is_open == still_open(_asked(rows, span), intervals)
    assert [parts[0][0].start_us, parts[-1][0].end_us] == [span.start_us, span.end_us]
    assert all(
        left.end_us is not None and left.end_us + 1 == right.start_us for (left, _), (right, _) in pairwise(parts)
    )
    assert [each for _, some in parts for each in some] == sorted(intervals, key=lambda each: each.opened.opened_us)


def _case(
    known: list[tuple[int, int | None]], replayed: list[tuple[int, int | None]], to_now: bool, hands: set[int]
) -> tuple[Range, list[Row], list[Interval]]:
    """The rows of one label, some of which somebody closed by hand, and what a replay of the range finds of it."""
    end = 10**6 if to_now else 200
    rows = [
        row(opened, closed, number=number, by_hand=int(closed is not None and number in hands))
        for number, (opened, closed) in enumerate(known)
    ]
    intervals = [
        found(opened, None if closed is None or closed > end else closed)
        for opened, closed in replayed
        if opened <= end and (closed is None or closed >= 100)
    ]
    return (NOW if to_now else PAST), rows, intervals


def _asked(rows: Sequence[Row], span: Range) -> list[Row]:
    return [each for each in rows if each["by_hand"] or _reaches(each, span)]


def _reaches(each: Row, span: Range) -> bool:
    begins = span.end_us is None or each["opened_at"] <= span.end_us
    return begins and (each["close_at"] is None or each["close_at"] >= span.start_us)


def _open_at(rows: Sequence[Row], moment: int) -> bool:
    return any(each["opened_at"] <= moment and (each["close_at"] is None or moment < each["close_at"]) for each in rows)
