"""Sets of few numbers: as sets are, and without what is empty."""

from __future__ import annotations

import sys

from hypothesis import given
from hypothesis import strategies as st

from terrazzo.member_sets import MemberSets


@given(st.lists(st.tuples(st.booleans(), st.sampled_from("ab"), st.integers(0, 12)), max_size=80))
def test_they_are_as_sets_are(steps: list[tuple[bool, str, int]]) -> None:
    sets, expected = MemberSets(), {"a": set[int](), "b": set[int]()}
    for adds, key, member in steps:
        (sets.add if adds else sets.discard)(key, member)
        (expected[key].add if adds else expected[key].discard)(member)
        assert len(sets.of(key)) == len(expected[key])
    for key, members in expected.items():
        assert set(sets.of(key)) == members
        assert bool(sets.of(key)) == bool(members)


def test_one_member_takes_little() -> None:
    sets = MemberSets()
    sets.add("a", 7)
    assert sys.getsizeof(sets.of("a")) < sys.getsizeof({7}) / 3
    sets.discard("b", 7)
    assert sets.of("b") == ()
