"""Mappings are kept packed, what is made of them goes with the last object that has it, and all of it is counted."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest

from terrazzo.mapping.catalogue import MappingCatalogue, ObjectSpec
from terrazzo.mapping.scripts import MappingScripts, rows_in

OURS, THEIRS = 1, 2
MIB = 2**20


def rows(count: int, text: str = "x * 2 + 1") -> list[list[str]]:
    return [[f"V{n}", f"variable {n}", "", "STA", f"t1.p{n}", text] for n in range(count)]


def spec(object_id: int = 1, mapping_id: int | None = 1) -> ObjectSpec:
    return ObjectSpec(id=object_id, company_id=OURS, mapping_id=mapping_id, terminals=("t1",))


def bytes_of(catalogue: MappingCatalogue, company_id: int = OURS) -> int:
    kept = catalogue.scripts.kept().get(company_id)
    return 0 if kept is None else kept.bytes


def test_a_mapping_that_no_object_has_takes_its_bytes_and_little_more() -> None:
    """As JSON has decoded it and as a text beside that, it took 2.2 times as many."""
    catalogue, count = MappingCatalogue(), 4
    tracemalloc.start()
    try:
        for number in range(count):
            catalogue.put_mapping(number, rows(1_000, f"x * {number} + " + "V0 * 2 + " * 100 + "1"), OURS)
        snapshot = tracemalloc.take_snapshot().filter_traces([tracemalloc.Filter(True, "*/mapping/*")])
    finally:
        tracemalloc.stop()
    taken = sum(each.size for each in snapshot.statistics("filename"))
    size = sum(len(catalogue.scripts.packed(number)) for number in range(count))
    assert size > 3 * MIB
    assert taken < 1.1 * size
    assert size <= bytes_of(catalogue) <= taken


def test_what_is_made_of_a_mapping_counts_while_an_object_has_it() -> None:
    catalogue = MappingCatalogue()
    catalogue.put_mapping(1, rows(100), OURS)
    catalogue.put_mapping(2, rows(10), THEIRS)
    packed, theirs = bytes_of(catalogue), bytes_of(catalogue, THEIRS)
    catalogue.put_object(spec())
    assert catalogue.plans("t1")
    made = bytes_of(catalogue)
    assert made > 20 * packed
    catalogue.put_object(spec(object_id=2))
    assert catalogue.plans("t1")
    assert bytes_of(catalogue) == made, "both objects have the same table and plan"
    catalogue.drop_object(1)
    assert bytes_of(catalogue) == made
    catalogue.put_object(spec(object_id=2, mapping_id=None))
    assert bytes_of(catalogue) == packed
    assert bytes_of(catalogue, THEIRS) == theirs
    catalogue.put_object(spec(object_id=2))
    assert catalogue.plans("t1")
    assert bytes_of(catalogue) == made, "it is made again"
    catalogue.put_mapping(1, rows(50), OURS)
    assert bytes_of(catalogue) < packed
    catalogue.put_mapping(1, None)
    assert OURS not in catalogue.scripts.kept()


def test_what_is_said_of_events_counts() -> None:
    catalogue = MappingCatalogue()
    catalogue.put_mapping(1, rows(1), OURS)
    before = bytes_of(catalogue)
    catalogue.put_events(1, {"V0": {"level": "alarm"}}, OURS)
    assert bytes_of(catalogue) > before
    catalogue.put_events(1, None, OURS)
    assert bytes_of(catalogue) == before


def test_retainers_count() -> None:
    scripts = MappingScripts()
    scripts.put_retainer(1, [["A", "warm", "", "1", "0"]] * 10, OURS)
    scripts.put_retainer(2, (), OURS)
    assert scripts.kept()[OURS].bytes > 5_000
    for project_id in (1, 2):
        scripts.put_retainer(project_id, None, 0)
    assert not scripts.kept()


def test_the_same_rows_touch_nothing_and_one_is_not_true() -> None:
    scripts = MappingScripts()
    assert scripts.put(1, [["A", 1]], OURS)
    packed = scripts.packed(1)
    assert not scripts.put(1, [["A", 1]], OURS)
    assert scripts.packed(1) is packed
    assert scripts.put(1, [["A", True]], OURS)
    assert scripts.put(1, [["A", 1.0]], OURS)


@pytest.mark.parametrize("stored", [[["\ud800"]], [[2**70]], {"a": 1}, "text", 7, [["A", None]], []])
def test_whatever_was_stored_comes_back(stored: Any) -> None:
    scripts = MappingScripts()
    assert scripts.put(1, stored, OURS)
    assert rows_in(scripts.packed(1)) == stored
    catalogue = MappingCatalogue()
    catalogue.put_mapping(1, stored, OURS)
    catalogue.put_object(spec())
    assert catalogue.bound(1) is None or stored == []


def test_a_company_has_a_quarter_and_its_part_of_half_when_all_have_much() -> None:
    scripts, ceiling = MappingScripts(), 4 * MIB
    assert scripts.put(1, rows(100), OURS)
    taken, most = scripts.use(OURS, None, ceiling)
    assert taken > 100 * 2_000, "it counts as if it were used"
    assert most == MIB
    for company_id in range(2, 7):
        scripts.put(company_id, rows(150), company_id)
    taken, most = scripts.use(3, None, ceiling)
    assert most == ceiling // 2 // 7
    assert taken > most > scripts.use(OURS, None, ceiling)[0], "who has little gets more"
