"""A balance: how a target depends on inputs, by least squares. Pure; what can't be told says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from terrazzo.mosaic.body import plain_number
from terrazzo.ports.store import Value

FEW_POINTS = "points in common: {points}, needed: {fewest}"
CONSTANT = "{codes} does not change"
DEPENDENT = "the inputs depend on each other"
UNRELATED = "the inputs say nothing of the target"
BEYOND = "numbers too large or too close to each other to reckon with"
FIT_REASONS = (FEW_POINTS, CONSTANT, DEPENDENT, UNRELATED, BEYOND)
"""Why there is no fit, as results have it."""


class Fit(msgspec.Struct, frozen=True):
    """``target = intercept + sum(coefficient * input)``; ``reason``: why there is no such answer, or no correlation."""

    points: int
    intercept: float | None = None
    coefficients: dict[str, float] = {}
    correlation: float | None = None
    reason: str = ""

    def parameters(self) -> str:
        """JSON text: ``intercept``, ``coefficients`` by code, ``points``, and ``reason`` where there is no fit."""
        known: dict[str, Any] = {
            "intercept": plain_number(self.intercept),
            "coefficients": {code: plain_number(each) for code, each in self.coefficients.items()},
            "points": self.points,
        }
        return msgspec.json.encode(known | ({"reason": self.reason} if self.reason else {})).decode()

    def correlation_text(self) -> str:
        """The correlation coefficient r with six digits; empty where it is undefined."""
        return "" if self.correlation is None else f"{self.correlation:.6f}"


def fit(target: str, inputs: Sequence[str], columns: Mapping[str, Sequence[Value]]) -> Fit:
    """Fits the rows in which all codes have numbers.

    ``correlation``: of the target with the only input, or with what the fit says where there are several.
    """
    import numpy as np  # takes a while to load, and most processes need it late or never

    names = [target, *inputs]
    rows = [row for row in zip(*(columns[name] for name in names), strict=True) if all(map(_is_number, row))]
    fewest = len(inputs) + 2
    if len(rows) < fewest:
        return Fit(len(rows), reason=FEW_POINTS.format(points=len(rows), fewest=fewest))
    with np.errstate(all="ignore"):  # what overflows is found not to be finite
        return _solve(target, inputs, np.array(rows, dtype=float))


def _solve(target: str, inputs: Sequence[str], rows: Any) -> Fit:
    import numpy as np

    y, x = rows[:, 0], rows[:, 1:]
    constant = [name for name, spread in zip(inputs, np.ptp(x, axis=0), strict=True) if not spread > 0]
    if constant:
        return Fit(len(rows), reason=CONSTANT.format(codes=", ".join(constant)))
    middle, scale = x.mean(axis=0), x.std(axis=0)
    if not (np.isfinite(scale).all() and scale.all() and np.isfinite(y.std())):
        return Fit(len(rows), reason=BEYOND)
    scaled = (x - middle) / scale
    slopes, _, rank, _ = np.linalg.lstsq(scaled, y - y.mean(), rcond=1e-10)
    if rank < len(inputs):
        return Fit(len(rows), reason=DEPENDENT)
    coefficients = slopes / scale
    intercept = float(y.mean() - coefficients @ middle)
    named = {name: float(each) for name, each in zip(inputs, coefficients, strict=True)}
    if not np.ptp(y) > 0:
        return Fit(len(rows), intercept, named, reason=CONSTANT.format(codes=target))
    said = x[:, 0] if len(inputs) == 1 else scaled @ slopes
    if not np.ptp(said) > 0:
        return Fit(len(rows), intercept, named, reason=UNRELATED)
    correlation = float(np.corrcoef(y, said)[0, 1])
    if not (np.isfinite(intercept) and np.isfinite(coefficients).all() and np.isfinite(correlation)):
        return Fit(len(rows), reason=BEYOND)
    return Fit(len(rows), intercept, named, correlation=correlation)


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float)
