"""``Line``: the bottling line of terminal type Other; it works in shifts, changes over, and jams."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from .machine import DAY_S, Alarm, Machine, follow

_SHIFTS = (6 * 3_600.0, 22 * 3_600.0)  # of the day (UTC), when people are there
_SUNDAY = 3  # days from a Thursday, as 1 January 1970 was one, to the day without a shift
_CHANGEOVER_S = 1_500.0  # at the beginning of every fourth hour, on average
_RUN_UP_S = 90.0


class Line(Machine):
    """Fills bottles while a shift is there; what it makes, what it rejects and what it draws belong together."""

    defaults: ClassVar[dict[str, float]] = {"BOOT": 1.0, "SETPOINT": 12_000.0}
    limits: ClassVar[dict[str, tuple[float, float]]] = {"BOOT": (0, 1), "SETPOINT": (1_000, 24_000)}
    hardware: ClassVar[str] = "FL-12"
    counters: ClassVar[dict[str, str]] = {**Machine.counters, "COUNT": "count", "REJECTS": "rejects"}

    def __init__(self, *, seed: int, uid: str) -> None:
        super().__init__(seed=seed, uid=uid)
        self.rated = 12_000.0  # bottles an hour
        self.rate = 0.0
        self.count = float(math.floor(self._noise["unit"].between(1e6, 9e6, 2)))
        self.rejects = float(math.floor(self.count * 0.004))
        self.sealer_c = 20.0
        self.alarms = {"ALARM_JAM": Alarm(0.5, 0.3), "ALARM_SEALER_COLD": Alarm(165, 172)}

    def settle(self, time_s: float) -> None:
        self.rate, self.sealer_c = self._rate_target(time_s), self._sealer_target(time_s)

    def pass_time(self, time_s: float, elapsed_s: float) -> None:
        self.rate = follow(self.rate, self._rate_target(time_s), elapsed_s=elapsed_s, tau_s=_RUN_UP_S)
        self.sealer_c = follow(self.sealer_c, self._sealer_target(time_s), elapsed_s=elapsed_s, tau_s=600)
        made = self.rate * elapsed_s / 3600
        self.count += made
        self.rejects += made * (0.004 + 0.05 * self.incident(time_s))
        self.hours += elapsed_s / 3600 if self.rate > 1 else 0.0

    def state(self, time_s: float) -> str:
        """What the line does: off, idle (no shift), changeover, jam or run."""
        if not self.running:
            return "off"
        if not self._has_shift(time_s):
            return "idle"
        if self.incident(time_s) > 0.4:
            return "jam"
        return "changeover" if self._changes_over(time_s) else "run"

    def power(self, time_s: float) -> float:
        if not self.running:
            return 0.0
        heating = 9.0 if self._has_shift(time_s) else 1.5
        return heating + 38.0 * self.rate / 12_000 * (1 + 0.02 * self.fine(time_s))

    def judge(self, time_s: float) -> None:
        works = self.running and self._has_shift(time_s)
        self.alarms["ALARM_JAM"].judge(self.incident(time_s) if works else 0.0)
        self.alarms["ALARM_SEALER_COLD"].judge(self.sealer_c if self.state(time_s) == "run" else 180.0)

    def points(self) -> dict[str, Any]:
        now_s = self.time_s or 0.0
        return {
            "BOOT": int(self.running),
            "STATE": self.state(now_s),
            "SETPOINT": self.settings["SETPOINT"],
            "RATE": round(self.rate),
            "COUNT": math.floor(self.count),
            "REJECTS": math.floor(self.rejects),
            "TEMP_SEALER": round(self.sealer_c, 1),
            "POWER": round(self.power_kw, 2),
            "ENERGY": round(self.energy_kwh, 3),
            "HOURS": round(self.hours, 2),
        }

    def _has_shift(self, time_s: float) -> bool:
        day, second = divmod(time_s, DAY_S)
        return int(day) % 7 != _SUNDAY and _SHIFTS[0] <= second < _SHIFTS[1]

    def _changes_over(self, time_s: float) -> bool:
        hour, second = divmod(time_s, 3_600.0)
        return second < _CHANGEOVER_S and self._noise["load"].uniform(int(hour)) < 0.25

    def _rate_target(self, time_s: float) -> float:
        if self.state(time_s) != "run":
            return 0.0
        speed = min(self.settings["SETPOINT"], self.rated)
        return speed * (0.97 + 0.02 * self._noise["load"].smooth(time_s, 600))

    def _sealer_target(self, time_s: float) -> float:
        if not self.running:
            return self.ambient(time_s)
        return 185 + 3 * self.fine(time_s, 300) if self._has_shift(time_s) else 60.0
