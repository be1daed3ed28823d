"""How many clients may come in, and how fast."""

from __future__ import annotations

from mqtt5 import ConnAckReasonCode

from .limited_log import limited_logger
from .settings import BrokerSettings
from .stats import Stats

log = limited_logger("terrazzo_broker.admission")

Refusal = tuple[ConnAckReasonCode, str]


class ListenerAdmission:
    """One listener's way in: its name, and how many CONNECTs have come through it in the current second."""

    __slots__ = ("count", "name", "second")

    def __init__(self, name: str) -> None:
        self.name = name
        self.second = 0
        self.count = 0


class Admission:
    """Counts the sockets that haven't logged in yet by address, and CONNECTs by listener and second."""

    __slots__ = ("_half_open", "_settings", "_stats")

    def __init__(self, settings: BrokerSettings, stats: Stats) -> None:
        self._settings = settings
        self._stats = stats
        self._half_open: dict[str, int] = {}

    def enter(self, address: str) -> bool:
        """Counts a socket until ``leave``; False: its address has too many that haven't logged in.

        A Unix socket's peers have no address and no bound; the mode of the socket's file is theirs.
        """
        count = self._half_open.get(address, 0) + 1
        self._half_open[address] = count
        if not address or count <= self._settings.half_open_per_address:
            return True
        self._stats.limited_half_open += 1
        log.warning("%s: refused, %d connections from there haven't logged in", address, count - 1)
        return False

    def leave(self, address: str) -> None:
        """A socket that was counted has logged in or gone."""
        count = self._half_open.get(address, 0) - 1
        if count > 0:
            self._half_open[address] = count
        else:
            self._half_open.pop(address, None)

    def admit(self, listener: ListenerAdmission, now_s: float, *, takes_over: bool) -> Refusal | None:
        """None lets the CONNECT go on to the hooks. ``takes_over``: it replaces a connection that counts already."""
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
