"""What waits, by company and in turn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from terrazzo.company_queue import CompanyQueue

KEYS = st.lists(st.tuples(st.integers(1, 4), st.integers(0, 30)), max_size=60)


def filled(pairs: list[tuple[int, int]]) -> CompanyQueue[int]:
    queue: CompanyQueue[int] = CompanyQueue()
    for company_id, key in pairs:
        queue.put(company_id, key)
    return queue


def test_companies_take_turns_however_much_one_has_waiting() -> None:
    queue = filled([(1, number) for number in range(1_000)] + [(2, -1), (3, -2), (2, -3)])
    assert queue.take_some(7) == [0, -1, -2, 1, -3, 2, 3]
    assert len(queue) == 996


def test_what_waits_already_keeps_its_place_and_what_is_dropped_has_none() -> None:
    queue = filled([(1, 10), (1, 11), (2, 20), (2, 10), (1, 10)])
    queue.drop(20)
    queue.drop(20)
    assert 20 not in queue
    assert 10 in queue
    assert queue.take_some(9) == [10, 11]
    assert queue.take() is None
    assert not queue


@given(KEYS)
def test_each_comes_once_and_a_companys_in_order(pairs: list[tuple[int, int]]) -> None:
    company_of: dict[int, int] = {}
    for company_id, key in pairs:
        company_of.setdefault(key, company_id)
    queue = filled(pairs)
    taken = queue.take_some(len(company_of))
    assert len(taken) == len(company_of)
    assert not queue
    for company_id in range(1, 5):
        own = [key for key, each in company_of.items() if each == company_id]
        assert [key for key in taken if company_of[key] == company_id] == own


@given(KEYS)
def test_while_a_company_waits_no_other_has_two_turns_more(pairs: list[tuple[int, int]]) -> None:
    company_of: dict[int, int] = {}
    for company_id, key in pairs:
        company_of.setdefault(key, company_id)
    turns = [company_of[key] for key in filled(pairs).take_some(len(company_of))]
    for company_id in set(turns):
        last = max(number for number, each in enumerate(turns) if each == company_id)
        for other in set(turns) - {company_id}:
            assert turns[:last].count(other) <= turns[:last].count(company_id) + 1
