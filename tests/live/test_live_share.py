"""When sending gives way: while others use the processor, not because the sender itself does."""

from __future__ import annotations

from terrazzo.live.share import WINDOW_S, Share


def test_only_what_others_use_counts() -> None:
    share = Share(now_s=10.0, cpu_s=5.0)
    share.spend(1.0, now_s=11.0, cpu_s=6.0)
    assert not share.others_are_busy, "all of it was the sender's own"
    share.spend(0.0, now_s=12.0, cpu_s=7.0)
    assert share.others_are_busy


def test_it_is_judged_over_a_window() -> None:
    share = Share(now_s=0.0, cpu_s=0.0)
    share.spend(0.0, now_s=WINDOW_S / 2, cpu_s=WINDOW_S / 2)
    assert not share.others_are_busy, "too early to say"
    share.spend(0.0, now_s=WINDOW_S, cpu_s=WINDOW_S)
    assert share.others_are_busy
    share.spend(0.0, now_s=100.0, cpu_s=1.0)
    assert not share.others_are_busy
