"""Columns: of segments, and of hours that are not sealed; built from records, and read for charts.

An hour's columns are read from disk if they are valid; otherwise its records are decoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rocksdict import RdictIter

from terrazzo.ports.store import Figures, Undivided
from terrazzo_adapters.columns.column import PointColumn, build_columns, encode_column, joined, parse_column
from terrazzo_adapters.columns.extremes import Extremes
from terrazzo_adapters.columns.name_tally import make_tally
from terrazzo_adapters.columns.points import parse_points
from terrazzo_adapters.columns.resample import Resampler
from terrazzo_adapters.columns.rollup import HOUR_US, PARTS_US, chosen, outside, with_points
from terrazzo_adapters.columns.strip import Stone, Strip, beside, lay
from terrazzo_adapters.keyvalue.readers import still_wanted
from terrazzo_adapters.keyvalue.walk import View
from terrazzo_adapters.rocksdb import blocks
from terrazzo_adapters.rocksdb.extents import Extent, extents_up, open_segment
from terrazzo_adapters.rocksdb.hours import BuiltHour, Hour, together, walk_hours
from terrazzo_adapters.rocksdb.keys import LATEST_US, column_key
from terrazzo_adapters.rocksdb.reads import series_ids
from terrazzo_adapters.rocksdb.sealed import guarded
from terrazzo_adapters.rocksdb.segment_cache import cache
from terrazzo_adapters.rocksdb.unsealed import records
from terrazzo_adapters.segments.parts import made_part

if TYPE_CHECKING:
    from terrazzo_adapters.segments import Segment

_NO_POINTS = PointColumn(np.zeros(0, np.int64), np.zeros(0, np.uint8), np.zeros(0, np.float64), [])

__all__ = ["Extremes", "Resampler", "build_hour", "column_piece", "feed"]

_PIECE_POINTS = 50_000
_RUN_STRETCHES = 2_000  # segments by names that are answered for in one piece: of each some hundred hours
_STRIP_BYTES = 4 << 20  # of one name, about five years of hours
_NO_TIMES = np.zeros(0, np.int64)
_NO_FIGURES = Figures(0, _NO_TIMES, _NO_TIMES, np.zeros(0), np.zeros((4, 0)), np.zeros((4, 0), np.int64))


def build_hour(view: View, slot: int) -> BuiltHour:
    """The tally and the columns of one hour of one series, from its records."""
    series_id, hour = divmod(slot, 1 << 32)
    start_us = hour * HOUR_US
    records = [
        (time_us, parse_points(body)) for time_us, body in _timed(view, series_id, start_us, start_us + HOUR_US - 1)
    ]
    tally = make_tally(points for _, points in records)
    columns = build_columns(records, tally.names)
    return BuiltHour(slot, tally, {name: encode_column(column, start_us) for name, column in columns.items()})


def feed(
    target: Resampler | Extremes, view: View, series: str, keys: Sequence[str], *, start_us: int, end_us: int
) -> None:
    """Adds the columns of a range to ``target``, oldest first; both ends are inclusive.

    Of what lies in one bucket only rollups are read, where a segment has them.
    """
    undivided = target.undivided if target.longest_us >= min(PARTS_US) else None  # where none is it need not be asked
    for piece in _pieces(view, series, keys, start_us, end_us, undivided):
        target.add(piece.columns)


Columns = dict[str, PointColumn | Figures]


class _Piece(NamedTuple):
    """Columns of a stretch. ``until_us``: when it ends, inclusive."""

    columns: Columns
    until_us: int


class ColumnPiece(NamedTuple):
    """Columns of a part of a range, oldest first. ``next_us``: where the rest begins; None: that was all."""

    columns: list[Columns]
    next_us: int | None


def column_piece(
    view: View, series: str, keys: Sequence[str], start_us: int, end_us: int, undivided: Undivided | None = None
) -> ColumnPiece:
    """The columns of the beginning of a range, of about ``_PIECE_POINTS`` points or figures; without empty ones."""
    found, points = [], 0
    for columns, until_us in _pieces(view, series, keys, start_us, end_us, undivided):
        filled = {key: column for key, column in columns.items() if _length(column)}
        if not filled:
            continue
        found.append(filled)
        points += sum(map(_length, filled.values()))
        if points >= _PIECE_POINTS:
            return ColumnPiece(found, until_us + 1 if until_us < end_us else None)
    return ColumnPiece(found, None)


def _length(column: PointColumn | Figures) -> int:
    return len(column.starts_us if isinstance(column, Figures) else column.times_us)


def _pieces(
    view: View, series: str, keys: Sequence[str], start_us: int, end_us: int, undivided: Undivided | None
) -> Iterator[_Piece]:
    start_us, end_us = max(0, start_us), min(end_us, LATEST_US)
    for series_id in series_ids(view, [series]).values() if start_us <= end_us else ():
        rows = _Rows(view, series_id, keys, start_us, end_us)
        figures = _RunFigures(view, series_id, keys, undivided)
        next_us = start_us
        for extent in _singled(extents_up(view, series_id, start_us, end_us), rows, figures, (start_us, end_us)):
            if isinstance(extent, _Piece):
                yield extent
                next_us = extent.until_us + 1
                continue
            still_wanted()
            yield from rows.pieces(next_us, extent.first_us - 1)
            whole = _Whole(undivided, max(start_us, extent.first_us if extent.left_out else 0), end_us)
            first_us, last_us = max(next_us, extent.first_us), min(extent.last_us, end_us)
            late = [piece.columns for piece in rows.pieces(first_us, last_us)]
            yield _Piece(_of_segment(view, extent, keys, (first_us, last_us), late, whole), last_us)
            next_us = extent.last_us + 1
        yield from rows.pieces(next_us, end_us)


def _singled(
    extents: Iterator[Extent], rows: _Rows, figures: _RunFigures, span_us: tuple[int, int]
) -> Iterator[Extent | _Piece]:
    """What many segments in a row have as figures, as one piece; segments that have to be looked at one by one."""
    run: list[Extent] = []
    next_us = span_us[0]
    for extent in extents:
        alone = not figures.most or not extent.is_whole or not extent.is_within(*span_us)
        alone = alone or rows.has_some(next_us, extent.last_us)
        if alone or len(run) >= figures.most:
            yield from figures.of(run)
            run = []
        if alone:
            yield extent
        else:
            run.append(extent)
        next_us = extent.last_us + 1
    yield from figures.of(run)


class _RunFigures:
    """Figures of segments in a row that nothing lies between, by name: put together once, and kept.

    ``most``: segments of a run; 0: nothing is undivided.
    """

    def __init__(self, view: View, series_id: int, keys: Sequence[str], undivided: Undivided | None) -> None:
        self._view, self._keys, self._undivided = view, keys, undivided
        self._memory = cache.of((series_id, 0), b"")
        self.most = 0 if undivided is None else max(1, _RUN_STRETCHES // max(1, len(keys)))

    def of(self, run: Sequence[Extent]) -> Iterable[Extent | _Piece]:
        """One piece with the figures of all names; the segments themselves where these are not enough."""
        slot_us = self._slot_of(run) if run else 0
        columns: Columns = {}
        for key in self._keys if slot_us else ():
            found = self._of_name(key, slot_us, run)
            if found is None:
                return run
            columns[key] = found if len(found.starts_us) else _NO_POINTS
        return [_Piece(columns, run[-1].last_us)] if columns else run

    def _slot_of(self, run: Sequence[Extent]) -> int:
        """How long the stretches are (microseconds) of which none is divided; 0: some always are."""
        first_us, end_us = run[0].first_us // HOUR_US * HOUR_US, run[-1].last_us
        for slot_us in (HOUR_US, *PARTS_US):
            stretches_us = np.arange(first_us, end_us + 1, slot_us)
            if self._undivided is not None and self._undivided(stretches_us, slot_us).all():
                return slot_us
        return 0

    def _of_name(self, key: str, slot_us: int, run: Sequence[Extent]) -> Figures | None:
        part = made_part(key, slot_us)
        marks, held = [extent.mark for extent in run], self._memory.find(part)
        if isinstance(held, bytes):  # a segment that has no figures
            if held in marks:
                return None
            held = None
        found: Figures | None = held.find(marks, run[0].last_us) if held is not None else None
        return found if found is not None else self._laid(part, key, slot_us, run, held)

    def _laid(self, part: bytes, key: str, slot_us: int, run: Sequence[Extent], held: Strip | None) -> Figures | None:
        known = {stone.mark: stone for stone in held.stones()} if held is not None else {}
        stones: list[Stone] = []
        for extent in run:
            still_wanted()
            stone = known.get(extent.mark) or self._stone(extent, key, slot_us)
            if stone is None:
                self._memory.keep(part, extent.mark, len(extent.mark))
                return None
            stones.append(stone)
        strip, every = lay(stones), lay(beside(held, stones))
        if every is not None and every.nbytes() <= _STRIP_BYTES:
            self._memory.keep(part, every, every.nbytes())
        elif strip is not None and strip.nbytes() <= _STRIP_BYTES:
            self._memory.keep(part, strip, strip.nbytes())
        return None if strip is None else strip.figures

    def _stone(self, extent: Extent, key: str, slot_us: int) -> Stone | None:
        with guarded(extent):
            segment = open_segment(self._view, extent)
            rollup = segment.rollup(key) if slot_us == HOUR_US else None
            rollup = rollup or segment.made_rollup(key, slot_us)
            if rollup is None and key not in segment.names:
                rollup = _NO_FIGURES
            return None if rollup is None else Stone(extent.mark, extent.last_us, rollup)
        return None


class _Whole(NamedTuple):
    """Which stretches of a segment may stand as a whole: undivided, and all within a range, both ends inclusive."""

    undivided: Undivided | None
    start_us: int
    end_us: int

    def of(self, starts_us: NDArray[np.int64], length_us: int) -> NDArray[np.bool_]:
        if self.undivided is None:
            return np.zeros(len(starts_us), np.bool_)
        within = (starts_us >= self.start_us) & (starts_us <= self.end_us - (length_us - 1))
        return within & self.undivided(starts_us, length_us)


def _of_segment(
    view: View,
    extent: Extent,
    keys: Sequence[str],
    span_us: tuple[int, int],
    late: Sequence[Columns],
    whole: _Whole,
) -> Columns:
    """The points of a segment's records in a range, with those that came late; as figures where it can be."""
    found: Columns = {}
    segment: Segment | None = None
    with guarded(extent):
        segment = open_segment(view, extent)
    for key in keys:
        more = [column for columns in late if isinstance(column := columns.get(key), PointColumn) and _length(column)]
        figures = None if segment is None or more else _figures(segment, extent, key, span_us, whole)
        if figures is not None:
            found[key] = figures
        else:
            column = _NO_POINTS if segment is None else _column(segment, extent, key).between(*span_us)
            found[key] = _merged([column, *more])
    return found


