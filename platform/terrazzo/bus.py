"""The port to a broker: ``MessageBus``, what the platform needs from whoever speaks MQTT to the terminals."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import msgspec


class Presence(msgspec.Struct, frozen=True, kw_only=True):
    """One terminal's connection, present or past (DESIGN 10, honest presence)."""

    online: bool
    since_us: int | None = None  # of the present connection
    address: str = ""
    protocol: str = ""  # "MQTT 3.1.1" | "MQTT 5.0"
    messages: int = 0  # received on the present or last connection
    last_seen_us: int | None = None  # the last packet of any kind
    last_telemetry_us: int | None = None  # the last publish on g/#
    disconnect_reason: str = ""


class Fate(Enum):
    """What became of a message to a terminal."""

    DELIVERED = "delivered"  # acknowledged by the terminal
    REFUSED = "refused"  # acknowledged with an MQTT 5 reason code of 0x80 or above
    LOST = "lost"  # its session ended first; it may be sent again


class MessageBus(Protocol):
    """Sends commands to terminals and says who is there. Everything is called on the platform's event loop."""

    def send(self, uid: str, payload: bytes, *, correlation: bytes, on_fate: Callable[[Fate], None]) -> bool:
        """Publishes on ``p2p/<uid>`` at QoS 1, with Correlation Data and Response Topic ``g/<uid>/n`` for MQTT 5.

        False when the terminal is not connected or not subscribed; nothing was sent then. Otherwise ``on_fate`` is
        called once, on the PUBACK or when the session ends without one.
        """

    def presence(self, uid: str) -> Presence:
        """What is known of a terminal's connection; ``online=False`` alone for one never seen."""

    def disconnect(self, uid: str) -> None:
        """Ends a terminal's live connection (v5 reason 0x98)."""
