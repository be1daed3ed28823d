"""How far a replay looks back: until all is known, a year at most; and what it knows then is right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay_stand import PLAIN, SECOND, T0, Stand

from terrazzo.domain.mapping_table import parse_table
from terrazzo.mapping.catalogue import MappingCatalogue, ObjectSpec, RetainerSpec
from terrazzo.mapping.replay.completeness import rounds, worded
from terrazzo.mapping.replay.rerun import Rerun
from terrazzo.ports.store import Record

SCRIPT = [
    ["A", "", "", "STA", "$AdapterID-1.A", ""],
    ["B", "", "", "STA", "$AdapterID-2.B", "x + A"],
    ["C", "", "", "STA", "$AdapterID-1.C", "x * 2 if B > 3 else A"],
    ["SUM", "", "", "FUNC", "Changed", "", "@Expr", "A + C"],
    ["SLOW", "", "", "FUNC", "Cycled", "20", "@Expr", "A - B"],
    ["N", "", "", "STT", "Changed", "60", "", {"fn": "sum", "of": "A"}],
    ["HIGH", "", "", "EVNT", "$AdapterID-1.A", "", "x > 2 and B > 3"],
    ["ODD", "", "", "EVNT", "Changed", "C", "@Condition", "C % 2 == 1"],
]
PROMPT = [row for row in SCRIPT if row[0] in ("A", "B", "C", "SUM")]
"""Nothing that lasts: known as soon as the points were reported often enough."""
RULES = (("A", "a", "a", "1", ""), ("B", "b", "b", "4", "2"))

values = st.sampled_from([0, 1, 2, 3, 4, None, "text"])
first = st.dictionaries(st.sampled_from("AC"), values, min_size=1)
second = st.fixed_dictionaries({"B": values})
bodies = st.one_of(st.tuples(st.just("t1"), first), st.tuples(st.just("t2"), second))
stories = st.lists(st.tuples(st.integers(1, 30), bodies), min_size=60, max_size=150)


def rerun(script: list[Any], rules: Any = RULES) -> Rerun:
    catalogue = MappingCatalogue()
    catalogue.put_mapping(1, script)
    catalogue.put_object(ObjectSpec(id=1, company_id=1, mapping_id=1, terminals=("t1", "t2")))
    catalogue.put_retainer(RetainerSpec(id=5, uid="r", objects=(1,), script=rules, is_active=True))
    return Rerun(catalogue, 1)


def records(story: list[Any]) -> list[Record]:
    found, at_s = [], 0
    for gap_s, (uid, points) in story:
        at_s += gap_s
        found.append(Record(f"g/{uid}/r", T0 + at_s * SECOND, json.dumps(points).encode()))
    return found


def stand(run: Rerun) -> Any:
    """What a run knows, apart from when labels opened that opened before it began."""
    state, labels = run.state()
    assert state is not None
    standings = {key: (each.matched, each.opened_us is None) for key, each in labels.standings.items()}
    return state.values, state.edges, standings, state.derived_us


@settings(max_examples=80, deadline=None)
@given(script=st.sampled_from([SCRIPT, PROMPT]), story=stories, skipped=st.integers(0, 60), more=st.integers(0, 20))
def test_what_is_known_is_as_if_all_had_been_read(script: list[Any], story: list[Any], skipped: int, more: int) -> None:
    rules = RULES if script is SCRIPT else ()
    whole, part = rerun(script, rules), rerun(script, rules)
    reports = records(story)
    for place, report in enumerate(reports):
        whole.take(report)
        if place >= skipped:
            part.take(report)
            if part.is_known and place >= skipped + more:
                break
    else:
        return
    assert [whole.begin() is not None, part.begin()] == [True, []]
    assert stand(part) == stand(whole)
    for report in reports[place + 1 :]:
        whole.take(report)
        part.take(report)
        assert part.gather() == whole.gather()
    assert stand(part) == stand(whole)
    assert part.outcome().events == whole.outcome().events


def test_it_does_become_known() -> None:
    run = rerun(SCRIPT)
    story = [(7, ("t1", {"A": n % 3, "C": n % 5})) if n % 2 else (7, ("t2", {"B": n % 4})) for n in range(200)]
    after = 0
    for report in records(story):
        run.take(report)
        after += 1
        if run.is_known:
            break
    assert 10 < after < 199


@pytest.mark.parametrize(
    ("script", "wanted"),
    [
        (PLAIN, 1),
        (SCRIPT, 3),
        ([["A", "", "", "STA", "$AdapterID-1.A", "x + A"]], None),
        ([["A", "", "", "STA", "$AdapterID-1.A", "B"], ["B", "", "", "FUNC", "Changed", "", "@Expr", "A"]], None),
    ],
)
def test_how_often_points_have_to_come(script: list[Any], wanted: int | None) -> None:
    assert rounds(parse_table(script)) == wanted


def test_what_is_missing_is_said_in_short() -> None:
    assert worded(["A", "B"]) == "A, B"
    assert worded([f"V{n}" for n in range(12)], 2) == "V0, V1 and 10 more"


DAY_S = 86_400


async def sent(stand: Stand, *reports: tuple[float, str, dict[str, Any]]) -> None:
    """To the store only: reports of years ago need no mapping of their time."""
    rows = [
        Record(f"g/{uid}/r", T0 + round(at_s * SECOND), json.dumps(points).encode()) for at_s, uid, points in reports
    ]
    await stand.store.append(rows)


def daily(first: int, last: int) -> list[tuple[float, str, dict[str, Any]]]:
    """The first terminal, four times a day; its label closes every day."""
    return [
        (day * DAY_S + hour * 21_600, "t1", {"T": (0, 50, 90, 60)[hour]})
        for day in range(first, last)
        for hour in range(4)
    ]


async def test_it_reads_a_day_where_that_says_all(stand: Stand) -> None:
    await sent(stand, *daily(0, 700), (699.1 * DAY_S, "t2", {"RUN": 0}), (699.5 * DAY_S, "t2", {"RUN": 1}))
    row = await stand.replay(700 * DAY_S, 701 * DAY_S, dry_run=True)
    assert (row["records_total"], row["records_done"]) == (6, 6)


@pytest.mark.parametrize(("days", "read"), [(3, 8 * 4), (60, 64 * 4), (300, 366 * 4)])
async def test_it_looks_back_as_far_as_it_takes(stand: Stand, days: int, read: int) -> None:
    await sent(stand, *daily(0, 501))
    changed = [((500 - days) * DAY_S + at_s, "t2", {"RUN": at_s}) for at_s in (0, 1)]
    await sent(stand, *changed)
    row = await stand.replay(500 * DAY_S, 501 * DAY_S)
    assert row["records_done"] == read + 4 + 2
    assert ("RUN", 500 * DAY_S, 501 * DAY_S) in await stand.labels()


async def test_what_a_year_does_not_say_is_told(stand: Stand) -> None:
    await sent(stand, *daily(0, 501), (100 * DAY_S, "t2", {"RUN": 1}))
    row = await stand.ended(await stand.submit(500 * DAY_S, 501 * DAY_S, dry_run=True))
    assert (row["state"], row["info"]) == ("done", "not known from the 366 days before the range: RUN")
    assert row["records_done"] == 367 * 4
