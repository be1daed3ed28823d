"""A table that strangers write into: bounded, and nobody pushes out what others have in it."""

from __future__ import annotations

import time
import tracemalloc
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from terrazzo.logins.share_table import ShareTable


def test_a_full_share_loses_its_own_oldest() -> None:
    table: ShareTable[str, str, int] = ShareTable(most=100, most_of_share=3)
    for number in range(5):
        table.put("a", f"k{number}", number)
    table.put("a", "k2", 20)  # the newest then
    table.put("a", "k5", 5)
    assert [(key, value) for _, key, value in table.values()] == [("k4", 4), ("k2", 20), ("k5", 5)]


def test_a_full_table_loses_what_the_largest_share_has() -> None:
    table: ShareTable[str, str, int] = ShareTable(most=10, most_of_share=8)
    table.put("honest", "one", 1)
    for number in range(1_000):
        table.put("flood", f"k{number}", number)
        table.put(f"flood {number % 4}", f"k{number}", number)
    assert table.get("honest", "one") == 1
    assert len(table) == 10
    assert table.get("nobody", "one") is None


def test_of_very_many_shares_the_one_written_to_longest_ago_gives_way() -> None:
    table: ShareTable[int, str, int] = ShareTable(most=10, most_of_share=8)
    table.put(-1, "honest", 1)
    for number in range(100):
        table.put(number, "k", number)
        table.put(-1, "honest", number)
    assert table.get(-1, "honest") == 99


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 9))))
def test_it_is_always_within_its_bounds(writes: list[tuple[int, int]]) -> None:
    table: ShareTable[int, int, int] = ShareTable(most=12, most_of_share=4)
    for number, (share, key) in enumerate(writes):
        table.put(share, key, number)
        assert table.get(share, key) == number, "what was just written is there"
        sizes = Counter(share for share, _, _ in table.values())
        assert sum(sizes.values()) == len(table) <= 12
        assert max(sizes.values()) <= 4


def test_a_write_takes_the_same_time_in_a_full_table() -> None:
    table: ShareTable[int, int, int] = ShareTable(most=10_000, most_of_share=64)

    def seconds(first: int) -> float:
        began = time.thread_time()
        for number in range(first, first + 20_000):
            table.put(number, number, number)
        return time.thread_time() - began

    seconds(0)
    assert seconds(20_000) < 2.0, "some 40 ms"


def test_a_table_that_nobody_has_written_into_takes_next_to_nothing() -> None:
    tracemalloc.start()
    try:
        table: ShareTable[int, int, int] = ShareTable(most=100_000, most_of_share=10_000)
        table.put(1, 1, 1)
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken < 200_000, "a word for each size of a share"
