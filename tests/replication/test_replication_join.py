"""Whether a store may follow a log: each case has its answer, and what is refused says what to do."""

from __future__ import annotations

import pytest

from terrazzo.ports.stream import LogState, LogWentBack
from terrazzo.replication.members import Member, trim_before
from terrazzo.replication.position import JoinRefused, Lineage, Position, join

LOG = LogState("today", 5, 20, 1_000, 10_000)
WHOLE = LOG._replace(first=1)
EMPTY = LogState("today", 1, 0, 0, 10_000)
OURS = Lineage("L", "today", is_seeded=False)
SEEDED = Lineage("L", "today", is_seeded=True)


def at(sequence: int, *, lineage: str = "L", created: str = "today") -> Position:
    return Position(lineage, created, sequence, 1)


@pytest.mark.parametrize(
    ("position", "lineage", "log", "is_empty", "expected"),
    [
        (None, None, EMPTY, True, Position("new", "today", 0, 0)),
        (None, None, EMPTY, False, Position("new", "today", 0, 0)),
        (None, OURS, WHOLE, True, Position("L", "today", 0, 0)),
        (at(20), OURS, LOG, False, at(20)),
        (at(4), OURS, LOG, False, at(4)),
        (at(20), SEEDED, LOG, False, at(20)),
        (at(0, lineage="M"), None, EMPTY, False, at(0, lineage="M")),
        (at(0, lineage="M"), OURS, WHOLE, True, Position("L", "today", 0, 0)),
    ],
)
def test_who_may_follow_goes_on_where_he_was(
    position: Position | None, lineage: Lineage | None, log: LogState, is_empty: bool, expected: Position
) -> None:
    assert join(position, lineage, log, is_empty=is_empty, new_id="new") == expected


@pytest.mark.parametrize(
    ("position", "lineage", "log", "is_empty", "reason"),
    [
        (at(3), OURS, LOG, False, "the log begins at frame 5, and this node needs 4: fill"),
        (at(20, lineage="M"), OURS, LOG, False, "of another cluster: fill"),
        (at(20, created="yesterday"), OURS, LOG, False, "of another cluster"),
        (None, OURS, WHOLE, False, "has time series of its own"),
        (None, SEEDED, WHOLE, True, "not in the log: fill"),
        (None, OURS, LOG, True, "an empty node needs the first"),
        (None, None, WHOLE, True, "frames of nobody's: set cluster.name"),
    ],
)
def test_who_may_not_is_told_what_to_do(
    position: Position | None, lineage: Lineage | None, log: LogState, is_empty: bool, reason: str
) -> None:
    with pytest.raises(JoinRefused, match=reason):
        join(position, lineage, log, is_empty=is_empty, new_id="new")


@pytest.mark.parametrize(
    ("position", "lineage", "log", "reason"),
    [
        (at(21), OURS, LOG, "last frame is 20, and this node has 21 already"),
        (at(20), OURS, LOG._replace(created="later"), "made at later, and the cluster's at today"),
        (at(20), None, EMPTY, "records are gone from the log's servers"),
    ],
)
def test_a_log_that_went_back_stops_everybody(
    position: Position, lineage: Lineage | None, log: LogState, reason: str
) -> None:
    with pytest.raises(LogWentBack, match=reason):
        join(position, lineage, log, is_empty=False, new_id="new")


def member(sequence: int) -> Member:
    return Member("n", "r", "1", sequence, leads=False, seen_us=0)


@pytest.mark.parametrize(
    ("first", "last", "size", "positions", "expected"),
    [
        (1, 100, 400, [100, 100], 0),  # not half full
        (1, 100, 1_000, [100, 100], 51),  # full: half of it
        (1, 100, 600, [100, 90], 18),
        (1, 100, 1_000, [100, 30], 31),  # not what a node has not yet
        (1, 100, 1_000, [100, 0], 0),
        (1, 100, 1_000, [], 0),
        (101, 100, 1_000, [100], 0),
    ],
)
def test_the_log_is_trimmed_when_it_is_half_full(
    first: int, last: int, size: int, positions: list[int], expected: int
) -> None:
    log = LogState("today", first, last, size, 1_000)
    assert trim_before(log, [member(each) for each in positions]) == expected
