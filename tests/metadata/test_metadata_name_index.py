"""The index of names: the best matches in their order, as looking at each name gives them, whatever came and went."""

from __future__ import annotations

from heapq import nsmallest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.loop_pauses import at_once
from terrazzo.metadata import name_index
from terrazzo.metadata.name_index import Named, NameIndex, rank_of

NAMES = st.text("aAbB -_1\x01\x02İß却", max_size=8)
RECORDS = st.lists(st.tuples(st.integers(1, 30), NAMES, NAMES), max_size=60)


def named(record_id: int, name: str, other: str) -> Named:
    return Named(len(name), str(record_id), record_id, (name, other))


def looked_at(records: list[Named], text: str, limit: int) -> list[tuple[int, Named]]:
    lowered = text.lower().replace("\x01", " ")
    ranked = []
    for each in records:
        fits = [name for name in each.texts if lowered in name.lower().replace("\x01", " ")]
        ranked += [(min(rank_of(name, lowered) for name in fits), each)] if fits else []
    return nsmallest(limit, ranked)


@given(RECORDS, st.lists(st.integers(1, 30), max_size=10), NAMES.filter(bool), st.integers(1, 5), st.integers(0, 9))
def test_found_as_by_looking_at_each(
    made: list[tuple[int, str, str]], gone: list[int], text: str, limit: int, few: int
) -> None:
    index, records = NameIndex(), {}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(name_index, "_MOST", 4)
        patched.setattr(name_index, "_FEW", few)
        for number, each in enumerate(made):
            records[each[0]] = named(*each)
            index.put(records[each[0]])
            if number % 7 == 3:
                at_once(index.find_steps(text, limit))  # the texts of pieces are made, and have to be made anew
        for record_id in gone:
            records.pop(record_id, None)
            index.drop(record_id)
        assert len(index) == len(records)
        assert at_once(index.find_steps(text, limit)) == looked_at(list(records.values()), text, limit)


def test_what_all_have_is_found_in_few_steps() -> None:
    index = NameIndex()
    for number in range(20_000):
        index.put(named(number, f"Pump station {number:05}", f"P{number:05}"))
    steps = index.find_steps("PUMP", 20)
    taken, found = 0, []
    while True:
        try:
            next(steps)
        except StopIteration as end:
            found = end.value
            break
        taken += 1
    assert taken < 60, "the pieces are gone through for a name that is the text, and then the first ones have enough"
    assert {rank for rank, _ in found} == {name_index.BEGINS}
    assert [each.key for _, each in found] == sorted(str(number) for number in range(20_000))[:20]
    assert [each.texts[0] for _, each in at_once(index.find_steps("station 19999", 5))] == ["Pump station 19999"]
    assert at_once(index.find_steps("none of them", 5)) == []
