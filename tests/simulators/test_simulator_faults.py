"""Faults: seeded, at the asked rate, and such that no decoder accepts them."""

from __future__ import annotations

from collections import Counter

import pytest

from terrazzo_simulators.clock import SeededClock
from terrazzo_simulators.faults import GARBLES, Fate, FaultPlan, Faults
from terrazzo_simulators.payload import PayloadError, decode, encode_json, encode_msgpack

FAULTS = Faults(message_loss=0.1, connection_loss=0.05, malformed=0.2, skew_s=60)


def test_the_same_seed_breaks_the_same_messages() -> None:
    def fates(seed: int) -> list[Fate]:
        plan = FaultPlan(FAULTS, seed=seed, uid="a")
        return [plan.fate(index) for index in range(500)]

    assert fates(1) == fates(1)
    assert fates(1) != fates(2)


def test_faults_come_at_their_rates() -> None:
    plan = FaultPlan(FAULTS, seed=1, uid="a")
    counts = Counter(plan.fate(index) for index in range(20_000))
    assert counts[Fate.LOSE] / 20_000 == pytest.approx(0.1, abs=0.01)
    assert counts[Fate.CUT] / 20_000 == pytest.approx(0.05, abs=0.01)
    assert counts[Fate.GARBLE] / 20_000 == pytest.approx(0.2, abs=0.01)


def test_without_faults_everything_is_sent() -> None:
    plan = FaultPlan(Faults(), seed=1, uid="a")
    assert {plan.fate(index) for index in range(1_000)} == {Fate.SEND}
    assert plan.skew_s == 0


def test_clocks_are_off_both_ways_within_the_bound() -> None:
    skews = [FaultPlan(FAULTS, seed=1, uid=str(n)).skew_s for n in range(200)]
    assert all(-60 <= skew <= 60 for skew in skews)
    assert min(skews) < -20
    assert max(skews) > 20


@pytest.mark.parametrize("garble", GARBLES)
@pytest.mark.parametrize("encode", [encode_json, encode_msgpack])
def test_a_garbled_payload_is_not_what_was_said(garble: object, encode: object) -> None:
    original = encode({"A": 1.5, "B": "text"})  # type: ignore[operator]
    broken = garble(original)  # type: ignore[operator]
    try:
        points = decode(broken)
    except PayloadError:
        return
    assert points.keys() <= {"deep"}  # nesting without end is still JSON; a platform bounds it


def test_a_seeded_clock_counts_reports() -> None:
    clock = SeededClock(start_s=100, interval_s=5)
    assert [clock.time_s(tick) for tick in range(3)] == [100, 105, 110]
