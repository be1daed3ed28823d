"""When sending gives way: while there is much else to do, and until it is within its share."""

from __future__ import annotations

import pytest

from terrazzo.live.share import BUSY, SHARE, SLICE_S, WINDOW_S, Share


def spent_slice(*, others_s: float) -> Share:
    """One that has spent a slice after others had used so much of the wall's time."""
    share = Share(cpu_s=0.0, wall_s=0.0)
    share.spend(0.0, cpu_s=others_s)
    share.spend(SLICE_S, cpu_s=others_s + SLICE_S)
    assert share.is_used_up
    return share


def test_it_is_used_up_after_a_slice() -> None:
    share = Share(cpu_s=0.0, wall_s=0.0)
    share.spend(SLICE_S / 2, cpu_s=SLICE_S / 2)
    assert not share.is_used_up
    share.spend(SLICE_S / 2, cpu_s=SLICE_S)
    assert share.is_used_up


def test_what_others_spend_gives_it_back() -> None:
    share = Share(cpu_s=0.0, wall_s=0.0)
    for second in range(1, 100):
        share.spend(SLICE_S / 2, cpu_s=float(second))
        assert not share.is_used_up, "so little a second is within the share"


@pytest.mark.parametrize(("used", "gives_way"), [(BUSY * 1.1, True), (BUSY * 0.9, False)])
def test_it_gives_way_only_to_others_who_are_busy(used: float, gives_way: bool) -> None:
    share = spent_slice(others_s=used)
    assert (share.pause_s(wall_s=1.0) > 0) == gives_way
    assert share.is_used_up == gives_way, "where nobody needs the time, nothing is owed"


def test_its_own_time_does_not_count_as_others() -> None:
    share = Share(cpu_s=0.0, wall_s=0.0)
    share.spend(1.0, cpu_s=1.0)
    assert share.pause_s(wall_s=1.0) == 0


def test_it_is_judged_over_a_window() -> None:
    share = spent_slice(others_s=WINDOW_S / 2)
    assert share.pause_s(wall_s=WINDOW_S / 2) == 0, "too early to say"


def test_while_others_are_busy_it_keeps_to_its_share() -> None:
    share, now_s, spent_s = Share(cpu_s=0.0, wall_s=0.0), 0.0, 0.0
    for _ in range(300):
        now_s += SLICE_S
        spent_s += SLICE_S
        share.spend(SLICE_S, cpu_s=now_s)
        while pause_s := share.pause_s(wall_s=now_s):
            now_s += pause_s
            share.spend(0.0, cpu_s=now_s)
        now_s += SLICE_S / 2  # a third of the time is theirs even where sending takes all that it likes
    assert spent_s / (now_s - spent_s) == pytest.approx(SHARE, rel=0.25)


def test_others_that_are_held_up_themselves_pay_back_less() -> None:
    share = spent_slice(others_s=0.5)
    first_s = share.pause_s(wall_s=1.0)
    share.spend(0.0, cpu_s=0.5 + SLICE_S + first_s / 2)  # half a processor in that time
    assert share.pause_s(wall_s=1.0 + first_s) == pytest.approx(first_s / 2)
