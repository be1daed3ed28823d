"""The message bus over the embedded broker, by direct call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.embedded.held_batch import BatchHolder
from terrazzo.ingest.report_tag import ANSWER_CHANNEL, Seals
from terrazzo.ports.bus import (
    BrokerSubscription,
    ConnectedClient,
    DeliveryFate,
    Presence,
    RetainedTopic,
    TerminalsElsewhere,
)
from terrazzo.ports.tracing import HEADER
from terrazzo.reasons import say
from terrazzo.terminals.presence import PROTOCOLS, PresenceRegister
from terrazzo_broker.broker import Broker
from terrazzo_broker.hooks import Client, Outcome
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.topics.names import is_topic_filter
from terrazzo_broker.topics.owners import EVERYBODY
from terrazzo_broker.tracing.packet_tap import OnPacket

ADMINISTRATIVE_ACTION = 0x98
SESSION_TAKEN_OVER = 0x8E
USE_ANOTHER_SERVER = 0x9C
_LEVELS = 200  # of a topic filter


class EmbeddedBus:
    """``MessageBus``, and the valve of the intake. Nobody is there until a broker is attached."""

    def __init__(self, registry: Registry, presence: PresenceRegister, seals: Seals) -> None:
        self._registry = registry
        self._presence = presence
        self._seals = seals
        self._broker: Broker | None = None
        self.elsewhere: TerminalsElsewhere | None = None  # at fronts
        self.retained_ends: Callable[[str, str], None] | None = None  # where nodes have what is retained in common
        self.session_ends: Callable[[str], object] = _unheard  # where sessions are kept for all nodes
        self.holders: list[BatchHolder] = []  # who has to have what is published, beside store and bridges
        self._holding: set[str] = set()  # who has stopped the reading
        self._sources: dict[str, Callable[[], None]] = {}

    def attach(self, broker: Broker) -> None:
        """Names the broker; called once, before it listens."""
        self._broker = broker

    def send(
        self,
        uid: str,
        payload: bytes,
        *,
        correlation: bytes,
        on_fate: Callable[[DeliveryFate], None],
        traceparent: str = "",
    ) -> bool:
        """Publishes on ``p2p/<uid>`` at QoS 1, sealed where the terminal's payloads are."""
        terminal = self._registry.terminal(uid)
        client = None if self._broker is None else self._broker.client(uid)
        if client is None and terminal is not None and terminal.is_admitted and self._is_elsewhere(uid):
            self._send_elsewhere(uid, payload, correlation, on_fate)
            return True
        if self._broker is None or terminal is None or client is None or not _is_of(client, terminal):
            return False
        seal = self._seals.of(terminal)
        return self._broker.send(
            uid,
            f"p2p/{uid}",
            payload if seal is None else seal.seal(payload),
            correlation_data=correlation,
            response_topic=f"g/{uid}/{ANSWER_CHANNEL}",
            user_properties=((HEADER, traceparent),) if traceparent else (),
            on_outcome=lambda outcome: on_fate(_fate(outcome)),
        )

    def _is_elsewhere(self, uid: str) -> bool:
        return self.elsewhere is not None and self.elsewhere.holds(uid)

    def _send_elsewhere(
        self, uid: str, payload: bytes, correlation: bytes, on_fate: Callable[[DeliveryFate], None]
    ) -> None:
        def on_sent(is_sent: bool) -> None:
            if not is_sent:
                on_fate(DeliveryFate.LOST)

        assert self.elsewhere is not None  # it was asked
        self.elsewhere.send(uid, payload, correlation=correlation, on_sent=on_sent, on_fate=on_fate)

    def tell(self, uid: str, payload: bytes) -> bool:
        """Sends on ``p2p/<uid>`` at QoS 1 to this client alone, as it is: kept, journaled and bridged nowhere."""
        if self._broker is None:
            return False
        return self._broker.send(uid, f"p2p/{uid}", payload, on_outcome=lambda outcome: None)

    def presence(self, uid: str) -> Presence:
        """What is known of a terminal's connection."""
        return self._presence.presence(uid)

    def seen(self, uid: str) -> tuple[bool, int | None]:
        """Whether a terminal is connected, and when its last packet came, UTC microseconds; None: never."""
        return self._presence.seen(uid)

    def tap(self, uid: str, on_packet: OnPacket) -> bool:
        """Shows each packet of a terminal's present connection; False where it is not connected."""
        return self._broker is not None and self._broker.tap(uid, on_packet)

    def untap(self, uid: str) -> None:
        """Shows them no more."""
        if self._broker is not None:
            self._broker.untap(uid)

    def disconnect(self, uid: str, why: str = "") -> None:
        """Ends a terminal's live connection; ``why`` is told to it, and to who asks why it went."""
        if self._broker is not None:
            self._broker.disconnect(uid, ADMINISTRATIVE_ACTION, text=why)

    def counters(self) -> Mapping[str, int]:
        """The broker's plain counters, and how many sessions it keeps."""
        if self._broker is None:
            return {}
        dropped = sum(self._broker.stats.dropped.values())
        return {**self._broker.stats.counters(), "sessions": len(self._broker.sessions), "messages_dropped": dropped}

    def clients(self) -> Iterable[ConnectedClient]:
        """All live connections."""
        return [] if self._broker is None else [_connected(client) for client in self._broker.clients()]

    def subscriptions(self) -> Iterable[BrokerSubscription]:
        """All subscriptions of all sessions."""
        sessions = [] if self._broker is None else self._broker.sessions.values()
        return [
            BrokerSubscription(
                client_id=session.client_id,
                filter=subscription.filter,
                qos=subscription.qos,
                online=session.connection is not None,
                queued=session.queued,
            )
            for session in sessions
            for subscription in session.subscriptions.values()
        ]

    def retained(self, owner: str | None, pattern: str) -> Iterator[RetainedTopic | None]:
        """The retained messages of an owner, of all for None, that a topic filter matches; None for what doesn't."""
        if not is_topic_filter(pattern, levels=_LEVELS):
            raise ValueError(say("no_topic_filter"))
        return iter(()) if self._broker is None else _retained(self._broker, owner, pattern)

    def add_source(self, client_id: str, cut: Callable[[], None]) -> None:
        """Names who reports without a connection to the broker, alone or for others (``<client_id>/<uid>``).

        ``cut`` ends its own.
        """
        self._sources[client_id] = cut

    def kick(self, client_id: str) -> bool:
        """Ends a live connection; the session stays."""
        cut = self._sources.get(client_id.partition("/")[0])  # no uid has a slash
        if cut is not None:
            cut()
            return True
        return self._broker is not None and self._broker.disconnect(
            client_id, ADMINISTRATIVE_ACTION, text="by an operator"
        )

    def end_taken_over(self, uid: str) -> None:
        """Ends a connection as another one with its client id is to be on another node."""
        if self._broker is not None:
            self._broker.disconnect(uid, SESSION_TAKEN_OVER)

    def send_away(self, uids: Iterable[str]) -> None:
        """Ends connections, which are to be made again at another front."""
        for uid in uids:
            if self._broker is not None:
                self._broker.disconnect(uid, USE_ANOTHER_SERVER, text="this front is drained")

    def end_older(self, uid: str, time_us: int) -> bool:
        """Ends a connection that was made before a time, as ``end_taken_over``; False where it was made later."""
        client = None if self._broker is None else self._broker.client(uid)
        if client is not None and client.connected_us >= time_us:
            return False
        self.end_taken_over(uid)
        return True

    def end(self, uid: str, why: str = "") -> None:
        """Ends a terminal's connection and session; ``why`` as for ``disconnect``."""
        self.session_ends(uid)
        if self._broker is not None:
            self._broker.disconnect(uid, ADMINISTRATIVE_ACTION, end_session=True, text=why)

    def end_retained(self, terminal: Terminal) -> None:
        """Ends what a terminal retained, and what was retained for it."""
        if self._broker is not None:
            end = self.retained_ends or self._broker.end_retained
            end(terminal.owner, f"g/{terminal.uid}")
            end(terminal.owner, f"p2p/{terminal.uid}")

    def forget_grants(self, uid: str) -> None:
        """Has a terminal's topics authorized anew."""
        if self._broker is not None:
            self._broker.forget_grants(uid)

    def pause_intake(self, holder: str = "store") -> None:
        """Stops reading from terminals until each holder has let go."""
        self._holding.add(holder)
        if self._broker is not None:
            self._broker.pause_intake()

    def resume_intake(self, holder: str = "store") -> None:
        """Reads again, unless somebody else holds."""
        self._holding.discard(holder)
        if self._broker is not None and not self._holding:
            self._broker.resume_intake()


