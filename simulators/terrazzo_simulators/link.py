"""``Link``: the protocol of a terminal's connection, for any MQTT client, and its options and errors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from .tls import Tls


class LinkError(ConnectionError):
    """The connection could not be made, or broke before it was ready."""


class LoginRefused(LinkError):
    """The CONNACK refused the login; ``reason`` is the MQTT 5 reason code (3.1.1 return codes are translated)."""

    def __init__(self, reason: int, text: str) -> None:
        super().__init__(f"login refused: 0x{reason:02x} {text}")
        self.reason = reason


class Inbound(NamedTuple):
    """A message that the terminal received."""

    topic: str
    payload: bytes
    correlation: bytes | None
    response_topic: str | None


Settled = Callable[[int], None]  # takes the reason code: below 0x80 is success
DROPPED = -1  # passed to Settled when the message was never handed to the network

QUEUED_MOST = 1_000  # unacknowledged messages of one terminal; more are dropped and counted


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkOptions:
    """The address and the options of terminals' connections."""

    host: str = "127.0.0.1"
    port: int = 1883
    keep_alive_s: int = 60
    session_expiry_s: int = 0  # 0: a clean session each time
    tls: Tls | None = None  # None: plain TCP
    timeout_s: float = 10.0  # for each of: TCP and CONNACK together, SUBACK


class Link(Protocol):
    """A connection that can be opened again after it closed; unacknowledged messages are then sent again."""

    username: str  # of the next login
    closed: asyncio.Event  # set while there is no connection
    closed_reason: int  # of the server's DISCONNECT, 0 without one
    on_message: Callable[[Inbound], None]

    async def open(self, password: str) -> bool:
        """Logs in and subscribes; returns whether the subscription was granted.

        Raises:
            LinkError, OSError, TimeoutError: the connection failed.
        """

    def publish(self, topic: str, payload: bytes, *, qos: int, correlation: bytes | None, settled: Settled) -> None:
        """Sends a message; without a connection QoS 1 and 2 are kept for the next one (up to QUEUED_MOST)."""

    @property
    def outstanding(self) -> int:
        """The number of messages of QoS 1 and 2 without acknowledgement."""

    def keep(self) -> None:
        """Sends a PINGREQ if it is due, and checks its answer; to be called about once a second."""

    def cut(self) -> None:
        """Ends the connection without DISCONNECT, as a power cut does."""

    async def close(self) -> None:
        """Ends the connection with DISCONNECT."""
