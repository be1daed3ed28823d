"""``Chiller``: the water chiller of terminal type Adapter-III."""

from __future__ import annotations

from typing import Any, ClassVar

from .machine import Alarm, Machine, follow

_WATER_KWH = 1.163  # kWh that a cubic metre of water carries per kelvin


class Chiller(Machine):
    """Cools water to a set temperature; its cooling and electrical power are consistent."""

    defaults: ClassVar[dict[str, float]] = {"BOOT": 1.0, "SETPOINT": 7.0}
    limits: ClassVar[dict[str, tuple[float, float]]] = {"BOOT": (0, 1), "SETPOINT": (4, 20)}
    hardware: ClassVar[str] = "CH-300"
    counters: ClassVar[dict[str, str]] = {**Machine.counters, "COOLING_ENERGY": "cooling_kwh"}

    def __init__(self, *, seed: int, uid: str) -> None:
        super().__init__(seed=seed, uid=uid)
        self.rated = round(self._noise["unit"].between(40, 120, 3), 1)
        self.supply_c = self.return_c = 12.0
        self.cooling_kwh = self.energy_kwh * 4.0
        self.alarms = {"ALARM_SUPPLY_HOT": Alarm(4, 2), "ALARM_FLOW_LOW": Alarm(0.5, 0.65)}

    def settle(self, time_s: float) -> None:
        self.supply_c, self.return_c = self._supply_target(time_s), self._return_target(time_s)

    def pass_time(self, time_s: float, elapsed_s: float) -> None:
        supply_c, return_c = self._supply_target(time_s), self._return_target(time_s)
        self.supply_c = follow(self.supply_c, supply_c, elapsed_s=elapsed_s, tau_s=120)
        self.return_c = follow(self.return_c, return_c, elapsed_s=elapsed_s, tau_s=300)
        self.cooling_kwh += self.cooling(time_s) * elapsed_s / 3600
        self.hours += elapsed_s / 3600 if self.running else 0.0

    def flow(self, time_s: float) -> float:
        """Cubic metres of water per hour."""
        if not self.running:
            return 0.0
        clogged = 1 - 0.6 * self.incident(time_s)
        return self.rated * (0.7 + 0.3 * self.load(time_s)) * clogged * (1 + 0.01 * self.fine(time_s))

    def cooling(self, time_s: float) -> float:
        """The cooling power in kW: flow times the difference of the water's temperatures."""
        return max(0.0, self.flow(time_s) * _WATER_KWH * (self.return_c - self.supply_c))

    def efficiency(self, time_s: float) -> float:
        """kW of cooling per kW of power: less on a hot day."""
        return max(2.0, 6.5 - 0.09 * (self.ambient(time_s) - self.settings["SETPOINT"]))

    def power(self, time_s: float) -> float:
        return 3.0 + self.cooling(time_s) / self.efficiency(time_s) if self.running else 0.0

    def judge(self, time_s: float) -> None:
        over_c = self.supply_c - self.settings["SETPOINT"] if self.running else 0.0
        self.alarms["ALARM_SUPPLY_HOT"].judge(over_c)
        self.alarms["ALARM_FLOW_LOW"].judge(self.flow(time_s) / self.rated if self.running else 1.0)

    def points(self) -> dict[str, Any]:
        now_s = self.time_s or 0.0
        return {
            "BOOT": int(self.running),
            "STATE": "cooling" if self.running else "stop",
            "SETPOINT": self.settings["SETPOINT"],
            "TEMP_SUPPLY": round(self.supply_c, 2),
            "TEMP_RETURN": round(self.return_c, 2),
            "TEMP_AMBIENT": round(self.ambient(now_s), 1),
            "FLOW": round(self.flow(now_s), 2),
            "COOLING": round(self.cooling(now_s), 2),
            "POWER": round(self.power_kw, 2),
            "ENERGY": round(self.energy_kwh, 3),
            "COOLING_ENERGY": round(self.cooling_kwh, 3),
            "HOURS": round(self.hours, 2),
        }

    def _supply_target(self, time_s: float) -> float:
        if not self.running:
            return self.ambient(time_s)
        return self.settings["SETPOINT"] + 0.2 * self.fine(time_s) + 7 * self.incident(time_s)

    def _return_target(self, time_s: float) -> float:
        if not self.running:
            return self.ambient(time_s)
        return self._supply_target(time_s) + 2 + 4 * self.load(time_s)
