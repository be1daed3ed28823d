"""The ports through which sessions, routing and storage use a connection; ``Connection`` implements them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, SupportsInt

from mqtt5 import DisconnectReasonCode

from ..hooks import Client
from ..message import ApplicationMessage
from ..refusals import Cause
from .encoder import PublishEncoder, Rendered


class Origin(Protocol):
    """The connection whose packet causes a change: its answers wait until the change is durable.

    It is passed to whatever makes a change; None where no client's packet causes it.
    """

    def withhold(self) -> None:
        """Withholds all further output until ``let_go``."""

    def take_withheld(self) -> list[bytes]:
        """Takes the withheld output that acknowledges what is in the commit that starts now."""
        ...

    def let_go(self, taken: list[bytes], *, more: bool) -> None:
        """Sends ``taken`` after its commit; what was collected since then waits for the next commit if ``more``."""

    def hold(self, why: int) -> None:
        """Adds a reason for not reading from the socket."""

    def release(self, why: int) -> None:
        """Removes a reason for not reading; reads again when none is left."""

    def tell_refused(self, cause: Cause, reason: SupportsInt = 0, detail: str = "", times: int = 1) -> None:
        """Tells the embedding program of a refusal, or of the end of the connection."""

    def close(self, why: str, *, reason: DisconnectReasonCode | None = None) -> None:
        """Ends the connection; ``reason`` goes to an MQTT 5 client that has had its CONNACK."""


class SessionConnection(Origin, Protocol):
    """The connection of a session's client, as delivery needs it."""

    client: Client | None
    version: int
    encoder: PublishEncoder

    def write(self, data: bytes) -> None:
        """Sends bytes at the end of the loop's turn."""

    def send_raw(self, raw: bytes, count: int) -> None:
        """Sends ``count`` QoS 0 publishes, encoded already; for a slow client they are dropped."""

    def send_lone(self, message: ApplicationMessage, packet: bytes, at: int) -> bool:
        """Sends a short message of QoS 1: ``packet``, but with an identifier of its own at ``at``. False, and nothing
        is done, where it can't be sent just now or is to be journaled."""
        ...

    def send_rendered(self, rendered: Rendered, origin: Origin | None) -> list[int] | None:
        """Sends or queues messages; the indexes of those that there is no room for, None where all had room."""
        ...

    def send_each(self, messages: Sequence[ApplicationMessage], now_us: int, origin: Origin | None) -> list[int] | None:
        """``send_rendered`` for a client with an encoder of its own (aliases, a packet limit, a mark)."""
        ...

    def pump(self) -> None:
        """Sends what waits in the session, as far as the client takes it."""

    def forget_grants(self) -> None:
        """Drops cached grants and routes, so that the hooks are asked again for each topic."""
