"""Objects with long lists of terminals: each list is gone through once."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from terrazzo.mapping.catalogue import MappingCatalogue, ObjectSpec
from terrazzo.points import Reference, find_point

UIDS = tuple(f"terminal-number-{number}" for number in range(1_000))
DEEP = ".a" * 20


def test_the_plans_of_a_terminal_in_many_objects_with_long_lists() -> None:
    catalogue = MappingCatalogue()
    rows = [[f"V{n}", "", "", "STA", f"{UIDS[999 - n % 5]}.p{n}{DEEP}", "x", ""] for n in range(100)]
    catalogue.put_mapping(1, rows)
    for number in range(199):
        catalogue.put_object(ObjectSpec(id=number + 1, company_id=1, mapping_id=1, terminals=UIDS))
    assert len(catalogue.plans(UIDS[999])) == 199
    began_s = time.thread_time()
    assert catalogue.plans(UIDS[0]) == ()
    assert len(catalogue.plans(UIDS[998])) == 199
    assert time.thread_time() - began_s < 0.1, "each object's list is gone through once, not for each terminal"


PIECES = st.lists(st.sampled_from(["a", "b", "1", "$AdapterID-1", "$AdapterID-3", "$x", ""]), max_size=5).map(".".join)


@given(PIECES, st.lists(PIECES.filter(bool), max_size=4))
def test_a_reference_means_what_is_found_for_it(text: str, terminals: list[str]) -> None:
    try:
        expected = find_point(text, terminals, lambda uid: False)
    except ValueError:
        expected = None
    try:
        found = Reference(text).among(terminals, frozenset(terminals))
    except ValueError:
        found = None
    assert found == expected
