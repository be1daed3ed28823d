"""How old what a follower has may be: at most as old as is said, in whichever order answers and frames come."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from terrazzo.replication.freshness import Freshness


def test_nothing_is_known_before_the_logs_end_was_reached() -> None:
    fresh = Freshness()
    assert fresh.age_s(5.0, 0) is None
    fresh.on_state(5.0, 10, 3)
    assert (fresh.age_s(6.0, 9), fresh.last) == (None, 10)
    assert fresh.age_s(8.0, 10) == 3.0


def test_age_grows_while_the_log_says_nothing_and_while_frames_are_missing() -> None:
    fresh = Freshness()
    fresh.on_state(1.0, 10, 10)
    assert fresh.age_s(4.0, 10) == 3.0
    fresh.on_state(5.0, 20, 10)
    assert fresh.age_s(6.0, 15) == 5.0
    fresh.on_state(7.0, 30, 15)
    assert fresh.age_s(8.0, 20) == 3.0  # all that the log had at 5
    fresh.on_state(9.0, 30, 30)
    assert fresh.age_s(9.5, 30) == 0.5


_steps = st.lists(st.tuples(st.sampled_from(["write", "apply", "ask", "answer"]), st.integers(1, 5)), max_size=60)


@given(_steps)
def test_it_never_says_younger_than_it_is(steps: list[tuple[str, int]]) -> None:
    """Each step takes a second; an answer says what the log had when it was asked, or a little later."""
    fresh, written, sequence, asked = Freshness(), [0.0], 0, -1.0
    for number, (step, count) in enumerate(steps, 1):
        now_s = float(number)
        if step == "write":
            written += [now_s] * count  # a frame each, acknowledged now
        elif step == "apply":
            sequence = min(len(written) - 1, sequence + count)
        elif step == "ask":
            asked = now_s
        elif asked >= 0:
            fresh.on_state(asked, len(written) - 1, sequence)
            asked = -1.0
        age_s = fresh.age_s(now_s, sequence)
        if age_s is not None:
            missing = written[sequence + 1 :]
            assert all(acknowledged_s >= now_s - age_s for acknowledged_s in missing)
