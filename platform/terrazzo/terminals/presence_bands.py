"""What a terminal's connection did on a day, in few bytes, and the bands that a screen draws of it. Pure.

A day has at most ``MOST_A_DAY`` changes. Of a terminal that changes oftener the first ones are kept and the last one;
those between are counted, and shown as one band. So a year of a terminal that flaps all the time takes about 500 KB,
and of one that is gone once a day 20 KB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec

from terrazzo.times import DAY_US

MOST_A_DAY = 40
MOST_REASON = 48  # characters
STOPPED = "the platform was not running"
ONLINE, OFFLINE, FLAPPING, UNKNOWN = "online", "offline", "flapping", "unknown"


class Change(NamedTuple):
    """A connection began (``is_online``) or ended, at a time (UTC microseconds), and why it ended."""

    time_us: int
    is_online: bool
    reason: str


class DayLog(msgspec.Struct, array_like=True):
    """The changes of a day: milliseconds since its midnight (UTC), whether online, why not; and how many are folded.

    The folded ones were between the last change and the one before it.
    """

    changes: list[tuple[int, bool, str]]
    folded: int = 0

    def add(self, change: Change, day: int) -> None:
        """Adds a change, which is later than all others: one of the same millisecond has the next one, else the band
        between the two would have no length, and a break that was mended at once would never be told.
        """
        offset_ms = (change.time_us - day * DAY_US) // 1_000
        if self.changes and 0 <= self.changes[-1][0] - offset_ms < MOST_A_DAY:  # further back: the clock was set
            offset_ms = self.changes[-1][0] + 1
        entry = offset_ms, change.is_online, change.reason[:MOST_REASON]
        if len(self.changes) < MOST_A_DAY:
            self.changes.append(entry)
        else:
            self.changes[-1] = entry
            self.folded += 1


_decode = msgspec.msgpack.Decoder(DayLog).decode
encode_day = msgspec.msgpack.Encoder().encode


def decode_day(log: bytes) -> DayLog:
    """A day as it was stored; raises ``msgspec.MsgspecError`` for anything else."""
    return _decode(log)


class Band(NamedTuple):
    """A stretch of time in one state, UTC microseconds; ``end_us`` None: it goes on.

    ``reason``: why it is not online; ``changes``: how many a flapping one has.
    """

    start_us: int
    end_us: int | None
    state: str
    reason: str = ""
    changes: int = 0


class Turn(NamedTuple):
    """From this time on it is in this state."""

    time_us: int
    state: str
    reason: str = ""
    changes: int = 0


def turns_of(day: int, log: DayLog) -> list[Turn]:
    """The changes of a stored day."""
    midnight_us, turns = day * DAY_US, list[Turn]()
    for offset_ms, is_online, reason in log.changes:
        turns.append(Turn(midnight_us + offset_ms * 1_000, ONLINE if is_online else OFFLINE, reason))
    if log.folded and len(turns) > 1:
        turns[-2] = Turn(turns[-2].time_us, FLAPPING, "", log.folded + 1)
    return turns


def bands_of(turns: Iterable[Turn], stops: Iterable[int], start_us: int, end_us: int, now_us: int) -> list[Band]:
    """The bands of a range, in order, without gaps.

    Args:
        turns: in the order of time, from before the range on where there are such.
        stops: when the platform itself stopped, in the order of time: who was there has to come back.
    """
    stopped = [Turn(each, OFFLINE, STOPPED) for each in stops]
    bands: list[Band] = []
    state = Turn(0, UNKNOWN)
    for turn in sorted([*turns, *stopped], key=lambda each: each.time_us):
        if turn.reason == STOPPED and state.state in (OFFLINE, UNKNOWN):
            continue
        if turn.time_us > end_us:
            break
        _append(bands, state, turn.time_us, start_us)
        state = turn
    last_us = None if end_us >= now_us else end_us
    if max(state.time_us, start_us) < end_us:
        bands.append(_band(state, last_us, start_us))
    return bands


def _append(bands: list[Band], state: Turn, until_us: int, start_us: int) -> None:
    if until_us > max(state.time_us, start_us):
        bands.append(_band(state, until_us, start_us))


def _band(state: Turn, end_us: int | None, start_us: int) -> Band:
    return Band(max(state.time_us, start_us), end_us, state.state, state.reason, state.changes)


def with_stops(turns: Iterable[Turn], stops: Iterable[int]) -> list[Turn]:
    """Turns of a terminal in the order of time, and where it was online when the platform stopped, its end then."""
    stopped = [Turn(each, OFFLINE, STOPPED) for each in stops]
    found: list[Turn] = []
    for turn in sorted([*turns, *stopped], key=lambda each: each.time_us):
        if turn.reason != STOPPED or (found and found[-1].state in (ONLINE, FLAPPING)):
            found.append(turn)
    return found


def stops_of(logs: Sequence[tuple[int, DayLog]]) -> list[int]:
    """When the platform stopped: its log has its starts, its ends, and the last beat of each run."""
    turns = [turn for day, log in logs for turn in turns_of(day, log)]
    return [before.time_us for before, after in pairwise(turns) if after.state == ONLINE]