def _unheard(uid: str) -> None:
    pass


def _retained(broker: Broker, owner: str | None, pattern: str) -> Iterator[RetainedTopic | None]:
    owners = broker.retained.owners() if owner is None else [owner]
    for each in owners:
        for message in broker.retained.walk(pattern, each):
            yield None if message is None or message.owner != each else _topic(message)


def _topic(message: ApplicationMessage) -> RetainedTopic:
    return RetainedTopic(
        topic=message.topic.decode(),
        size=len(message.payload) + message.disk_bytes,
        qos=message.qos,
        publisher=message.publisher or "",
        owner="" if message.owner == EVERYBODY else message.owner,
        expires_us=message.expires_us,
    )


def _is_of(client: Client, terminal: Terminal) -> bool:
    """Whether a client is this terminal, which may be commanded."""
    return terminal.is_admitted and client.owner == terminal.owner


def _fate(outcome: Outcome) -> DeliveryFate:
    if not outcome.acknowledged:
        return DeliveryFate.LOST
    return DeliveryFate.REFUSED if outcome.reason >= 0x80 else DeliveryFate.DELIVERED


def _connected(client: Client) -> ConnectedClient:
    return ConnectedClient(
        client_id=client.client_id,
        username=client.username or "",
        protocol=PROTOCOLS[client.protocol],
        address=client.address,
        port=client.port,
        listener=client.listener,
        since_us=client.connected_us,
        last_seen_us=client.last_packet_us or client.connected_us,
        keep_alive_s=client.keep_alive_s,
        messages_in=client.messages_in,
        messages_out=client.messages_out,
        messages_dropped=client.messages_dropped,
    )
