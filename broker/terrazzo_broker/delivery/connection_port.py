"""What the parts below the connections know of one: ports, which ``Connection`` fits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mqtt5 import DisconnectReasonCode

from ..connection_state import ReadHold
from ..hooks import Client
from ..message import ApplicationMessage
from .encoder import PublishEncoder, Rendered


class Origin(Protocol):
    """The connection whose packets change something: its answers wait until the change is durable.

    Whoever changes something is handed it, or None where no client's packet is behind the change.
    """

    def withhold(self) -> None:
        """Lets nothing more leave until ``let_go``."""

    def take_withheld(self) -> list[bytes]:
        """What the commit that starts now makes true."""
        ...

    def let_go(self, taken: list[bytes], *, more: bool) -> None:
        """The commit is done: ``taken`` leaves; what was collected since then waits for the next, if ``more``."""

    def hold(self, why: ReadHold) -> None:
        """Stops reading for one more reason."""

    def release(self, why: ReadHold) -> None:
        """One reason less; reads again when none is left."""

    def close(self, why: str, *, reason: DisconnectReasonCode | None = None) -> None:
        """Ends the connection; ``reason`` goes to an MQTT 5 client that has had its CONNACK."""


class SessionConnection(Origin, Protocol):
    """The connection of a session's client."""

    client: Client | None
    version: int
    encoder: PublishEncoder

    def write(self, data: bytes) -> None:
        """Sends bytes at the end of the loop's turn."""

    def send_raw(self, raw: bytes, count: int) -> None:
        """Sends ``count`` QoS 0 publishes as they are; a slow client loses them."""

    def send_rendered(self, rendered: Rendered, origin: Origin | None) -> list[int] | None:
        """Sends or queues messages; the indexes of those that there is no room for."""
        ...

    def send_each(self, messages: Sequence[ApplicationMessage], now_us: int, origin: Origin | None) -> list[int] | None:
        """``send_rendered`` for a client with wishes of its own."""
        ...

    def forget_grants(self) -> None:
        """Has each topic authorized anew."""