def _figures(segment: Segment, extent: Extent, key: str, span_us: tuple[int, int], whole: _Whole) -> Figures | None:
    """What of a name's points lies in undivided hours or parts of them, as figures, and the others as they are."""
    slot_us = _slot_of(whole.undivided, *span_us)
    if not slot_us:
        return None
    with guarded(extent):
        rollup = segment.rollup(key) if slot_us == HOUR_US else None
        rollup = rollup or segment.made_rollup(key, slot_us)
        if rollup is None:
            return None
        kept = whole.of(rollup.starts_us, slot_us)
        if kept.all():
            return rollup
        rollup = chosen(rollup, kept)
        if len(rollup.starts_us):
            return with_points(rollup, outside(segment.column(key).between(*span_us), rollup.starts_us, slot_us))
    return None


def _slot_of(undivided: Undivided | None, first_us: int, last_us: int) -> int:
    """How long the stretches are (microseconds) that may stand for the points of a range; 0: none may.

    Hours where all or some are undivided, or parts of them where that helps all hours that are divided.
    """
    if undivided is None:
        return 0
    hours_us = np.arange(first_us // HOUR_US, last_us // HOUR_US + 1) * HOUR_US
    divided = ~undivided(hours_us, HOUR_US)
    for slot_us in PARTS_US if divided.any() else ():
        if undivided((np.arange(0, HOUR_US, slot_us)[:, None] + hours_us[divided]).ravel(), slot_us).all():
            return slot_us
    return 0 if divided.all() else HOUR_US


def _column(segment: Segment, extent: Extent, key: str) -> PointColumn:
    with guarded(extent):
        return segment.column(key) if key in segment.names else _NO_POINTS
    return _NO_POINTS


def _merged(columns: Sequence[PointColumn]) -> PointColumn:
    """The points of all in order; of one time those of a later column come after the others."""
    filled = [column for column in columns if len(column.times_us)]
    if len(filled) < 2:
        return filled[0] if filled else _NO_POINTS
    every = joined(filled)
    order = np.argsort(every.times_us, kind="stable")
    return PointColumn(every.times_us[order], every.kinds[order], every.numbers[order], every.texts)


class _Rows:
    """The columns of records that are not sealed: of hours, which are walked once."""

    def __init__(self, view: View, series_id: int, keys: Sequence[str], start_us: int, end_us: int) -> None:
        self._view, self._series_id, self._keys = view, series_id, keys
        self._cursor: RdictIter | None = None
        self._hours = walk_hours(view, series_id, start_us, end_us)
        self._held: deque[Hour] = deque()  # those that the next range may need, too

    def pieces(self, start_us: int, end_us: int) -> Iterator[_Piece]:
        """The columns of a range, both ends inclusive, hour by hour, oldest first; ranges come in order."""
        while self._held and (self._held[0].number + 1) * HOUR_US <= start_us:
            self._held.popleft()
        hours = chain(tuple(self._held), self._further()) if start_us <= end_us else iter(())
        for some in together(hours, start_us, end_us):
            still_wanted()
            until_us = min((some[-1].number + 1) * HOUR_US - 1, end_us)
            yield _Piece(self._columns(some, start_us, end_us), until_us)

    def has_some(self, start_us: int, end_us: int) -> bool:
        """Whether there may be records in a range, which comes in order."""
        while self._held and (self._held[0].number + 1) * HOUR_US <= start_us:
            self._held.popleft()
        while not self._held:
            hour = next(self._hours, None)
            if hour is None:
                return False
            if (hour.number + 1) * HOUR_US > start_us:
                self._held.append(hour)
        return self._held[0].number * HOUR_US <= end_us

    def _further(self) -> Iterator[Hour]:
        for hour in self._hours:
            self._held.append(hour)
            yield hour

    def _columns(self, hours: Sequence[Hour], start_us: int, end_us: int) -> Columns:
        if hours[0].tally is None:
            return {**records.columns(self._view, self._series_id, hours, start_us, end_us, self._keys)}
        if self._cursor is None:
            self._cursor = self._view.iter()
        stored = _stored(self._cursor, self._series_id, hours[0], self._keys)
        return {key: column.between(start_us, end_us) for key, column in stored.items()}


def _timed(view: View, series_id: int, start_us: int, end_us: int) -> Iterator[tuple[int, bytes]]:
    return ((int.from_bytes(order[:8]), body) for order, body in blocks.up(view, series_id, start_us, end_us))


def _stored(cursor: RdictIter, series_id: int, hour: Hour, keys: Sequence[str]) -> dict[str, PointColumn]:
    assert hour.tally is not None
    columns: dict[str, PointColumn] = {}
    for key in keys:
        if key in hour.tally.names:
            place = column_key(series_id, hour.number, key)
            cursor.seek(place)
            if cursor.valid() and cursor.key() == place:  # a name that was always null has no column
                columns[key] = parse_column(cursor.value(), hour.number * HOUR_US)
    return columns
