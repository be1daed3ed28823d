"""The functions of one SELECT over the rows of one group."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from terrazzo.influxql.aggregates import (
    CHOOSERS,
    OF_ALL_KINDS,
    REDUCERS,
    SELECTORS,
    Windowed,
    check_arguments,
    integral,
    points_of,
)
from terrazzo.influxql.conditions import Span
from terrazzo.influxql.digests import CHOSEN, REDUCED, Digest
from terrazzo.influxql.errors import QueryError
from terrazzo.influxql.moments import SECOND_NS
from terrazzo.influxql.planning import calls_in, moved, windows_before
from terrazzo.influxql.syntax import Binary, Call, Constant, Expr, Length, Ref, Select
from terrazzo.influxql.transforms import TRANSFORMS, WITH_UNIT, Stream, filled
from terrazzo.influxql.values import ARITHMETIC, combined, is_tag, mathematics
from terrazzo.influxql.vectors import NONE, Places, Rows, Times, Vector, aligned, constant, nothing
from terrazzo.influxql.windows import Windows


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for all groups.

    Args:
        windows: of GROUP BY time.
        now_ns: where windows end if the range has no end.
        tags: the names that are tags.
        most_windows: of one function in one group.
    """

    select: Select
    span: Span
    windows: Windows | None
    now_ns: int
    tags: Collection[str]
    most_windows: int

    def stream(self, expr: Expr, rows: Rows | Digest) -> Stream:
        """The values of a column.

        Raises:
            QueryError: it can't be computed.
        """
        return self._stream(expr, rows, self.span)

    def chosen(self, call: Call, rows: Rows) -> tuple[Stream, Places]:
        """The points that a function chooses, with what fills windows that have none; and the place of each point."""
        stream, ids = self._chosen(call, rows, self.span)
        if call.name in CHOOSERS or self.windows is None or self.select.fill.kind == "none" or not len(ids):
            return stream, np.arange(len(stream.times))
        every = self._every(ids, self.span)
        places = ids - every[0]
        found = filled(stream, places, self.windows.starts(every), self.select.fill, is_count=False)
        return found._replace(rows=stream.rows), places

    def _stream(self, expr: Expr, rows: Rows | Digest, span: Span) -> Stream:
        match expr:
            case Call(name) if name in TRANSFORMS:
                return self._transformed(expr, rows, span)
            case Call("integral"):
                return self._integral(expr, rows, span)
            case Call(name) if name in SELECTORS or name in CHOOSERS or name in REDUCERS:
                return self._windowed(expr, rows, span)
            case Call(name, args):
                return self._mathematics(name, args, rows, span)
            case Binary(sign, left, right) if sign in ARITHMETIC:
                return self._combined(sign, left, right, rows, span)
        raise QueryError("mixing aggregate and non-aggregate queries is not supported")

    # Points

    def _points(self, call: Call, rows: Rows | Digest, span: Span) -> tuple[Windowed, Places]:
        """The points that a function takes, and the row of each."""
        assert isinstance(rows, Rows), "digests are for functions that need no points"
        argument = call.args[0] if call.args else None
        if isinstance(argument, Call) and argument.name == "distinct" and call.name == "count":
            points, places = self._points(argument, rows, span)
            first = CHOOSERS["distinct"](points, points.starts, ())
            return points.take(first), places[first]
        if not isinstance(argument, Ref):
            raise QueryError(f"expected field argument in {call.name}()")
        if is_tag(argument.name, argument.cast, self.tags):
            return self._none(rows)
        places = self._in_span(rows.times, span)
        times, vector = rows.times[places], rows.column(argument.name).take(places)
        ids = np.zeros(len(times), np.int64) if self.windows is None else self.windows.ids(times)
        points = points_of(call.name, times, vector, ids)
        if len(points.times) != len(times):
            wanted = vector.kinds != NONE if call.name in _TAKE_TEXTS else vector.is_numeric
            places = places[wanted]
        return points, places

    def _none(self, rows: Rows) -> tuple[Windowed, Places]:
        none = np.zeros(0, np.int64)
        return Windowed(none, rows.column("").take(slice(0, 0)), none), none

    @staticmethod
    def _in_span(times: Times, span: Span) -> Places:
        start, end = np.searchsorted(times, span.start_ns, "left"), np.searchsorted(times, span.end_ns, "right")
        return np.arange(start, end)

    # Windows

    def _windowed(self, call: Call, rows: Rows | Digest, span: Span) -> Stream:
        """One value of each window, or several points of it."""
        if isinstance(rows, Digest):
            stream, ids = self._digested(call, rows, span)
            if not len(ids):
                return self._empty(rows, span)
        elif call.name in SELECTORS or call.name in CHOOSERS:
            stream, ids = self._chosen(call, rows, span)
            if call.name in CHOOSERS:
                return self._in_order(stream)
            if not len(ids):
                return self._empty(rows, span)
        else:
            check_arguments(call.name, _constants(call))
            points, _ = self._points(call, rows, span)
            starts = points.starts
            ids = points.ids[starts]
            if not len(starts):
                return self._empty(rows, span)
            stream = Stream(self._times(ids, span), REDUCERS[call.name](points, starts))
        return self._filled(call, stream, ids, span)

    def _digested(self, call: Call, digest: Digest, span: Span) -> tuple[Stream, NDArray[np.int64]]:
        """One value of each window that has points, without the points."""
        argument = call.args[0]
        assert isinstance(argument, Ref)
        field = digest.field(argument.name)
        row = CHOSEN.get(call.name)
        if row is None:
            return Stream(self._times(field.ids, span), REDUCED[call.name](field)), field.ids
        keeps_time = self.windows is None and self._is_alone
        times = field.times[row] if keeps_time else self._times(field.ids, span)
        return Stream(times, field.vector(row)), field.ids

    def _empty(self, rows: Rows | Digest, span: Span) -> Stream:
        """Of a field without points: nothing, or what fills windows where others of the group have points."""
        none = np.zeros(0, np.int64)
        stream = Stream(none, nothing(0))
        if self.windows is None or self.select.fill.kind != "number" or self._is_alone:
            return stream
        there = self._windows_of(self.windows, rows, span)
        if not len(there):
            return stream
        starts = self.windows.starts(self._every(there[[0, -1]], span))
        starts = starts[::-1] if self.select.is_descending else starts
        return filled(stream, none, starts, self.select.fill, is_count=False)

    def _windows_of(self, windows: Windows, rows: Rows | Digest, span: Span) -> NDArray[np.int64]:
        """The windows that have points of any field, ascending."""
        if isinstance(rows, Digest):
            return rows.ids
        return windows.ids(rows.times[self._in_span(rows.times, span)])

    def _chosen(self, call: Call, rows: Rows, span: Span) -> tuple[Stream, NDArray[np.int64]]:
        points, places = self._points(call, rows, span)
        arguments = check_arguments(call.name, _constants(call))
        chooser = SELECTORS.get(call.name) or CHOOSERS[call.name]
        chosen = chooser(points, points.starts, arguments) if len(points.times) else np.zeros(0, np.intp)
        ids = points.ids[chosen]
        keeps_time = call.name in ("bottom", "top") or (
            self.windows is None and call.name != "distinct" and self._is_alone
        )
        times = points.times[chosen] if keeps_time else self._times(ids, span)
        return Stream(times, points.vector.take(chosen), places[chosen]), ids

    @property
    def _is_alone(self) -> bool:
        """Whether there is one function: then what it chooses keeps its time."""
        return len(set(calls_in([column.expr for column in self.select.columns]))) == 1

    def _times(self, ids: NDArray[np.int64], span: Span) -> Times:
        if self.windows is not None:
            return self.windows.starts(ids)
        return np.full(len(ids), span.start_ns if span.has_start else 0, np.int64)

    def _filled(self, call: Call, stream: Stream, ids: NDArray[np.int64], span: Span) -> Stream:
        if self.windows is None or self.select.fill.kind == "none" or not len(ids):
            return self._in_order(stream)
        every = self._every(ids, span)
        places = ids - every[0]
        starts = self.windows.starts(every)
        if self.select.is_descending:
            places, starts = (len(every) - 1 - places)[::-1], starts[::-1]
            stream = stream.take(slice(None, None, -1))
        return filled(stream, places, starts, self.select.fill, is_count=call.name == "count")

    def _every(self, ids: NDArray[np.int64], span: Span) -> NDArray[np.int64]:
        assert self.windows is not None
        first = self.windows.id_of(span.start_ns) if span.has_start else int(ids[0])
        end_ns = span.end_ns if span.has_end else max(self.now_ns, span.start_ns)
        last = max(self.windows.id_of(end_ns), int(ids[-1]))
        if last - first >= self.most_windows:
            raise QueryError(f"max-select-buckets limit exceeded: ({last - first + 1}/{self.most_windows})")
        return np.arange(min(first, int(ids[0])), last + 1)

    def _in_order(self, stream: Stream) -> Stream:
        return stream.take(slice(None, None, -1)) if self.select.is_descending else stream

    # What follows from others

    def _transformed(self, call: Call, rows: Rows | Digest, span: Span) -> Stream:
        argument = call.args[0] if call.args else None
        if isinstance(argument, Call):
            if self.windows is None:
                raise QueryError(f"{call.name} aggregate requires a GROUP BY interval")
            length_ns = windows_before(call) * self.select.interval_ns
            inner = moved(span, length_ns, is_descending=self.select.is_descending)
            stream = self._stream(argument, rows, inner)
        else:
            if self.windows is not None:
                raise QueryError(f"aggregate function required inside the call to {call.name}")
            points, places = self._points(call, rows, span)
            stream = self._in_order(Stream(points.times, points.vector, places))
        wanted = stream.vector.is_there if call.name == "elapsed" else stream.vector.is_numeric
        stream = stream.take(wanted)._replace(rows=None)
        unit = self._unit(call)
        return TRANSFORMS[call.name](stream, unit) if len(stream.times) else stream

    def _unit(self, call: Call) -> int:
        """The unit of time of a function, or how many values it takes."""
        given = call.args[1] if len(call.args) > 1 else None
        most = 2 if call.name in WITH_UNIT or call.name == "moving_average" else 1
        if len(call.args) > most or (call.name == "moving_average" and given is None):
            raise QueryError(f"invalid number of arguments for {call.name}, expected {most}, got {len(call.args)}")
        if call.name == "moving_average":
            if not isinstance(given, Constant) or not isinstance(given.value, int) or given.value < 1:
                raise QueryError("moving_average window must be greater than 1")
            return min(given.value, 2**31)
        if given is None:
            if call.name == "elapsed":
                return 1
            return self.select.interval_ns if isinstance(call.args[0], Call) else SECOND_NS
        if not isinstance(given, Length) or given.ns <= 0:
            raise QueryError(f"duration argument must be positive, in {call.name}()")
        return given.ns

    def _integral(self, call: Call, rows: Rows | Digest, span: Span) -> Stream:
        given = call.args[1] if len(call.args) > 1 else Length(SECOND_NS)
        if len(call.args) > 2 or not isinstance(given, Length) or given.ns <= 0:
            raise QueryError("second argument must be a duration")
        points, _ = self._points(call, rows, span)
        if not len(points.times):
            return Stream(points.times, nothing(0))
        edges = None if self.windows is None else self.windows.starts
        ids = np.unique(points.ids)
        times = np.zeros(1, np.int64) if self.windows is None else self.windows.starts(ids)
        return self._in_order(Stream(times, integral(points, given.ns, edges)))

    def _mathematics(self, name: str, args: Sequence[Expr], rows: Rows | Digest, span: Span) -> Stream:
        streams = [None if isinstance(arg, Constant) else self._stream(arg, rows, span) for arg in args]
        real = [stream for stream in streams if stream is not None]
        times, vectors = _together(real)
        found = iter(vectors)
        values = [
            next(found) if stream is not None else constant(getattr(arg, "value", None), len(times))
            for stream, arg in zip(streams, args, strict=True)
        ]
        return Stream(times, mathematics(name, values))

    def _combined(self, sign: str, left: Expr, right: Expr, rows: Rows | Digest, span: Span) -> Stream:
        sides = []
        for side in (left, right):
            is_fixed = isinstance(side, Constant | Length)
            sides.append(None if is_fixed else self._stream(side, rows, span))
        times, vectors = _together([side for side in sides if side is not None])
        found = iter(vectors)
        a, b = (
            next(found) if stream is not None else _fixed(side, len(times))
            for stream, side in zip(sides, (left, right), strict=True)
        )
        return Stream(times, combined(sign, a, b))


