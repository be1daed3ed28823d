"""The throttle against a plain list of failures."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from terrazzo.throttle import Throttle

STEPS = st.lists(
    st.tuples(st.sampled_from(["fail", "check", "succeed"]), st.sampled_from("ab"), st.integers(0, 40)), max_size=60
)


@settings(max_examples=300, deadline=None)
@given(limit=st.integers(0, 4), steps=STEPS)
def test_throttle_is_a_sliding_window(limit: int, steps: list[tuple[str, str, int]]) -> None:
    throttle, failures, now = Throttle(limit, 60), {"a": [], "b": []}, 1_000
    for what, key, wait in steps:
        now += wait
        if what == "fail":
            throttle.fail(key, now)
            failures[key].append(now)
        elif what == "succeed":
            throttle.succeed(key)
            failures[key].clear()
        recent = [at for at in failures[key] if now - at < 60]
        blocked = 0 < limit <= len(recent)
        assert throttle.check(key, now) is not blocked
        assert throttle.wait_s(key, now) == (recent[-limit] + 60 - now if blocked else 0)


def test_memory_is_bounded_and_the_latest_stay() -> None:
    throttle = Throttle(2, 60, max_keys=100)
    for number in range(10_000):
        throttle.fail(f"stranger {number}", number / 1_000)
        throttle.fail("persistent", number / 1_000)
    assert len(throttle) == 100
    assert not throttle.check("persistent", 10)
