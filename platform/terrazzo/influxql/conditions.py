"""What of WHERE is a range of time, and what of it holds for a series, and for each of its rows."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import tzinfo
from typing import Any, NamedTuple

import numpy as np

from terrazzo.influxql.errors import QueryError
from terrazzo.influxql.moments import EARLIEST_NS, LATEST_NS, parse_moment
from terrazzo.influxql.patterns import Pattern
from terrazzo.influxql.syntax import (
    COMPARISONS,
    Binary,
    Call,
    Constant,
    Expr,
    Length,
    Logic,
    PatternOperand,
    Ref,
)
from terrazzo.influxql.values import is_tag, value_of
from terrazzo.influxql.vectors import FLAG, NUMBER, TEXT, Mask, Rows, Vector

_ORDERED: Mapping[str, Callable[[Any, Any], Any]] = {
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


class Span(NamedTuple):
    """A range of time, both ends inclusive, in nanoseconds."""

    start_ns: int = EARLIEST_NS
    end_ns: int = LATEST_NS

    def within(self, other: Span) -> Span:
        """What both have."""
        return Span(max(self.start_ns, other.start_ns), min(self.end_ns, other.end_ns))

    @property
    def has_start(self) -> bool:
        """Whether there is a first time."""
        return self.start_ns > EARLIEST_NS

    @property
    def has_end(self) -> bool:
        """Whether there is a last time."""
        return self.end_ns < LATEST_NS


def cut_time(where: Expr | None, now_ns: int, zone: tzinfo) -> tuple[Span, Expr | None]:
    """The range of time that a condition asks for, and what else it says.

    Raises:
        QueryError: times are compared in another way than within AND.
    """
    span, rest = Span(), []
    parts = where.parts if isinstance(where, Logic) and where.is_and else () if where is None else (where,)
    for part in parts:
        if isinstance(part, Logic) and part.is_and:
            inner, more = cut_time(part, now_ns, zone)
            span = span.within(inner)
            if more is not None:
                rest.append(more)
        elif (found := _time_of(part, now_ns, zone)) is not None:
            span = span.within(found)
        else:
            if _names_time(part):
                raise QueryError("conditions of time are served here in AND only, not in OR")
            rest.append(part)
    return span, None if not rest else rest[0] if len(rest) == 1 else Logic(True, tuple(rest))


def _is_time(expr: Expr) -> bool:
    return isinstance(expr, Ref) and expr.name.lower() == "time"


def _names_time(expr: Expr) -> bool:
    if isinstance(expr, Logic):
        return any(map(_names_time, expr.parts))
    return isinstance(expr, Binary) and (_is_time(expr.left) or _is_time(expr.right))


def _time_of(expr: Expr, now_ns: int, zone: tzinfo) -> Span | None:
    """The range of one comparison with ``time``; None where it is none."""
    if not isinstance(expr, Binary) or expr.sign not in COMPARISONS or not _names_time(expr):
        return None
    sign, other = expr.sign, expr.right
    if not _is_time(expr.left):
        sign, other = _MIRRORED.get(sign, sign), expr.left
    at_ns = _moment(other, now_ns, zone)
    match sign:
        case "=":
            return Span(at_ns, at_ns)
        case "<":
            return Span(end_ns=at_ns - 1)
        case "<=":
            return Span(end_ns=at_ns)
        case ">":
            return Span(at_ns + 1)
        case ">=":
            return Span(at_ns)
    raise QueryError(f"invalid time comparison operator: {sign}")


def _moment(expr: Expr, now_ns: int, zone: tzinfo) -> int:
    match expr:
        case Constant(bool()):
            pass
        case Constant(str() as text):
            return parse_moment(text, zone)
        case Constant(int() | float() as number):
            return int(number)
        case Length(ns):
            return ns
        case Call("now", ()):
            return now_ns
        case Binary("+", left, right):
            return _moment(left, now_ns, zone) + _moment(right, now_ns, zone)
        case Binary("-", left, right):
            return _moment(left, now_ns, zone) - _moment(right, now_ns, zone)
    raise QueryError("invalid operation: time is compared with what is no time")


def may_hold(where: Expr | None, tags: Mapping[str, str]) -> bool:
    """Whether a condition can hold for a row of a series with these tags, whatever its fields are."""
    return where is None or _known(where, tags) is not False


def must_hold(where: Expr | None, tags: Mapping[str, str]) -> bool:
    """Whether a condition holds for every row of a series with these tags, whatever its fields are."""
    return where is None or _known(where, tags) is True


def _known(expr: Expr, tags: Mapping[str, str]) -> bool | None:
    """Whether it holds for all rows or for none; None: that depends on fields."""
    if isinstance(expr, Logic):
        found = [_known(part, tags) for part in expr.parts]
        decisive = not expr.is_and
        return decisive if decisive in found else None if None in found else not decisive
    if isinstance(expr, Binary) and isinstance(expr.left, Ref) and is_tag(expr.left.name, expr.left.cast, tags):
        value = tags.get(expr.left.name, "")
        match expr.right:
            case PatternOperand(pattern):
                return pattern.finds(value) == (expr.sign == "=~")
            case Constant(str() as text) if expr.sign in ("=", "!="):
                return (value == text) == (expr.sign == "=")
    return None


def mask_of(expr: Expr, rows: Rows, tags: Collection[str]) -> Mask:
    """For which rows a condition holds.

    Raises:
        QueryError: it is none.
    """
    match expr:
        case Logic(is_and, parts):
            masks = [mask_of(part, rows, tags) for part in parts]
            return np.asarray(np.logical_and.reduce(masks) if is_and else np.logical_or.reduce(masks))
        case Binary(sign, left, PatternOperand(pattern)):
            return _found(_operand(left, rows, tags), pattern, sign == "=~")
        case Binary(sign, left, right) if sign in COMPARISONS:
            return _compared(sign, _operand(left, rows, tags), _operand(right, rows, tags))
        case Constant(bool() as value):
            return np.full(len(rows.times), value)
        case Ref():
            vector = _operand(expr, rows, tags)
            return np.asarray((vector.kinds == FLAG) & (vector.numbers != 0))
    raise QueryError("invalid condition expression")


def _operand(expr: Expr, rows: Rows, tags: Collection[str]) -> Vector:
    if isinstance(expr, Ref) and expr.cast == "" and expr.name not in tags and expr.name not in rows.columns:
        return rows.tag(expr.name)  # a tag that no series has is empty
    return value_of(expr, rows, tags)


def _found(vector: Vector, pattern: Pattern, wanted: bool) -> Mask:
    each = np.array([pattern.finds(text) == wanted for text in vector.texts] or [False])
    return _by_text(vector, each)


def _by_text(vector: Vector, each: Mask) -> Mask:
    """What is true of the text of each row; false where there is none."""
    is_text = vector.kinds == TEXT
    return np.asarray(is_text & each[np.where(is_text, vector.numbers, 0).astype(np.intp)])


def _compared(sign: str, left: Vector, right: Vector) -> Mask:
    numbers = (left.kinds == NUMBER) & (right.kinds == NUMBER)
    if sign in _ORDERED:
        return np.asarray(numbers & _ORDERED[sign](left.numbers, right.numbers))
    either = numbers | ((left.kinds == FLAG) & (right.kinds == FLAG))
    wanted = sign == "="
    return np.asarray((either & ((left.numbers == right.numbers) == wanted)) | _equal_texts(left, right, wanted))


def _equal_texts(left: Vector, right: Vector, wanted: bool) -> Mask:
    if len(left.texts) == 1:
        left, right = right, left
    if len(right.texts) == 1:
        each = np.array([(text == right.texts[0]) == wanted for text in left.texts] or [False])
        return np.asarray(_by_text(left, each) & (right.kinds == TEXT))
    both = (left.kinds == TEXT) & (right.kinds == TEXT)
    found = np.zeros(len(both), np.bool_)
    for place in np.flatnonzero(both).tolist():
        equal = left.texts[int(left.numbers[place])] == right.texts[int(right.numbers[place])]
        found[place] = equal == wanted
    return found
