"""What is kept of one terminal's refusals, and of all together: folded, bounded, fair."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from terrazzo.diagnostics.book import MOST_ADDRESSES, RefusalBook
from terrazzo.diagnostics.recent import MOST_ENTRIES, STRANGERS, RecentRefusals
from terrazzo.domain.refusals.entry import RefusalEntry


def entry(reason: str = "wrong_pin", address: str = "10.0.0.1", at: int = 1, *, is_own: bool = False) -> RefusalEntry:
    return RefusalEntry(reason, address, at, at, 1, is_own=is_own)


def test_what_repeats_at_an_address_is_one_entry() -> None:
    recent = RecentRefusals()
    for at in range(1, 1_001):
        recent.add(("10.0.0.1", "wrong_pin"), entry(at=at))
    recent.add(("10.0.0.2", "wrong_pin"), entry(address="10.0.0.2", at=2_000))
    recent.add(("10.0.0.1", "clock_off"), entry("clock_off", at=2_001))
    assert [(each.reason, each.address, each.first_us, each.last_us, each.times) for each in recent] == [
        ("clock_off", "10.0.0.1", 2_001, 2_001, 1),
        ("wrong_pin", "10.0.0.2", 2_000, 2_000, 1),
        ("wrong_pin", "10.0.0.1", 1, 1_000, 1_000),
    ]


def test_strangers_at_many_addresses_do_not_flush_the_terminals_own() -> None:
    recent = RecentRefusals()
    for number in range(MOST_ENTRIES):
        recent.add(("home", f"reason-{number}"), entry(at=number, is_own=True))
    for number in range(10_000):
        recent.add((f"10.0.{number}", "wrong_pin"), entry(at=100 + number))
    own = [each for each in recent if each.is_own]
    assert len(own) == MOST_ENTRIES - STRANGERS
    assert [each.first_us for each in own] == list(range(MOST_ENTRIES - 1, STRANGERS - 1, -1))  # its last ones
    assert len(recent) == MOST_ENTRIES


def test_strangers_have_the_room_that_the_terminal_does_not_need() -> None:
    recent = RecentRefusals()
    for number in range(100):
        recent.add((f"10.0.{number}", "wrong_pin"), entry(at=number))
    assert len(recent) == MOST_ENTRIES


@given(st.lists(st.tuples(st.integers(0, 60), st.booleans()), max_size=300))
def test_it_stays_within_its_bounds_whatever_comes(steps: list[tuple[int, bool]]) -> None:
    recent = RecentRefusals()
    for at, (number, is_own) in enumerate(steps):
        recent.add((str(number), "r"), entry(at=at, is_own=is_own))
        own = sum(each.is_own for each in recent)
        assert len(recent) == len(list(recent)) <= MOST_ENTRIES
        assert recent._strangers == len(recent) - own
        assert next(iter(recent)).last_us == at
    assert sum(each.times for each in recent) <= len(steps)


def test_the_company_that_has_most_makes_room() -> None:
    book = RefusalBook(200)
    for terminal in range(5):
        book.add(1, terminal, ("a", "r"), entry(at=terminal))
    for terminal in range(1_000, 3_000):
        book.add(2, terminal, ("a", "r"), entry(at=terminal))
        assert book.count <= 200
    assert all(book.of_terminal(terminal) for terminal in range(5))
    assert book.of_terminal(1_000) is None
    assert book.of_terminal(2_999) is not None
    assert book.evicted == 2_005 - book.count


def test_addresses_have_a_bound_of_their_own() -> None:
    book = RefusalBook(10)
    book.add(1, 1, ("a", "r"), entry())
    for number in range(3 * MOST_ADDRESSES):
        book.add_at((f"10.0.{number}", "tls_failed"), entry("tls_failed", at=number))
    assert sum(isinstance(each, str) for each in book.every()) == MOST_ADDRESSES
    assert book.of_address("10.0.0") is None
    assert book.of_terminal(1) is not None
    assert book.count == 1


def test_a_terminal_that_goes_to_another_company_leaves_its_refusals_behind() -> None:
    book = RefusalBook(10)
    book.add(1, 7, ("a", "r"), entry(at=1))
    book.add(2, 7, ("b", "r"), entry(at=2))
    assert [each.last_us for each in book.of_terminal(7) or ()] == [2]
    assert book.count == 1
    assert book.forget(7)
    assert not book.forget(7)
    assert book.count == 0
