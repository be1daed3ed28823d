"""Windows by a zone's clocks, whose changes are looked up once and kept."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from terrazzo.influxql import windows
from terrazzo.influxql.windows import Windows

SECOND_NS = 10**9
DAY_NS = 86_400 * SECOND_NS
LATEST_S = 2_000_000_000  # 2033


def midnight_of(second: int, zone: ZoneInfo) -> int:
    """How many days the calendar of a zone is past 1970-01-01."""
    return datetime.fromtimestamp(second, UTC).astimezone(zone).date().toordinal() - datetime(1970, 1, 1).toordinal()


@pytest.mark.parametrize(
    "name", ["Europe/Berlin", "Asia/Kolkata", "Australia/Lord_Howe", "Africa/Casablanca", "America/Sao_Paulo"]
)
def test_days_are_those_of_the_calendar(name: str) -> None:
    zone, chance = ZoneInfo(name), random.Random(name)
    days = Windows(DAY_NS, 0, zone)
    changes = days._clocks.changes_ns(0, LATEST_S * SECOND_NS).tolist()
    seconds = sorted(chance.randrange(LATEST_S) for _ in range(2_000))
    seconds += [change // SECOND_NS + beside for change in changes for beside in (-1, 0, 1)]
    times = np.array(sorted(seconds), np.int64) * SECOND_NS
    for some in (times, times[::50], times[100:110], times[:1]):
        expected = [midnight_of(time_ns // SECOND_NS, zone) for time_ns in some.tolist()]
        assert days.ids(some).tolist() == expected
    assert len(changes) == len(set(changes))
    for change in changes[:-1]:
        assert days._clocks.changes_ns(change - 1, change).tolist() == [change]
        assert change not in days._clocks.changes_ns(change, change + 1)


def test_changes_of_clocks_are_looked_up_once(monkeypatch: pytest.MonkeyPatch) -> None:
    zone, looked_up = ZoneInfo("Asia/Tokyo"), 0

    def offset_s(zone: ZoneInfo, second: int, read=windows._offset_s) -> int:
        nonlocal looked_up
        looked_up += 1
        return read(zone, second)

    monkeypatch.setattr(windows, "_offset_s", offset_s)
    pieces = [np.arange(1_000, dtype=np.int64) * 30 * SECOND_NS + day * DAY_NS for day in range(18_000, 18_300)]
    expected = [Windows(DAY_NS, 0, zone).ids(piece) for piece in pieces]
    assert looked_up
    looked_up = 0
    found = [Windows(DAY_NS, 0, zone).ids(piece) for piece in pieces]
    assert all((one == other).all() for one, other in zip(found, expected, strict=True))
    assert not looked_up
