"""Rolling statistics in bounded memory.

A window moves in steps of a sixtieth of its length: the statistic at a time is over the samples of that step and of the
59 before it. Steps count from 1970, so that a restart or a late sample finds the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy

import msgspec

from terrazzo.expressions.functions import Value, settle

STEPS = 60
_LARGEST = 2**63 - 1  # of an integer that notes and records hold


class Step(msgspec.Struct, array_like=True):
    """The samples of one or several steps: count, sum, smallest, largest, first and last."""

    number: int
    count: int = 0
    total: float = 0
    lowest: float = math.inf
    highest: float = -math.inf
    first_us: int = 2**63 - 1
    first: float = 0
    last_us: int = -1
    last: float = 0

    def add(self, time_us: int, value: float) -> None:
        """One more sample; of several at one time the first to come is the first, the last to come the last."""
        self.count += 1
        self.total += value
        if self.total.__class__ is int and not -_LARGEST <= self.total <= _LARGEST:
            self.total = float(self.total)
        self.lowest = min(self.lowest, value)
        self.highest = max(self.highest, value)
        if time_us < self.first_us:
            self.first_us, self.first = time_us, value
        if time_us >= self.last_us:
            self.last_us, self.last = time_us, value


def join(steps: Iterable[Step]) -> Step:
    """Several steps as one."""
    whole = Step(-1)
    for step in steps:
        whole.count += step.count
        whole.total += step.total
        whole.lowest = min(whole.lowest, step.lowest)
        whole.highest = max(whole.highest, step.highest)
        if step.first_us < whole.first_us:
            whole.first_us, whole.first = step.first_us, step.first
        if step.last_us >= whole.last_us:
            whole.last_us, whole.last = step.last_us, step.last
    return whole


class RollingWindow:
    """One statistic of one object.

    ``changed``: the steps that differ from what is kept of them. Each is copied before it first changes after ``save``,
    so that ``go_back`` finds it again.
    """

    def __init__(self, window_us: int, fn: str) -> None:
        self.step_us = max(1, window_us // STEPS)
        self.steps: dict[int, Step] = {}
        self.changed: set[int] = set()
        self._fn = fn
        self._newest = self._newest_saved = -1
        self._saved: dict[int, Step | None] = {}  # as they were; None: there was none
        self._earlier: Step | None = None  # all but the newest, joined

    def add(self, time_us: int, value: Value) -> None:
        """Takes a sample; only numbers count, true and false as 1 and 0."""
        if value is None or isinstance(value, str):
            return
        number = time_us // self.step_us
        if number <= self._newest - STEPS:
            return
        if number != self._newest:
            self._earlier = None
        self._move(number)
        step = self.steps.get(number)
        if number not in self._saved:
            self._saved[number] = None if step is None else copy(step)
            self.changed.add(number)
        if step is None:
            step = self.steps[number] = Step(number)
        step.add(time_us, +value)

    def save(self) -> None:
        """From now on ``go_back`` comes back to how it is now."""
        self._saved.clear()
        self._newest_saved = self._newest

    def go_back(self) -> None:
        """All is as it was at the last ``save``."""
        for number, step in self._saved.items():
            if step is None:
                self.steps.pop(number, None)
                self.changed.discard(number)
            else:
                self.steps[number] = step
                self.changed.add(number)
        self._newest, self._earlier = self._newest_saved, None
        self._saved.clear()

    def value(self, time_us: int) -> Value:
        """The statistic at a time, which is not earlier than any before."""
        self._move(time_us // self.step_us)
        if self._earlier is None:
            self._earlier = join(step for number, step in self.steps.items() if number != self._newest)
        newest = self.steps.get(self._newest)
        return _result(self._fn, self._earlier if newest is None else join((self._earlier, newest)))

    def restore(self, steps: Iterable[Step]) -> None:
        """Takes over the steps that the store has kept."""
        for step in steps:
            self.steps[step.number] = step
        self._earlier = None
        self._move(max(self.steps, default=-1))

    def _move(self, number: int) -> None:
        """Forgets the steps that lie before the window that ends with step ``number``."""
        if number <= self._newest:
            return
        self._newest = number
        self._earlier = None
        for old in [old for old in self.steps if old <= number - STEPS]:
            self._saved.setdefault(old, self.steps.pop(old))
            self.changed.discard(old)


class SilentWindow(RollingWindow):
    """Knows no sample and no statistic: one message says nothing about a window."""

    def __init__(self) -> None:
        super().__init__(1, "count")

    def add(self, time_us: int, value: Value) -> None:
        """Takes nothing."""

    def value(self, time_us: int) -> Value:
        """There is none."""
        return None


def _result(fn: str, whole: Step) -> Value:
    if fn == "count":
        return whole.count
    if not whole.count:
        return None
    results = {
        "avg": whole.total / whole.count,
        "sum": whole.total,
        "min": whole.lowest,
        "max": whole.highest,
        "delta": whole.last - whole.first,
    }
    return settle(results[fn])
