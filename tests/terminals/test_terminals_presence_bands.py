"""What a day of a terminal's connection is folded to, and the bands that are drawn of it."""

from __future__ import annotations

from terrazzo.terminals.presence_bands import (
    MOST_A_DAY,
    STOPPED,
    Band,
    Change,
    DayLog,
    Turn,
    bands_of,
    decode_day,
    encode_day,
    stops_of,
    turns_of,
)
from terrazzo.times import DAY_US

S = 1_000_000
DAY = 20_000
AT = DAY * DAY_US


def log_of(*changes: tuple[int, bool, str]) -> DayLog:
    log = DayLog([])
    for seconds, is_online, reason in changes:
        log.add(Change(AT + seconds * S, is_online, reason), DAY)
    return log


def bands(turns: list[Turn], start: int, end: int, *, now: int = 10**6, stops: tuple[int, ...] = ()) -> list[Band]:
    """Everything in seconds of the day."""
    found = bands_of(turns, [AT + each * S for each in stops], AT + start * S, AT + end * S, AT + now * S)
    return [
        each._replace(
            start_us=(each.start_us - AT) // S, end_us=None if each.end_us is None else (each.end_us - AT) // S
        )
        for each in found
    ]


def test_bands_have_no_gaps_and_say_why() -> None:
    turns = turns_of(DAY, log_of((10, True, ""), (50, False, "keep alive"), (80, True, "")))
    assert bands(turns, 0, 100) == [
        Band(0, 10, "unknown"),
        Band(10, 50, "online"),
        Band(50, 80, "offline", "keep alive"),
        Band(80, 100, "online"),
    ]
    assert bands(turns, 20, 60) == [Band(20, 50, "online"), Band(50, 60, "offline", "keep alive")]
    assert bands(turns, 60, 300, now=200)[-1] == Band(80, None, "online")
    assert bands([], 5, 9) == [Band(5, 9, "unknown")]
    assert bands(turns, 5, 5) == []


def test_the_platforms_stop_ends_connections_and_is_no_ones_fault() -> None:
    turns = turns_of(DAY, log_of((10, True, ""), (60, True, "")))
    assert bands(turns, 10, 100, stops=(50,)) == [
        Band(10, 50, "online"),
        Band(50, 60, "offline", STOPPED),
        Band(60, 100, "online"),
    ]
    turns = turns_of(DAY, log_of((10, True, ""), (20, False, "keep alive")))
    assert bands(turns, 10, 100, stops=(50,))[-1] == Band(20, 100, "offline", "keep alive")


def test_a_run_of_the_platform_ends_with_its_last_beat() -> None:
    days = [(DAY, log_of((0, True, ""), (60, False, STOPPED))), (DAY + 1, DayLog([(5_000, True, "")]))]
    assert stops_of(days) == [AT + 60 * S]
    assert stops_of(days[:1]) == []


def test_who_flaps_all_day_takes_no_more_than_its_bound() -> None:
    changes = [(second, second % 2 == 0, "x" * 500) for second in range(5_000)]
    log = decode_day(encode_day(log_of(*changes)))
    assert (len(log.changes), log.folded) == (MOST_A_DAY, 5_000 - MOST_A_DAY)
    assert len(encode_day(log)) < 3_000
    found = bands(turns_of(DAY, log), 0, 6_000)
    assert found[-2] == Band(MOST_A_DAY - 2, 4_999, "flapping", "", log.folded + 1)
    assert (found[-1].start_us, found[-1].state) == (4_999, "offline")


def test_a_break_that_was_mended_within_a_millisecond_is_a_band_all_the_same() -> None:
    log = DayLog([])
    for offset_us, is_online in ((0, True), (100, False), (300, True), (500, False), (900, True)):
        log.add(Change(AT + offset_us, is_online, "" if is_online else f"end at {offset_us}"), DAY)
    found = bands_of(turns_of(DAY, log), [], AT, AT + S, AT + S)
    assert [each.reason for each in found if each.state == "offline"] == ["end at 100", "end at 500"]


def test_a_clock_that_was_set_back_tells_the_time_that_it_shows() -> None:
    log = log_of((3_600, True, ""), (60, False, "keep alive"))
    assert [offset_ms for offset_ms, *_ in log.changes] == [3_600_000, 60_000]
