"""The message bus over the embedded broker, by direct call."""

from __future__ import annotations

from collections.abc import Callable

from terrazzo.bus import Fate, Presence
from terrazzo.ingest.report import ANSWER_CHANNEL, Seals
from terrazzo.terminals.presence import PresenceBook
from terrazzo.terminals.registry import Registry
from terrazzo_broker.broker import Broker
from terrazzo_broker.hooks import Outcome

ADMINISTRATIVE_ACTION = 0x98


class EmbeddedBus:
    """``MessageBus``, and the valve of the intake. Nobody is there until a broker is attached."""

    def __init__(self, registry: Registry, presence: PresenceBook, seals: Seals) -> None:
        self._registry = registry
        self._presence = presence
        self._seals = seals
        self._broker: Broker | None = None

    def attach(self, broker: Broker) -> None:
        """Names the broker; called once, before it listens."""
        self._broker = broker

    def send(self, uid: str, payload: bytes, *, correlation: bytes, on_fate: Callable[[Fate], None]) -> bool:
        """Publishes on ``p2p/<uid>`` at QoS 1, sealed where the terminal's payloads are."""
        terminal = self._registry.terminal(uid)
        if self._broker is None or terminal is None or self._broker.client(uid) is None:
            return False
        seal = self._seals.of(terminal)
        return self._broker.send(
            uid,
            f"p2p/{uid}",
            payload if seal is None else seal.seal(payload),
            correlation_data=correlation,
            response_topic=f"g/{uid}/{ANSWER_CHANNEL}",
            on_outcome=lambda outcome: on_fate(_fate(outcome)),
        )

    def presence(self, uid: str) -> Presence:
        """What is known of a terminal's connection."""
        return self._presence.presence(uid)

    def disconnect(self, uid: str) -> None:
        """Ends a terminal's live connection."""
        if self._broker is not None:
            self._broker.disconnect(uid, ADMINISTRATIVE_ACTION)

    def end(self, uid: str) -> None:
        """Ends a terminal's connection and session."""
        if self._broker is not None:
            self._broker.disconnect(uid, ADMINISTRATIVE_ACTION, end_session=True)

    def forget_grants(self, uid: str) -> None:
        """Has a terminal's topics authorized anew."""
        if self._broker is not None:
            self._broker.forget_grants(uid)

    def pause_intake(self) -> None:
        """Stops reading from terminals."""
        if self._broker is not None:
            self._broker.pause_intake()

    def resume_intake(self) -> None:
        """Reads again."""
        if self._broker is not None:
            self._broker.resume_intake()


def _fate(outcome: Outcome) -> Fate:
    if not outcome.acknowledged:
        return Fate.LOST
    return Fate.REFUSED if outcome.reason >= 0x80 else Fate.DELIVERED
