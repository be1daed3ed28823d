"""Which terminals are connected, since when, and why others are not any more."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.listeners import Listeners
from terrazzo.ports.bus import Presence
from terrazzo.terminals.last_seen import LastSeenFile
from terrazzo_broker.hooks import Client

PROTOCOLS = {3: "MQTT 3.1", 4: "MQTT 3.1.1", 5: "MQTT 5.0"}
_NEVER_SEEN = Presence(online=False)


class PresenceRegister:
    """The present or last connection of each terminal.

    ``changes`` tells when a terminal has connected or is gone, not when one connection takes over from another.
    """

    def __init__(self) -> None:
        self._file: LastSeenFile | None = None
        self._live: dict[str, Client] = {}
        self._past: dict[str, Presence] = {}
        self._traces: dict[str, Trace] = {}
        self.changes: Listeners[Client, Presence] = Listeners("presence")

    def keep_in(self, file: LastSeenFile, registry: Registry) -> None:
        """Remembers what the file says of former connections, and has it told of the ends of later ones."""
        self._file = file
        for record_id, time_us in file.items():
            terminal = registry.terminal_by_id(record_id)
            if terminal is not None:
                self._past[terminal.uid] = Presence(online=False, last_seen_us=time_us)

    def __len__(self) -> int:
        """How many terminals are connected."""
        return len(self._live)

    def trace(self, uid: str) -> Trace:
        """The mutable time of a terminal's last report, which the ingest sets, whichever connection it came by."""
        trace = self._traces.get(uid)
        if trace is None:
            trace = self._traces[uid] = Trace()
        return trace

    def on_connected(self, client: Client) -> None:
        """Notes a connection; told to ``changes``."""
        self._live[client.client_id] = client
        self.changes.tell(client, self._describe(client, online=True, reason=""))

    def on_disconnected(self, client: Client, reason: str) -> None:
        """Notes the end of a connection and tells ``changes``, unless another connection has taken its place."""
        uid = client.client_id
        if self._live.get(uid) in (None, client):
            self._live.pop(uid, None)
            past = self._past[uid] = self._describe(client, online=False, reason=reason)
            terminal: Terminal | None = getattr(client.identity, "terminal", None)
            if self._file is not None and terminal is not None and past.last_seen_us is not None:
                self._file.note(terminal.id, past.last_seen_us)
            self.changes.tell(client, self._past[uid])

    def forget(self, uid: str, record_id: int = 0) -> None:
        """Drops a terminal that was deleted."""
        if self._file is not None:
            self._file.forget(record_id)
        self._live.pop(uid, None)
        self._past.pop(uid, None)
        self._traces.pop(uid, None)

    def presence(self, uid: str) -> Presence:
        """The present connection, else the last one; ``online=False`` alone for one never seen."""
        client = self._live.get(uid)
        if client is not None:
            return self._describe(client, online=True, reason="")
        trace = self._traces.get(uid)
        past = self._past.get(uid, _NEVER_SEEN)
        if trace is None or past.last_telemetry_us == trace.last_telemetry_us:
            return past
        past = self._past[uid] = msgspec.structs.replace(past, last_telemetry_us=trace.last_telemetry_us)
        return past  # the report may have come through a router

    def seen(self, uid: str) -> tuple[bool, int | None]:
        """Whether a terminal is connected, and when its last packet came (UTC microseconds); None: never."""
        client = self._live.get(uid)
        if client is not None:
            return True, client.last_packet_us or client.connected_us
        past = self._past.get(uid)
        return False, None if past is None else past.last_seen_us

    def heard(self, uid: str) -> tuple[bool, int | None, int | None]:
        """Whether a terminal is connected, when its last packet came, and its last report (UTC microseconds)."""
        trace = self._traces.get(uid)
        reported_us = None if trace is None else trace.last_telemetry_us
        client = self._live.get(uid)
        if client is not None:
            return True, client.last_packet_us or client.connected_us, reported_us
        past = self._past.get(uid)
        return False, None if past is None else past.last_seen_us, reported_us

    def ended(self, uid: str) -> tuple[str, str]:
        """Where a terminal's connection comes or came from, and why it ended; empty where it isn't known."""
        client = self._live.get(uid)
        if client is not None:
            return client.address, ""
        past = self._past.get(uid, _NEVER_SEEN)
        return past.address, past.disconnect_reason

    def last_seen_us(self, uid: str) -> int | None:
        """When a terminal's last packet came, UTC microseconds; None for one never seen."""
        client = self._live.get(uid)
        if client is not None:
            return client.last_packet_us or client.connected_us
        return self._past.get(uid, _NEVER_SEEN).last_seen_us

    def clients(self) -> list[Client]:
        """All live connections."""
        return list(self._live.values())

    def former(self) -> Iterator[tuple[str, int | None]]:
        """Terminals that have been connected, with the end of the last connection but the present one."""
        return ((uid, past.last_seen_us) for uid, past in self._past.items())

    def client(self, uid: str) -> Client | None:
        """The live connection of a terminal."""
        return self._live.get(uid)

    def _describe(self, client: Client, *, online: bool, reason: str) -> Presence:
        trace = self._traces.get(client.client_id)
        return Presence(
            online=online,
            since_us=client.connected_us if online else None,
            address=client.address,
            protocol=PROTOCOLS[client.protocol],
            messages=client.messages_in,
            last_seen_us=client.last_packet_us or client.connected_us,
            last_telemetry_us=None if trace is None else trace.last_telemetry_us,
            disconnect_reason=reason,
        )
