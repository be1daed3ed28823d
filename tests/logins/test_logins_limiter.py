"""The limits of logins: a window by principal and address, and rates for the rest."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.logins import limiter as limiters
from terrazzo.logins.limiter import LoginLimiter
from terrazzo.logins.places import Principal

HOME, AWAY = "10.0.0.1", "10.0.0.2"
BO, AL = Principal("bo", 1), Principal("al", 2)
WINDOW_S = 300


def guess(limiter: LoginLimiter, principal: Principal, address: str, now_s: float) -> float:
    """A try that fails; the seconds it would have to wait."""
    return limiter.begin(principal, address, now_s).wait_s


def prove(limiter: LoginLimiter, principal: Principal, address: str, now_s: float) -> float:
    """A try that is proven, if it is let through."""
    attempt = limiter.begin(principal, address, now_s)
    if not attempt.wait_s:
        limiter.succeed(attempt)
    return attempt.wait_s


@given(st.integers(1, 4), st.lists(st.tuples(st.sampled_from("fs"), st.sampled_from("ab"), st.integers(0, 40))))
def test_a_principal_at_an_address_has_a_sliding_window(limit: int, steps: list[tuple[str, str, int]]) -> None:
    limiter, now = LoginLimiter(limit, 60), 1_000
    failures: dict[str, list[int]] = {"a": [], "b": []}
    people = {"a": BO, "b": AL}
    for name in people:
        prove(limiter, people[name], HOME, now)  # so that the wide limits stay out of it
    for kind, name, seconds in steps:
        now += seconds
        recent = [at for at in failures[name] if now - at < 60][-limit:]
        expected = recent[-limit] + 60 - now if len(recent) >= limit else 0
        act = guess if kind == "f" else prove
        assert act(limiter, people[name], HOME, now) == expected
        if not expected:
            failures[name] = [*failures[name], now] if kind == "f" else []


def test_zero_limits_nothing() -> None:
    limiter = LoginLimiter(0, 300)
    assert not any(guess(limiter, BO, HOME, 0) for _ in range(1_000))


def test_from_everywhere_a_name_has_ten_times_as_many_and_then_a_rate() -> None:
    limiter = LoginLimiter(10, WINDOW_S)
    let = [guess(limiter, BO, f"10.1.{number}.1", 0) for number in range(1_000)]
    assert [wait_s == 0 for wait_s in let].count(True) == 100
    assert max(let) == 3, "a window has room for 100"


def test_an_hour_of_guessing_one_name_from_everywhere_is_bounded() -> None:
    limiter, chance, admitted = LoginLimiter(10, WINDOW_S), random.Random(1), 0
    for tenth in range(36_000):
        address = f"10.{chance.randrange(256)}.{chance.randrange(256)}.1"
        admitted += not guess(limiter, BO, address, tenth / 10)
    assert admitted <= 100 + 10 + 1_200


@pytest.mark.parametrize("names", [1_000_000, 100, 10])
def test_an_honest_newcomer_gets_in_beside_a_flood_from_its_own_address(names: int) -> None:
    """A hundred guesses a second, under fresh names or round a few; the newcomer comes back when it was told to."""
    limiter, now_s = LoginLimiter(10, WINDOW_S), 0.0
    due_s, waited_s = 60.0, None
    for number in range(100 * 120):
        now_s = number / 100
        guess(limiter, Principal(f"guess-{number % names}"), HOME, now_s)
        if now_s >= due_s:
            wait_s = prove(limiter, BO, HOME, now_s)
            if not wait_s:
                waited_s = now_s - 60
                break
            due_s = now_s + wait_s
    assert waited_s is not None, "it never got in"
    assert waited_s <= 10


def test_one_that_asks_each_second_gets_in_too() -> None:
    limiter = LoginLimiter(10, WINDOW_S)
    for number in range(6_000):
        guess(limiter, Principal(f"guess-{number}"), HOME, number / 100)
        if number >= 3_000 and number % 100 == 0 and not prove(limiter, BO, HOME, number / 100):
            break
    else:
        pytest.fail("it never got in")
    assert number <= 4_000


def test_who_is_known_there_waits_for_nobody() -> None:
    limiter = LoginLimiter(10, WINDOW_S)
    assert prove(limiter, BO, HOME, 0) == 0
    for number in range(10_000):
        guess(limiter, Principal(f"guess-{number}"), HOME, 0)
        guess(limiter, BO, f"10.1.{number % 256}.1", 0)
    assert prove(limiter, BO, HOME, 0) == 0
    assert prove(limiter, AL, HOME, 0) > 0


def test_a_success_gives_back_what_it_took_and_covers_no_guesses() -> None:
    limiter = LoginLimiter(10, WINDOW_S)
    for number in range(1_000):
        assert prove(limiter, Principal("", number + 1), HOME, 0) == 0, "a fleet behind one address"
    guesses = 0
    while not guess(limiter, Principal(f"guess-{guesses}"), HOME, 0):
        guesses += 1
        prove(limiter, BO, HOME, 0)
    assert guesses == 100


def test_strangers_push_out_nothing_that_is_known_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limiters, "_MOST_STRANGERS", 100)
    limiter = LoginLimiter(3, WINDOW_S)
    for _ in range(3):
        guess(limiter, BO, HOME, 0)
    for number in range(10_000):
        guess(limiter, Principal(f"stranger-{number}"), f"10.{number // 256}.{number % 256}.1", 1)
    assert guess(limiter, BO, HOME, 2) == WINDOW_S - 2
    assert len(limiter._strangers) == 100


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    for bound in ("_MOST_STRANGERS", "_MOST_RECORDS", "_MOST_ADDRESSES", "_MOST_WAITING", "_MOST_SHARES"):
        monkeypatch.setattr(limiters, bound, 20)
    limiter = LoginLimiter(3, WINDOW_S)
    for number in range(5_000):
        address = f"10.{number // 256}.{number % 256}.1"
        guess(limiter, Principal("x" * 1_000 + str(number)), address, 0)
        guess(limiter, Principal("", number + 1), HOME, 0)
        guess(limiter, BO, address, number * 3)
    kept = (limiter._strangers, limiter._records, limiter._addresses, limiter._waiting, limiter._records[1].times)
    assert max(len(each) for each in kept) <= 20
    assert all(len(name) <= 64 for name in limiter._strangers)


def test_a_clock_that_is_set_back_locks_nobody_out() -> None:
    limiter = LoginLimiter(3, WINDOW_S)
    for number in range(200):
        guess(limiter, BO, HOME, 1e9)
        guess(limiter, Principal(f"guess-{number}"), HOME, 1e9)
    wait_s = guess(limiter, BO, HOME, 0)
    assert wait_s <= 2 * WINDOW_S / 30
    assert prove(limiter, BO, HOME, wait_s) == 0


def test_what_was_excused_never_happened() -> None:
    limiter = LoginLimiter(3, WINDOW_S)
    for _ in range(100):
        limiter.excuse(limiter.begin(BO, HOME, 0))
    assert prove(limiter, BO, HOME, 0) == 0
