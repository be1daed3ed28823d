"""Arithmetic over rows: expressions to values of each row."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from terrazzo.influxql.errors import QueryError
from terrazzo.influxql.syntax import Binary, Call, Constant, Expr, Length, Ref
from terrazzo.influxql.vectors import Rows, Vector, constant, of_numbers

Floats = NDArray[np.float64]


def _divided(left: Floats, right: Floats) -> Floats:
    """By zero is zero, as InfluxDB has it."""
    return np.divide(left, right, out=np.zeros(len(left)), where=right != 0)


def _modulo(left: Floats, right: Floats) -> Floats:
    return np.fmod(left, right, out=np.zeros(len(left)), where=right != 0)


ARITHMETIC: Mapping[str, Callable[[Any, Any], Any]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": _divided,
    "%": _modulo,
}
MATH: Mapping[str, Callable[[Any], Any]] = {
    "abs": np.abs,
    "acos": np.arccos,
    "asin": np.arcsin,
    "atan": np.arctan,
    "ceil": np.ceil,
    "cos": np.cos,
    "exp": np.exp,
    "floor": np.floor,
    "ln": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "round": lambda numbers: np.copysign(np.floor(np.abs(numbers) + 0.5), numbers),
    "sin": np.sin,
    "sqrt": np.sqrt,
    "tan": np.tan,
}
MATH_OF_TWO: Mapping[str, Callable[[Any, Any], Any]] = {
    "atan2": np.arctan2,
    "log": lambda numbers, base: _divided(np.log(numbers), np.log(base)),
    "pow": np.power,
}


def value_of(expr: Expr, rows: Rows, tags: Collection[str]) -> Vector:
    """The value of an expression in each row; ``tags``: the names that are tags.

    Raises:
        QueryError: it can't be computed from one row.
    """
    match expr:
        case Constant(value):
            return constant(value, len(rows.times))
        case Length(ns):
            return constant(float(ns), len(rows.times))
        case Ref(name, cast):
            return rows.tag(name) if is_tag(name, cast, tags) else rows.column(name)
        case Binary(sign, left, right) if sign in ARITHMETIC:
            return combined(sign, value_of(left, rows, tags), value_of(right, rows, tags))
        case Call(name, args):
            return mathematics(name, [value_of(arg, rows, tags) for arg in args])
    raise QueryError(f"{getattr(expr, 'sign', 'an expression')} is not served here for fields")


def is_tag(name: str, cast: str, tags: Collection[str]) -> bool:
    """Whether a name means a tag."""
    return cast == "tag" or (cast != "field" and name in tags)


def combined(sign: str, left: Vector, right: Vector) -> Vector:
    """Arithmetic of two values in each row; nothing where one has no number."""
    there = left.is_numeric & right.is_numeric
    with np.errstate(all="ignore"):
        return of_numbers(ARITHMETIC[sign](left.numbers, right.numbers), there)


def mathematics(name: str, args: list[Vector]) -> Vector:
    """A function of one or two numbers in each row.

    Raises:
        QueryError: there is none of the name, or not with so many arguments.
    """
    with np.errstate(all="ignore"):
        if name in MATH and len(args) == 1:
            return of_numbers(MATH[name](args[0].numbers), args[0].is_numeric)
        if name in MATH_OF_TWO and len(args) == 2:
            there = args[0].is_numeric & args[1].is_numeric
            return of_numbers(MATH_OF_TWO[name](args[0].numbers, args[1].numbers), there)
    if name in MATH or name in MATH_OF_TWO:
        raise QueryError(f"invalid number of arguments for {name}")
    raise QueryError(f"undefined function {name[:100]}()")
