"""``Meter``: the three-phase meter with a breaker of terminal type Adapter-X; its points are nested objects."""

from __future__ import annotations

from typing import Any, ClassVar

from ..noise import Noise
from .machine import Alarm, Machine, follow

_PHASES = ("L1", "L2", "L3")


class Meter(Machine):
    """Measures a feeder: its power is the sum over the phases of voltage, current and power factor."""

    defaults: ClassVar[dict[str, float]] = {"BREAKER": 1.0, "LIMIT": 90.0}
    limits: ClassVar[dict[str, tuple[float, float]]] = {"BREAKER": (0, 1), "LIMIT": (1, 500)}
    hardware: ClassVar[str] = "PM-3"

    def __init__(self, *, seed: int, uid: str) -> None:
        super().__init__(seed=seed, uid=uid)
        self.rated = round(self._noise["unit"].between(80, 160, 3), 1)
        self._phases = {phase: Noise(seed, uid, phase) for phase in _PHASES}
        self.cabinet_c = 25.0
        self.alarms = {
            "ALARM_OVERLOAD": Alarm(1.0, 0.95),
            "ALARM_VOLTAGE_LOW": Alarm(212, 217),
            "ALARM_CABINET_HOT": Alarm(50, 46),
        }

    @property
    def running(self) -> bool:
        """Whether the breaker is closed."""
        return bool(self.settings["BREAKER"])

    def voltage(self, phase: str, time_s: float) -> float:
        """The voltage to neutral in volts; it sags with the load, and more in an incident."""
        sag = 4 * self.load(time_s) + 18 * self.incident(time_s)
        return 232 + 2 * self._phases[phase].smooth(time_s, 60) - sag

    def current(self, phase: str, time_s: float) -> float:
        """The current in amperes; each phase carries its own share of the load."""
        if not self.running:
            return 0.0
        share = 1 + 0.12 * self._phases[phase].smooth(time_s, 600)
        return self.rated * self.load(time_s) * share * (1 + 0.3 * self.incident(time_s))

    def factor(self, time_s: float) -> float:
        """The power factor, which is poor at low load."""
        return 0.82 + 0.15 * self.load(time_s)

    def power(self, time_s: float) -> float:
        va = sum(self.voltage(phase, time_s) * self.current(phase, time_s) for phase in _PHASES)
        return va * self.factor(time_s) / 1000

    def settle(self, time_s: float) -> None:
        self.cabinet_c = self._cabinet_target(time_s)

    def pass_time(self, time_s: float, elapsed_s: float) -> None:
        self.cabinet_c = follow(self.cabinet_c, self._cabinet_target(time_s), elapsed_s=elapsed_s, tau_s=900)

    def judge(self, time_s: float) -> None:
        self.alarms["ALARM_OVERLOAD"].judge(self.power_kw / self.settings["LIMIT"])
        self.alarms["ALARM_VOLTAGE_LOW"].judge(min(self.voltage(phase, time_s) for phase in _PHASES))
        self.alarms["ALARM_CABINET_HOT"].judge(self.cabinet_c)

    def points(self) -> dict[str, Any]:
        now_s = self.time_s or 0.0
        return {
            "BREAKER": self.running,
            "U": {phase: round(self.voltage(phase, now_s), 1) for phase in _PHASES},
            "I": {phase: round(self.current(phase, now_s), 1) for phase in _PHASES},
            "POWER": round(self.power_kw, 2),
            "PF": round(self.factor(now_s) if self.running else 0.0, 3),
            "FREQ": round(50 + 0.03 * self.fine(now_s), 2),
            "ENERGY": round(self.energy_kwh, 3),
            "TEMP_CABINET": round(self.cabinet_c, 1),
        }

    def _cabinet_target(self, time_s: float) -> float:
        return self.ambient(time_s) + 6 + (18 * self.load(time_s) ** 2 if self.running else 0)