_TAKE_TEXTS = OF_ALL_KINDS


def _fixed(expr: Expr, count: int) -> Vector:
    value = float(expr.ns) if isinstance(expr, Length) else getattr(expr, "value", None)
    return constant(value, count)


def _constants(call: Call) -> list[object]:
    """What a function is given beside its field."""
    return [arg.value if isinstance(arg, Constant) else arg for arg in call.args[1:]]


def _together(streams: Sequence[Stream]) -> tuple[Times, list[Vector]]:
    """The values of several streams that have the same time, in the order in which they come."""
    first = streams[0]
    if all(len(each.times) == len(first.times) and (each.times == first.times).all() for each in streams):
        return first.times, [each.vector for each in streams]
    is_descending = any(len(each.times) > 1 and each.times[0] > each.times[-1] for each in streams)
    if is_descending:
        streams = [each.take(slice(None, None, -1)) for each in streams]
    times, places = aligned({str(place): each.times for place, each in enumerate(streams)})
    vectors = []
    for place, each in enumerate(streams):
        found, where = nothing(len(times)), places[str(place)]
        if where is None:
            vectors.append(each.vector)
            continue
        found.kinds[where], found.numbers[where] = each.vector.kinds, each.vector.numbers
        vectors.append(Vector(found.kinds, found.numbers, each.vector.texts))
    return (times[::-1], [each.take(slice(None, None, -1)) for each in vectors]) if is_descending else (times, vectors)
