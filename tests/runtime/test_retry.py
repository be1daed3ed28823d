"""When to try again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from terrazzo.retry import Attempts, Retry


def test_pauses_grow_to_the_longest() -> None:
    retry = Retry(first_s=1, most_s=10, factor=3)
    assert [retry.pause_s(failures) for failures in (1, 2, 3, 4, 1000)] == [1, 3, 9, 10, 10]


def test_there_is_an_end_where_one_is_set() -> None:
    retry = Retry(first_s=1, most_s=10, attempts=2)
    assert [retry.pause_s(1), retry.pause_s(2)] == [1, None]


@given(failures=st.integers(1, 10_000), chance=st.floats(0, 1), jitter=st.floats(0, 1))
def test_chance_only_shortens(failures: int, chance: float, jitter: float) -> None:
    retry = Retry(first_s=0.1, most_s=5, jitter=jitter)
    longest = Retry(first_s=0.1, most_s=5).pause_s(failures)
    pause = retry.pause_s(failures, chance=lambda: chance)
    assert pause is not None
    assert longest is not None
    assert longest * (1 - jitter) - 1e-9 <= pause <= longest


def test_a_success_begins_anew() -> None:
    attempts = Attempts(Retry(first_s=1, most_s=10))
    assert [attempts.failed(), attempts.failed()] == [1, 2]
    attempts.succeeded()
    assert attempts.failed() == 1
