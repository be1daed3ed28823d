"""How many clients may come in, and how fast."""

from __future__ import annotations

from mqtt5 import ConnAckReasonCode

from .settings import BrokerSettings
from .stats import Stats

Refusal = tuple[ConnAckReasonCode, str]


class Admission:
    """Counts CONNECTs by listener and second."""

    __slots__ = ("_settings", "_stats", "_windows")

    def __init__(self, settings: BrokerSettings, stats: Stats) -> None:
        self._settings = settings
        self._stats = stats
        self._windows: dict[str, tuple[int, int]] = {}

    def admit(self, listener: str, now_s: float) -> Refusal | None:
        """None lets the CONNECT go on to the hooks."""
        second, count = self._windows.get(listener, (0, 0))
        count = count + 1 if int(now_s) == second else 1
        self._windows[listener] = int(now_s), count
        if count > self._settings.connects_per_second:
            return ConnAckReasonCode.CONNECTION_RATE_EXCEEDED, "too many connects a second"
        if self._stats.clients >= self._settings.connections:
            return ConnAckReasonCode.SERVER_BUSY, "too many connections"
        return None
