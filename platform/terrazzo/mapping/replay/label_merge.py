"""The labels of a range made anew: which rows change, come and go. Pure.

What lies before the range and after it stays as it is. A label that reaches across an edge of the range is one label
where the rows and the replay agree that it was open there; where they don't, it ends or begins at the edge. A closing
by hand is no report and comes back in no replay: it is kept, and cuts the label that the replay finds.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec
from msgspec.structs import replace

from terrazzo.mapping.effects import LabelOpened
from terrazzo.mapping.labels import Key

Row = Mapping[str, Any]

FOREVER_US = 2**63


class Interval(msgspec.Struct, frozen=True):
    """A label as the replay finds it. ``close_us`` None: open at the end of the range."""

    opened: LabelOpened
    close_us: int | None
    by_hand: bool = False

    @property
    def key(self) -> Key:
        """What identifies the label: its retainer script and its code."""
        return self.opened.project_id, self.opened.code


class Range(msgspec.Struct, frozen=True):
    """What is made anew, both ends inclusive; ``end_us`` None: up to now, and open labels stay open."""

    start_us: int
    end_us: int | None

    def holds(self, time_us: int) -> bool:
        """Whether a time lies in the range."""
        return self.start_us <= time_us and (self.end_us is None or time_us <= self.end_us)


def divided(
    intervals: Iterable[Interval], span: Range, most: int, hands: Container[int]
) -> list[tuple[Range, list[Interval]]]:
    """Parts of a range with about ``most`` intervals of one label each, cut where the label is not open.

    Merged one after the other they make what the whole makes: what rows say to be open there ends and begins anew, and
    belongs to the next part.

    Args:
        hands: when somebody closed the label; where a part began just then, nothing of that row were left to say so.
    """
    parts: list[tuple[Range, list[Interval]]] = []
    start_us, some, last_us = span.start_us, list[Interval](), -1
    for interval in sorted(intervals, key=lambda each: each.opened.opened_us):
        opened_us = interval.opened.opened_us
        is_between = last_us < opened_us and start_us < opened_us and span.holds(opened_us)
        if len(some) >= most and is_between and opened_us not in hands:
            parts.append((Range(start_us, opened_us - 1), some))
            start_us, some = opened_us, []
        some.append(interval)
        last_us = max(last_us, FOREVER_US if interval.close_us is None else interval.close_us)
    return [*parts, (Range(start_us, span.end_us), some)]


def openings(intervals: Iterable[Interval], span: Range) -> set[tuple[Key, int]]:
    """When the replay finds labels opened, as rows of the range say it."""
    return {(each.key, max(each.opened.opened_us, span.start_us)) for each in intervals}


def is_outdated(row: Row, found: Set[tuple[Key, int]], span: Range) -> bool:
    """Whether a row goes whatever else is there: it lies in the range alone, nobody closed it by hand, and the replay
    finds nothing that was opened then (``openings``)."""
    opened_us, close_us = row["opened_at"], row["close_at"]
    if row["by_hand"] or close_us is None or not span.holds(opened_us) or not span.holds(close_us):
        return False
    return ((row["project_id"], row["code"]), opened_us) not in found


class Changes(msgspec.Struct):
    """Rows of one table: new values by id, new rows, ids that go."""

    updates: dict[int, dict[str, Any]] = msgspec.field(default_factory=dict)
    inserts: list[dict[str, Any]] = msgspec.field(default_factory=list)
    deletes: list[int] = msgspec.field(default_factory=list)


def merge_labels(rows: Iterable[Row], intervals: Iterable[Interval], span: Range) -> Changes:
    """What has to change in the table ``label``.

    Args:
        rows: of one object and of the retainers that were replayed: all that reach into the range, and all that were
            closed by hand.
    """
    by_key: defaultdict[Key, tuple[list[Row], list[Interval]]] = defaultdict(lambda: ([], []))
    for row in rows:
        by_key[row["project_id"], row["code"]][0].append(row)
    for interval in intervals:
        by_key[interval.key][1].append(interval)
    changes = Changes()
    for known, found in by_key.values():
        _Label(known, span, changes).merge(found)
    return changes


def still_open(rows: Iterable[Row], intervals: Iterable[Interval]) -> set[Key]:
    """The labels that are open at the end and weren't closed by hand."""
    of_keys: defaultdict[Key, list[Row]] = defaultdict(list)
    for row in rows:
        of_keys[row["project_id"], row["code"]].append(row)
    hands = {key: sorted(_by_hand(some)) for key, some in of_keys.items()}
    return {each.key for each in intervals if _cut(each, hands.get(each.key, ())).close_us is None}


