"""Acknowledgements of a client's publishes: those of durable ones wait for their batch, and all leave in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, SupportsInt

from mqtt5 import DisconnectReasonCode

from ..codec.reasons import publish_reason
from ..codec.writer import PUBACK, PUBREC, ack
from ..connection_state import ReadHold
from ..hooks import Client, Inbound
from ..refusals import Cause
from .session import Session


class PublishingConnection(Protocol):
    """The connection that a batch came from, as the batch needs it."""

    def settled(self) -> None:
        """Sends the acknowledgements of a batch that is durable, and of those before it."""

    def hold(self, why: int) -> None:
        """Adds a reason for not reading from the socket."""

    def release(self, why: int) -> None:
        """Removes a reason for not reading; reads again when none is left."""

    def tell_refused(self, cause: Cause, reason: SupportsInt = 0, detail: str = "", times: int = 1) -> None:
        """Tells the embedding program of a refusal."""

    def told(self, cause: Cause) -> str:
        """The Reason String of an acknowledgement that refuses, empty for a client that wants none."""
        ...

    def fail(self, reason: DisconnectReasonCode, text: str) -> None:
        """Ends the connection: the batch can't be acknowledged."""


class Segment:
    """Encoded acknowledgements that leave together, once they are ``ready``."""

    __slots__ = ("data", "ready")

    def __init__(self, data: bytes = b"", *, ready: bool = False) -> None:
        self.data = data
        self.ready = ready


class DurableBatch(Segment):
    """The durable publishes of one read from one connection: the ``Batch`` of the hooks."""

    __slots__ = (
        "_collected",
        "acks",
        "arrived_us",
        "client",
        "connection",
        "messages",
        "received",
        "session",
        "unsettled",
    )

    def __init__(
        self, client: Client, arrived_us: int, connection: PublishingConnection | None, session: Session | None
    ) -> None:
        super().__init__()
        self.client = client
        self.arrived_us = arrived_us
        self.connection = connection
        self.session = session
        self._collected: list[Inbound] = []
        self.messages: Sequence[Inbound] = self._collected
        self.acks: list[bytes] = []  # one a message, b"" at QoS 0; acknowledgements that come after it are appended
        self.received: dict[int, int] | None = None  # QoS 2: packet identifier by index
        self.unsettled = 0

    def add(self, message: Inbound, acknowledgement: bytes) -> None:
        """Adds a publish and the encoded acknowledgement that it gets on success."""
        self._collected.append(message)
        self.acks.append(acknowledgement)
        self.unsettled += acknowledgement != b""

    def extend(self, messages: list[Inbound], acknowledgements: list[bytes]) -> None:
        """``add`` for several publishes of one QoS."""
        self._collected += messages
        self.acks += acknowledgements
        if acknowledgements[0]:
            self.unsettled += len(acknowledgements)

    def trail(self, acknowledgement: bytes) -> None:
        """Appends an encoded acknowledgement of another publish after that of the last message."""
        self.acks[-1] += acknowledgement

    def settle(self, refusals: Mapping[int, int] | None = None) -> None:
        """Acknowledges all messages; ``refusals``: the reason codes of those refused, by index.

        Raises:
            RuntimeError: settled before.
            IndexError: a refusal of a message that the batch doesn't have.
        """
        if self.ready:
            raise RuntimeError("the batch is settled already")
        if refusals:
            self._refuse_all(refusals)
        self.ready = True
        self.data = b"".join(self.acks)
        self.acks = []
        if self.received:
            self._release_received(self.received, refusals or {})
        if self.connection is not None:
            self.connection.settled()

    def hold(self) -> None:
        """Stops reading from the connection until ``release``."""
        if self.connection is not None:
            self.connection.hold(ReadHold.BATCH)

    def release(self) -> None:
        """Reads from the connection again."""
        if self.connection is not None:
            self.connection.release(ReadHold.BATCH)

    def _refuse_all(self, refusals: Mapping[int, int]) -> None:
        told = ""
        if self.connection is not None:
            told = self.connection.told(Cause.PAYLOAD_REFUSED)
            self.connection.tell_refused(
                Cause.PAYLOAD_REFUSED, publish_reason(next(iter(refusals.values()))), times=len(refusals)
            )
        for index, reason in refusals.items():
            self._refuse(index, reason, told)

    def _refuse(self, index: int, reason: int, told: str) -> None:
        plain = self.acks[index]
        first = plain[:1]
        if first and first[0] in (PUBACK, PUBREC) and self.client.protocol == 5:
            identifier = int.from_bytes(plain[2:4], "big")
            self.acks[index] = ack(first[0], identifier, publish_reason(reason), 5, told) + plain[4:]

    def _release_received(self, received: dict[int, int], refusals: Mapping[int, int]) -> None:
        session = self.session
        if session is None:
            return
        for index, identifier in received.items():
            if session.incoming.get(identifier) is not self:
                continue
            if index in refusals and self.client.protocol == 5:  # the exchange ends with the PUBREC [MQTT-4.3.3-9]
                session.release(identifier)
            else:
                session.receive(identifier)
            successor: Any = session.connection
            if successor is not None and successor is not self.connection:  # it has sent the publish again meanwhile
                reason = publish_reason(refusals.get(index, 0))
                successor.write(ack(PUBREC, identifier, reason, successor.version))


class Acknowledgements:
    """The segments of one connection in the order of the publishes. [MQTT-4.6.0-2] [MQTT-4.6.0-3] of both"""

    __slots__ = ("_waiting", "unsettled")

    def __init__(self) -> None:
        self._waiting: deque[Segment] = deque()
        self.unsettled = 0  # publishes that count against Receive Maximum

    def add(self, segment: Segment) -> None:
        """Appends a segment."""
        self._waiting.append(segment)
        if isinstance(segment, DurableBatch):
            self.unsettled += segment.unsettled

    def release(self) -> bytes:
        """Removes the leading segments that are ready; their bytes."""
        parts = []
        while self._waiting and self._waiting[0].ready:
            segment = self._waiting.popleft()
            if isinstance(segment, DurableBatch):
                self.unsettled -= segment.unsettled
            parts.append(segment.data)
        return b"".join(parts)

    def __bool__(self) -> bool:
        return bool(self._waiting)
