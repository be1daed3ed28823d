"""Admission control: limits on connections, on logins a second, and on connections that have not logged in."""

from __future__ import annotations

from mqtt5 import ConnAckReasonCode

from .limited_log import limited_logger
from .settings import BrokerSettings
from .stats import Stats

log = limited_logger("terrazzo_broker.admission")

Refusal = tuple[ConnAckReasonCode, str]
"""The reason code of a CONNACK, and its text."""


class ListenerAdmission:
    """One listener's name, and its count of CONNECTs in the current second."""

    __slots__ = ("count", "name", "second")

    def __init__(self, name: str) -> None:
        self.name = name
        self.second = 0
        self.count = 0


class Admission:
    """Counts the connections that haven't logged in yet by address, and CONNECTs by listener and second."""

    __slots__ = ("_half_open", "_settings", "_stats")

    def __init__(self, settings: BrokerSettings, stats: Stats) -> None:
        self._settings = settings
        self._stats = stats
        self._half_open: dict[str, int] = {}

    def enter(self, address: str) -> bool:
        """Counts a connection until ``leave``; False: its address has too many that haven't logged in.

        Peers of a Unix socket have no address and no limit; the mode of the socket's file limits them.
        """
        count = self._half_open.get(address, 0) + 1
        self._half_open[address] = count
        if not address or count <= self._settings.half_open_per_address:
            return True
        self._stats.limited_half_open += 1
        log.warning("%s: refused, %d connections from there haven't logged in", address, count - 1)
        return False

    def leave(self, address: str) -> None:
        """Counts a connection no longer: it has logged in or ended."""
        count = self._half_open.get(address, 0) - 1
        if count > 0:
            self._half_open[address] = count
        else:
            self._half_open.pop(address, None)

    def admit(self, listener: ListenerAdmission, now_s: float, *, takes_over: bool) -> Refusal | None:
        """Counts a CONNECT; None lets it go on to the hooks, else it is refused.

        ``now_s``: monotonic seconds; ``takes_over``: it replaces a connection that counts already.
        """
        if listener.second != int(now_s):
            listener.second, listener.count = int(now_s), 0
        listener.count += 1
        if listener.count > self._settings.connects_per_second:
            self._stats.limited_connect_rate += 1
            log.warning("%s: more than %d connects a second", listener.name, self._settings.connects_per_second)
            return ConnAckReasonCode.CONNECTION_RATE_EXCEEDED, "too many connects a second"
        if self._stats.clients >= self._settings.connections and not takes_over:
            self._stats.limited_connections += 1
            log.warning("%s: refused, %d clients are connected", listener.name, self._stats.clients)
            return ConnAckReasonCode.QUOTA_EXCEEDED, "too many connections"
        return None
