"""When sending gives way: while there is much else to do, and until it is within its share."""

from __future__ import annotations

import pytest

from terrazzo.live.share import SHARE, SLICE_S, Share


def test_it_is_used_up_after_a_slice() -> None:
    share = Share(now_s=0.0)
    share.spend(SLICE_S / 2, now_s=SLICE_S / 2)
    assert not share.is_used_up
    share.spend(SLICE_S / 2, now_s=SLICE_S)
    assert share.is_used_up


def test_what_others_spend_gives_it_back() -> None:
    share = Share(now_s=0.0)
    for second in range(1, 100):
        share.spend(SLICE_S / 2, now_s=float(second))
        assert not share.is_used_up, "so little a second is within the share"


def test_a_short_turn_of_the_others_means_that_nothing_is_owed() -> None:
    share = Share(now_s=0.0)
    share.spend(SLICE_S, now_s=SLICE_S)
    assert share.pause_s(SLICE_S / 10) == 0
    assert not share.is_used_up


def test_while_others_are_busy_it_keeps_to_its_share() -> None:
    share, now_s, spent_s = Share(now_s=0.0), 0.0, 0.0
    for _ in range(100):
        now_s += SLICE_S
        spent_s += SLICE_S
        share.spend(SLICE_S, now_s=now_s)
        while pause_s := share.pause_s(turn_s=0.01):
            now_s += pause_s
            share.spend(0.0, now_s=now_s)
    assert spent_s / (now_s - spent_s) == pytest.approx(SHARE, rel=0.1)


def test_others_that_are_held_up_themselves_pay_back_less() -> None:
    share = Share(now_s=0.0)
    share.spend(SLICE_S, now_s=SLICE_S)
    first_s = share.pause_s(turn_s=0.01)
    share.spend(0.0, now_s=SLICE_S + first_s / 4)  # a quarter of a processor in that time
    assert share.pause_s(turn_s=0.01) == pytest.approx(first_s * 3 / 4)
