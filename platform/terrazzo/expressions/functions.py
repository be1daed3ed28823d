"""What compiled expressions call. Everything is bounded; what can't be computed raises one of ``FAULTS``."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, NoReturn

from terrazzo.reasons import say

Value = int | float | str | bool | None

FAULTS = (TypeError, ValueError, ArithmeticError, LookupError)
"""What an operand that is missing or of the wrong kind, a division by zero and the like raise: the result is null."""

LARGEST = 1.7976931348623157e308
_INTEGERS = range(-(2**63), 2**63)
ORDERED_CHARS = 128  # of two texts, by which they are ordered: more would take as long as the texts are
_NUMBER_CHARS = 400  # of the longest text that is looked at as a number; the largest one has 309 digits

ARGUMENTS: dict[str, tuple[int, int]] = {
    "abs": (1, 1),
    "min": (2, 16),
    "max": (2, 16),
    "round": (1, 2),
    "floor": (1, 1),
    "ceil": (1, 1),
    "sqrt": (1, 1),
    "log": (1, 2),
    "exp": (1, 1),
    "bit": (2, 2),
}
"""The functions, and how many arguments each takes."""


def settle(value: Any) -> Value:
    """A result as it is kept: integers beyond 64 bits as floats, what isn't a finite number as null."""
    kind = value.__class__
    if kind is float:
        return value if -LARGEST <= value <= LARGEST else None
    if kind is int and value not in _INTEGERS:
        return settle(_to_float(value))
    return value  # type: ignore[no-any-return]  # a text, a truth or null


def _to_float(value: int) -> float | None:
    try:
        return float(value)
    except OverflowError:
        return None


def missing() -> NoReturn:
    """An operand that isn't there."""
    raise TypeError("a missing operand")


def power(base: float | int, exponent: float | int) -> float | int:
    """``base ** exponent``, exact where the result fits into 64 bits."""
    if isinstance(base, int) and isinstance(exponent, int) and exponent >= 0 and exponent * base.bit_length() <= 64:
        return int(base**exponent)
    result: Any = float(base) ** float(exponent)
    if isinstance(result, complex):
        raise ValueError(say("root_of_negative"))
    return float(result)


def rounded(value: float | int, digits: float | int = 0) -> float | int:
    """To so many digits behind the point, half to even; without ``digits`` an integer."""
    if not -15 <= digits <= 15 or digits != int(digits):
        raise ValueError(say("digits_out_of_range"))
    return _bounded(round(value, int(digits)) if digits else round(value))


def floor(value: float | int) -> float | int:
    """The largest integer that isn't greater."""
    return _bounded(math.floor(value))


def ceil(value: float | int) -> float | int:
    """The smallest integer that isn't less."""
    return _bounded(math.ceil(value))


def logarithm(value: float | int, base: float | int | None = None) -> float:
    """The natural logarithm, or that to a base."""
    return math.log(value) if base is None else math.log(value, base)


def bit(value: float | int, number: float | int) -> int:
    """Bit ``number`` (from 0) of an integer, 0 or 1; negative ones in two's complement."""
    if value != int(value) or number != int(number) or not 0 <= number <= 63:
        raise ValueError(say("bits_out_of_range"))
    return int(value) >> int(number) & 1


def _bounded(value: float | int) -> float | int:
    return value if value.__class__ is float or value in _INTEGERS else float(value)


def as_number(value: Any) -> int | float | None:
    """What reads as a finite number: a number, true and false as 1 and 0, or such a text; None for anything else."""
    if value is None or isinstance(value, int | float):
        return int(value) if value.__class__ is bool else value
    if len(value) > _NUMBER_CHARS:
        return None
    text = value.strip()
    try:
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) and "_" not in text else None


def as_text(value: Value) -> str:
    """A value as records show it: integral numbers without a point, ``true`` and ``false`` as in JSON, null empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return str(value)


def same(left: Any, right: Any) -> bool:
    """Equal as numbers where both read as numbers, else as texts."""
    if left is None or right is None:
        missing()
    one, other = as_number(left), as_number(right)
    if one is not None and other is not None:
        return one == other
    return as_text(left) == as_text(right)


def plain(value: Any) -> Any:
    """For an ordering by the same rule: the number that a text reads as."""
    number = as_number(value)
    return value if number is None else number


def _ordering(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    """An ordering that takes no longer for long texts, which have none where they begin alike for too long."""

    of_equals = compare(0, 0)

    def ordered(left: Any, right: Any) -> bool:
        if left.__class__ is not str or right.__class__ is not str:
            return compare(left, right)
        one, other = left[:ORDERED_CHARS], right[:ORDERED_CHARS]
        if one != other:
            return compare(one, other)
        if left == right:
            return of_equals
        if len(left) > ORDERED_CHARS < len(right):
            raise ValueError(say("texts_too_alike"))
        return compare(left, right)

    return ordered


less = _ordering(operator.lt)

ORDERINGS: dict[str, Callable[[Any, Any], bool]] = {
    "<": less,
    "<=": _ordering(operator.le),
    ">": _ordering(operator.gt),
    ">=": _ordering(operator.ge),
}
"""What operators are where both sides may be texts."""


def least(*values: Any) -> Any:
    """The smallest of numbers or of texts."""
    if values[0].__class__ is not str:
        return min(values)
    found = values[0]
    for each in values[1:]:
        found = each if less(each, found) else found
    return found


def greatest(*values: Any) -> Any:
    """The largest of numbers or of texts."""
    if values[0].__class__ is not str:
        return max(values)
    found = values[0]
    for each in values[1:]:
        found = each if less(found, each) else found
    return found


CALLED: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "min": least,
    "max": greatest,
    "round": rounded,
    "floor": floor,
    "ceil": ceil,
    "sqrt": math.sqrt,
    "log": logarithm,
    "exp": math.exp,
    "bit": bit,
    "same": same,
    "plain": plain,
}
"""By name; ``same`` and ``plain`` are what ``==`` and ``@Compare`` of a row become, and can't be written."""
