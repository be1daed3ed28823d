"""``Machine``: what all machines share (time, a load with a daily cycle, an energy counter, alarms, settings)."""

from __future__ import annotations

import math
import reprlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from ..noise import Noise

DAY_S = 86_400.0
INCIDENT_S = 1_800.0
_STEP_S = 10.0
_STEPS_MOST = 60


class SettingError(ValueError):
    """A value that a setting of a machine does not accept; the text gives the reason."""


@dataclass(slots=True)
class Alarm:
    """An alarm with hysteresis: it rises above (or below) one threshold and clears only beyond another."""

    raised_at: float
    cleared_at: float
    active: bool = False

    def judge(self, value: float) -> None:
        """Updates the alarm from the signal; between the thresholds it stays as it is."""
        upward = 1.0 if self.raised_at >= self.cleared_at else -1.0
        limit = self.cleared_at if self.active else self.raised_at
        self.active = upward * value > upward * limit


class Machine(ABC):
    """A machine whose signals depend on seed, uid and time. Time is passed in, in seconds of the epoch (UTC)."""

    defaults: ClassVar[dict[str, float]] = {}  # what a Control command may set, with the values at first start
    limits: ClassVar[dict[str, tuple[float, float]]] = {}
    hardware: ClassVar[str] = ""

    counters: ClassVar[dict[str, str]] = {"ENERGY": "energy_kwh", "HOURS": "hours"}  # points that never fall

    def __init__(self, *, seed: int, uid: str) -> None:
        self._noise = {name: Noise(seed, uid, name) for name in ("load", "ambient", "fine", "incident", "unit")}
        self.settings = dict(self.defaults)
        self.alarms: dict[str, Alarm] = {}
        self.time_s: float | None = None
        self.rated = 1.0
        self.power_kw = 0.0
        self.energy_kwh = float(math.floor(self._noise["unit"].between(1_000, 50_000)))
        self.hours = float(math.floor(self._noise["unit"].between(200, 20_000, 1)))

    def resume(self, last: Mapping[str, float]) -> None:
        """Goes on from what the machine showed last: counters and settings by name; other names say nothing here."""
        for name, value in last.items():
            if name in self.counters:
                setattr(self, self.counters[name], value)
            elif name in self.settings:
                self.set(name, value)

    def advance(self, time_s: float, *, step_s: float = _STEP_S) -> None:
        """Advances the machine to ``time_s``, in steps of about ``step_s``.

        A clock that was set back changes nothing, so that no counter falls.
        """
        if self.time_s is None:
            self.time_s = time_s
            self.settle(time_s)
            self.power_kw = self.power(time_s)
        for now_s, elapsed_s in _steps(self.time_s, time_s, step_s):
            self.pass_time(now_s, elapsed_s)
            power_kw = self.power(now_s)
            self.energy_kwh += (self.power_kw + power_kw) / 2 * elapsed_s / 3600
            self.power_kw = power_kw
            self.time_s = now_s
        self.judge(self.time_s)

    def set(self, name: str, value: Any) -> None:
        """Changes a setting. Raises ``SettingError`` for a value that it does not accept."""
        low, high = self.limits[name]
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise SettingError(f"{name} takes a number, got {reprlib.repr(value)}") from None
        if not low <= number <= high:
            raise SettingError(f"{name} must be from {low:g} to {high:g}, got {reprlib.repr(value)}")
        self.settings[name] = number

    @abstractmethod
    def points(self) -> dict[str, Any]:
        """The real-time points, as the terminal reports them on channel ``r``."""

    @abstractmethod
    def power(self, time_s: float) -> float:
        """The power in kW that the machine draws at a time."""

    @abstractmethod
    def settle(self, time_s: float) -> None:
        """Takes the state of a machine that was running before the first report."""

    @abstractmethod
    def pass_time(self, time_s: float, elapsed_s: float) -> None:
        """Updates what has inertia for ``elapsed_s`` seconds that end at ``time_s``."""

    @abstractmethod
    def judge(self, time_s: float) -> None:
        """Raises and clears alarms by the signals at ``time_s``."""

    @property
    def running(self) -> bool:
        """Whether the machine is switched on."""
        return bool(self.settings.get("BOOT", 1.0))

    def load(self, time_s: float) -> float:
        """The demand from 0.1 to 1: low at night, highest at 15:00 UTC, with a random drift."""
        return min(1.0, max(0.1, 0.5 + 0.3 * daily(time_s) + 0.2 * self._noise["load"].smooth(time_s, 900)))

    def ambient(self, time_s: float) -> float:
        """The outside temperature in degrees Celsius."""
        base = self._noise["unit"].between(14, 24, 2)
        return base + 6 * daily(time_s) + 1.5 * self._noise["ambient"].smooth(time_s, 3_600)

    def fine(self, time_s: float, period_s: float = 20.0) -> float:
        """Measurement noise from -1 to 1."""
        return self._noise["fine"].smooth(time_s, period_s)

    def incident(self, time_s: float) -> float:
        """How far an incident has developed, 0 to 1; it is 0 except in one half-hour of twenty."""
        cell, part = divmod(time_s / INCIDENT_S, 1.0)
        happens = self._noise["incident"].uniform(int(cell)) < 0.05
        return math.sin(math.pi * part) if happens else 0.0


def daily(time_s: float) -> float:
    """The daily cycle from -1 (03:00 UTC) to 1 (15:00 UTC)."""
    return -math.cos(2 * math.pi * (time_s / DAY_S - 0.125))


def follow(value: float, target: float, *, elapsed_s: float, tau_s: float) -> float:
    """A first-order lag: the value after ``elapsed_s`` on its way to ``target``, with the time constant ``tau_s``."""
    return target + (value - target) * math.exp(-elapsed_s / tau_s)


def _steps(start_s: float, end_s: float, step_s: float) -> Iterator[tuple[float, float]]:
    """The steps from start to end as (time, elapsed), in seconds: about ``step_s`` each, but never more than 60."""
    span_s = end_s - start_s
    if span_s <= 0:
        return
    count = min(_STEPS_MOST, math.ceil(span_s / step_s))
    for index in range(1, count + 1):
        yield start_s + span_s * index / count, span_s / count
