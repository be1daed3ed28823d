"""``Compressor``: the air compressor of terminal type Adapter-II."""

from __future__ import annotations

from typing import Any, ClassVar

from .machine import Alarm, Machine, follow


class Compressor(Machine):
    """Keeps a pressure; its oil and motor warm up with the load."""

    defaults: ClassVar[dict[str, float]] = {"BOOT": 1.0, "SETPOINT": 7.5}
    limits: ClassVar[dict[str, tuple[float, float]]] = {"BOOT": (0, 1), "SETPOINT": (2, 12)}
    hardware: ClassVar[str] = "AC-75"

    def __init__(self, *, seed: int, uid: str) -> None:
        super().__init__(seed=seed, uid=uid)
        self.rated = round(self._noise["unit"].between(22, 90, 3), 1)
        self.pressure_bar = self.oil_c = self.motor_c = 0.0
        self.alarms = {"ALARM_OIL_HOT": Alarm(95, 90), "ALARM_PRESSURE_LOW": Alarm(0.75, 0.85)}

    def settle(self, time_s: float) -> None:
        self.pressure_bar = self._pressure_target(time_s)
        self.oil_c, self.motor_c = self._oil_target(time_s), self._motor_target(time_s)

    def pass_time(self, time_s: float, elapsed_s: float) -> None:
        pressure_bar, oil_c, motor_c = (
            self._pressure_target(time_s),
            self._oil_target(time_s),
            self._motor_target(time_s),
        )
        self.pressure_bar = follow(self.pressure_bar, pressure_bar, elapsed_s=elapsed_s, tau_s=30)
        self.oil_c = follow(self.oil_c, oil_c, elapsed_s=elapsed_s, tau_s=240)
        self.motor_c = follow(self.motor_c, motor_c, elapsed_s=elapsed_s, tau_s=600)
        self.hours += elapsed_s / 3600 if self.running else 0.0

    def power(self, time_s: float) -> float:
        """The power in kW: a quarter of the rated power idling, all of it at full load, more at a higher pressure."""
        if not self.running:
            return 0.0
        return self.rated * (0.25 + 0.75 * self.load(time_s)) * (0.55 + 0.06 * self.settings["SETPOINT"])

    def judge(self, time_s: float) -> None:
        self.alarms["ALARM_OIL_HOT"].judge(self.oil_c)
        self.alarms["ALARM_PRESSURE_LOW"].judge(self.pressure_bar / self.settings["SETPOINT"] if self.running else 1.0)

    def points(self) -> dict[str, Any]:
        now_s = self.time_s or 0.0
        load = self.load(now_s) if self.running else 0.0
        return {
            "BOOT": int(self.running),
            "STATE": "stop" if not self.running else "load" if load > 0.35 else "idle",
            "SETPOINT": self.settings["SETPOINT"],
            "PRESSURE": round(self.pressure_bar, 2),
            "LOAD": round(100 * load, 1),
            "POWER": round(self.power_kw, 2),
            "ENERGY": round(self.energy_kwh, 3),
            "HOURS": round(self.hours, 2),
            "TEMP_AMBIENT": round(self.ambient(now_s), 1),
            "TEMP_OIL": round(self.oil_c, 1),
            "TEMP_MOTOR": round(self.motor_c, 1),
        }

    def _pressure_target(self, time_s: float) -> float:
        if not self.running:
            return 0.0
        sag = 0.3 * self.load(time_s) + 3.5 * self.incident(time_s) * self._leaks()
        return self.settings["SETPOINT"] + 0.15 * self.fine(time_s) - sag

    def _oil_target(self, time_s: float) -> float:
        if not self.running:
            return self.ambient(time_s)
        fouled = 40 * self.incident(time_s) * (1 - self._leaks())
        return self.ambient(time_s) + 15 + 40 * self.load(time_s) + fouled

    def _motor_target(self, time_s: float) -> float:
        return self.ambient(time_s) + (10 + 45 * self.load(time_s) if self.running else 0)

    def _leaks(self) -> float:
        """What an incident does to this unit: 1 a leak in the hose, 0 a fouled oil cooler; fixed for each unit."""
        return float(self._noise["unit"].uniform(4) < 0.4)
