"""The rows of a statistics script: which codes they need, and what they make of a period. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import msgspec

from terrazzo.analysis.tally import PeriodTally, Summary
from terrazzo.domain.script_rows import parse_duration
from terrazzo.mosaic.body import plain_number
from terrazzo.ports.store import Value


class Measure(msgspec.Struct, frozen=True):
    """One row: a function over a code. ``value`` is set for ``duration`` only: the value whose time is counted."""

    var_name: str
    fn: str
    code: str
    value: str = ""

    @property
    def watched(self) -> str:
        """The key under which a summary counts how long the code had the value."""
        return f"{self.code}=={self.value}"


class StatisticsRows(msgspec.Struct, frozen=True):
    """All rows of a script."""

    measures: tuple[Measure, ...]
    codes: tuple[str, ...]  # that it reads
    watched: Mapping[str, tuple[str, ...]]  # code -> values whose time counts

    def values(self, summary: Summary) -> dict[str, Value]:
        """Each variable of a period; null where the period has no points for it."""
        return {measure.var_name: _evaluate(measure, summary) for measure in self.measures}


def parse_statistics_rows(rows: Sequence[Sequence[str]]) -> StatisticsRows:
    """Rows of variable name, function, code, as ``check_statistics_rows`` lets them through."""
    measures = tuple(_measure(*row) for row in rows)
    watched: dict[str, dict[str, None]] = {}
    for measure in measures:
        if measure.fn == "duration":
            watched.setdefault(measure.code, {})[measure.value] = None
    codes = tuple(dict.fromkeys(measure.code for measure in measures))
    return StatisticsRows(measures, codes, {code: tuple(values) for code, values in watched.items()})


def _measure(var_name: str, function: str, code: str) -> Measure:
    duration = parse_duration(function)
    if duration is None:
        return Measure(var_name, function.strip(), code.strip())
    return Measure(var_name, "duration", duration.code, duration.value)


def _evaluate(measure: Measure, summary: Summary) -> Value:
    if measure.fn == "duration":
        return plain_number(summary.held_us.get(measure.watched, 0) / 1_000_000)
    return _bounded(_FUNCTIONS[measure.fn](summary.tallies.get(measure.code) or PeriodTally()))


def _bounded(value: Value) -> Value:
    """A value as a plain number; None where a float is not finite."""
    return None if isinstance(value, float) and not math.isfinite(value) else plain_number(value)


def _delta(tally: PeriodTally) -> Value:
    if tally.first_number is None or tally.last_number is None:
        return None
    return tally.last_number - tally.first_number


_FUNCTIONS: Mapping[str, Callable[[PeriodTally], Value]] = {
    "avg": lambda tally: tally.total / tally.numbers if tally.numbers else None,
    "sum": lambda tally: tally.total if tally.numbers else None,
    "min": lambda tally: tally.lowest,
    "max": lambda tally: tally.highest,
    "count": lambda tally: tally.count,
    "delta": _delta,
    "first": lambda tally: tally.first,
    "last": lambda tally: tally.last,
}