class _Label:
    """Merges the rows of one label with what the replay has made of it."""

    def __init__(self, rows: Sequence[Row], span: Range, changes: Changes) -> None:
        self._span = span
        self._changes = changes
        self._hands = sorted(_by_hand(row for row in rows if not self._outlasts(row)))
        touching = sorted((row for row in rows if self._reaches(row)), key=lambda row: row["opened_at"])
        self._before = next((row for row in reversed(touching) if row["opened_at"] < span.start_us), None)
        self._after = next((row for row in reversed(touching) if self._outlasts(row)), None)
        self._within: defaultdict[int, deque[Row]] = defaultdict(deque)  # by when they were opened, some at once
        for row in touching:
            if row["opened_at"] >= span.start_us:
                self._within[row["opened_at"]].append(row)

    def _reaches(self, row: Row) -> bool:
        end_us, close_us = self._span.end_us, row["close_at"]
        return (end_us is None or row["opened_at"] <= end_us) and (close_us is None or close_us >= self._span.start_us)

    def _outlasts(self, row: Row) -> bool:
        end_us, close_us = self._span.end_us, row["close_at"]
        return end_us is not None and (close_us is None or close_us > end_us)

    def merge(self, found: Iterable[Interval]) -> None:
        """Writes into the changes what these intervals make of the rows."""
        intervals = [cut for each in found if self._counts(cut := _cut(each, self._hands))]
        was_open = is_open = False
        for interval in sorted(intervals, key=lambda each: each.opened.opened_us):
            if interval.opened.opened_us < self._span.start_us:
                was_open = True
            is_open = is_open or interval.close_us is None
            self._put(interval)
        if self._before is not None and not was_open:
            self._set(self._before, {"close_at": self._span.start_us, "by_hand": 0})
        if self._after is not None and not is_open:
            self._keep_rest(self._after)
        self._changes.deletes += [row["id"] for same in self._within.values() for row in same]

    def _counts(self, interval: Interval) -> bool:
        """One that was closed by hand before the range is no matter of the range."""
        return interval.close_us is None or interval.close_us >= self._span.start_us

    def _put(self, interval: Interval) -> None:
        ending = self._ending(interval)
        opened_us = interval.opened.opened_us
        if opened_us < self._span.start_us and self._before is not None:
            self._set(self._before, ending)
            return
        opened_us = max(opened_us, self._span.start_us)
        values = msgspec.structs.asdict(interval.opened) | ending
        del values["opened_us"]
        same = self._within[opened_us]
        if same:
            self._set(same.popleft(), values)
        else:
            self._changes.inserts.append(values | {"opened_at": opened_us, "created": opened_us})

    def _ending(self, interval: Interval) -> dict[str, Any]:
        if interval.close_us is not None:
            return {"close_at": interval.close_us, "by_hand": int(interval.by_hand)}
        if self._after is not None:
            return {"close_at": self._after["close_at"], "by_hand": self._after["by_hand"]}
        return {"close_at": self._span.end_us, "by_hand": 0}

    def _keep_rest(self, row: Row) -> None:
        """What of a row lies behind the range."""
        end_us = self._span.end_us
        assert end_us is not None  # otherwise nothing outlasts it
        if row["close_at"] == end_us + 1:
            return  # nothing
        times = {"opened_at": end_us + 1, "created": end_us + 1}
        same = self._within[row["opened_at"]]
        if row in same:
            same.remove(row)
            self._set(row, times)
        else:
            self._changes.inserts.append({name: value for name, value in row.items() if name != "id"} | times)

    def _set(self, row: Row, values: Row) -> None:
        changed = {name: value for name, value in values.items() if row[name] != value}
        if changed:
            self._changes.updates[row["id"]] = changed


def _by_hand(rows: Iterable[Row]) -> Iterator[int]:
    """When somebody closed labels by hand."""
    return (row["close_at"] for row in rows if row["by_hand"] and row["close_at"] is not None)


def _cut(interval: Interval, hands: Sequence[int]) -> Interval:
    """Ends an opening at the time when somebody closed it by hand; ``hands``: in order."""
    close_us, place = interval.close_us, bisect_left(hands, interval.opened.opened_us)
    if place == len(hands) or (close_us is not None and hands[place] >= close_us):
        return interval
    return replace(interval, close_us=hands[place], by_hand=True)
