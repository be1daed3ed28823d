"""The time of a record, from whatever a terminal's clock says."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.domain.payload import Reject, RejectKind
from terrazzo.ingest.timing import CLOCK_UNSET, YEAR_2000_US, record_time

NOW_US = 1_780_000_000_000_000
LATEST_US = NOW_US + 300_000_000


def read(stamp):
    return record_time(stamp, latest_us=LATEST_US)


def outcome_of(stamp):
    try:
        return read(stamp)
    except Reject as reject:
        return reject


@pytest.mark.parametrize(
    ("stamp", "expected"),
    [
        ("2026-01-02T03:04:05Z", 1_767_323_045_000_000),
        ("2026-01-02T03:04:05+00:00", 1_767_323_045_000_000),
        ("2026-01-02T05:04:05.25+02:00", 1_767_323_045_250_000),
        ("2026-01-02T03:04:05", 1_767_323_045_000_000),  # without an offset: UTC
        ("2026-01-02 03:04:05", 1_767_323_045_000_000),
        ("20260102T030405Z", 1_767_323_045_000_000),
        (" 2026-01-02T03:04:05Z\n", 1_767_323_045_000_000),
        (1_767_323_045, 1_767_323_045_000_000),
        (1_767_323_045.5, 1_767_323_045_500_000),
        (1_767_323_045_250, 1_767_323_045_250_000),
        (1_767_323_045_250.0, 1_767_323_045_250_000),
        (946_684_800, YEAR_2000_US),
    ],
)
def test_times_that_stand(stamp, expected):
    assert read(stamp) == expected


@pytest.mark.parametrize("stamp", [0, 1.5, -1, -2_000_000_000_000, 946_684_799, "1970-01-01T00:00:07Z", "1999-12-31"])
def test_a_clock_that_was_never_set(stamp):
    assert read(stamp) == CLOCK_UNSET


@pytest.mark.parametrize("stamp", ["2036-02-07T06:28:16Z", 2_085_978_496, 2_085_978_496_000, LATEST_US / 1e6 + 1])
def test_a_clock_ahead_is_a_reject(stamp):
    with pytest.raises(Reject, match="beyond what is accepted") as caught:
        read(stamp)
    assert caught.value.kind is RejectKind.CLOCK_AHEAD


def test_just_within_what_is_allowed():
    assert read(LATEST_US / 1e6) == LATEST_US


@pytest.mark.parametrize(
    "stamp",
    ["", "yesterday", "2026-13-01", "2026-02-30T00:00:00Z", True, False, {}, {"a": 1}, [1], 1e300, -1e300, 2**62],
)
def test_times_that_cannot_be_read(stamp):
    with pytest.raises(Reject, match="Time: ") as caught:
        read(stamp)
    assert caught.value.kind is RejectKind.TIME


@given(st.integers(946_684_800, 1_780_000_000))
def test_seconds_milliseconds_and_text_of_one_moment_agree(unix_s):
    text = datetime.fromtimestamp(unix_s, UTC).isoformat()
    assert read(unix_s) == read(unix_s * 1000) == read(text) == unix_s * 1_000_000


@given(st.text() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_no_stamp_raises_anything_but_a_reject(stamp):
    outcome = outcome_of(stamp)
    if isinstance(outcome, Reject):
        assert str(outcome).startswith("Time: ")
    else:
        assert outcome == CLOCK_UNSET or YEAR_2000_US <= outcome <= LATEST_US
