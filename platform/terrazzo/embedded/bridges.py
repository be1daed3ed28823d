"""The embedded broker as bridges see it: ``LocalBroker`` by direct call."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.held_batch import HeldBatch
from terrazzo.embedded.held_reports import HeldReports
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import ReportTag, Seals, make_tag
from terrazzo.ports.bridge import MARK, BridgeMessage, BridgeQueue, BridgeRefused, MessageProperties
from terrazzo.terminals.acl import TerminalAcl, terminal_named
from terrazzo.terminals.presence import PresenceRegister
from terrazzo.times import now_us
from terrazzo_broker.broker import Broker
from terrazzo_broker.codec.properties import parse_properties
from terrazzo_broker.codec.wire import Cursor, encode_length
from terrazzo_broker.hooks import Batch, Client, Inbound
from terrazzo_broker.message import ApplicationMessage, PublishProperties
from terrazzo_broker.topics.names import is_topic_name
from terrazzo_broker.topics.owners import EVERYBODY

_CACHED_TAGS = 4_096


def load_broker_id(folder: Path) -> str:
    """The id of the broker whose data folder this is, made at the first start."""
    file = folder / "broker-id"
    if not file.exists():
        file.write_text(uuid.uuid4().hex + "\n", encoding="ascii")
    return file.read_text(encoding="ascii").strip()


class EmbeddedBridges:
    """``LocalBroker`` over the embedded broker, and the gate that keeps acknowledgements back until bridges have the
    messages on disk. Reports of known terminals take the way of the terminal's own; nobody else may report."""

    def __init__(
        self,
        broker_id: str,
        *,
        registry: Registry,
        ingest: IngestPipeline,
        presence: PresenceRegister,
        seals: Seals,
        bus: EmbeddedBus,
    ) -> None:
        self.id = broker_id
        self._registry = registry
        self._presence = presence
        self._seals = seals
        self._bus = bus
        self.held = HeldReports(ingest.take, bus.kick)
        self._outboxes: list[BridgeQueue] = []
        self._clients: dict[tuple[str, str], Client] = {}  # by bridge and owner: who it brings reports of
        self._tags: dict[str, tuple[Terminal, ReportTag]] = {}

    def attach(self, broker: Broker) -> None:
        """Names the broker; called once, before it listens."""
        self._broker = broker
        broker.mark_bridged(MARK, self.id)

    # Out

    def subscribe(self, name: str, filters: Mapping[str, int], outbox: BridgeQueue, *, company_id: int) -> None:
        """As in the port."""
        self._outboxes.append(outbox)
        owner = str(company_id) if company_id else EVERYBODY

        def take(message: ApplicationMessage) -> bool:
            return not self._registry.is_company_available(company_id) or outbox.offer(_outbound(message))

        self._broker.subscribe_local(_publisher(name), filters, take, owner=owner)

    def hold(self, batch: Batch) -> Batch:
        """The same batch, settled no earlier than every outbox has on disk what it got so far."""
        behind = [outbox.when_durable for outbox in self._outboxes if not outbox.is_durable]
        return HeldBatch(batch, behind) if behind else batch

    def pause(self, name: str) -> None:
        """As in the port."""
        self._bus.pause_intake(_publisher(name))

    def resume(self, name: str) -> None:
        """As in the port."""
        self._bus.resume_intake(_publisher(name))

    # In

    def publish(self, name: str, message: BridgeMessage, on_taken: Callable[[], None], *, company_id: int) -> None:
        """As in the port."""
        if message.topic.startswith("$"):
            raise BridgeRefused("topics that start with $ belong to this broker")
        self._check_form(message)
        if not self._registry.is_company_available(company_id):
            raise BridgeRefused("the bridge's company is closed (is_available is 0)")
        named = terminal_named(self._registry, message.topic)
        if company_id and named is not None and named.company_id != company_id:
            raise BridgeRefused(f"the terminal {named.uid!r:.70} is not of the bridge's company")
        tag = self._tag(message.topic) if message.topic.startswith("g/") else None
        given = message.properties or MessageProperties()
        owner = _owner(company_id, None if tag is None else named)
        self._broker.publish(
            message.topic,
            message.payload,
            qos=message.qos,
            retain=message.retain,
            properties=_properties(message),
            publisher=_publisher(name),
            owner=owner,
        )
        messages = [] if tag is None else [Inbound(tag, message.payload, given.correlation_data)]
        batch = self.hold(_BridgedBatch(self._client(name, owner), messages, on_taken))
        if messages:
            self.held.take(batch)
        else:
            batch.settle()

    def when_withheld(self, name: str, again: Callable[[], None]) -> None:
        """As in the port."""
        self._bus.add_source(_publisher(name), again)

    def _check_form(self, message: BridgeMessage) -> None:
        """Refuses what no client of this broker may publish: subscribers would get what isn't MQTT."""
        settings, given = self._broker.settings, message.properties or MessageProperties()
        if not is_topic_name(message.topic) or message.topic.count("/") >= settings.topic_levels:
            raise BridgeRefused("not a topic to publish on")
        if len(message.topic.encode()) > settings.topic_bytes:
            raise BridgeRefused(f"its topic has more than limits.topic_bytes, {settings.topic_bytes}")
        if given.response_topic is not None and not is_topic_name(given.response_topic):
            raise BridgeRefused("wildcards in its response topic")
        if any("\0" in text for text in (message.topic, *message.texts)):
            raise BridgeRefused("a text contains U+0000")
        if message.size > settings.packet_bytes:
            raise BridgeRefused(f"{message.size} bytes, and limits.mqtt_packet_bytes are {settings.packet_bytes}")

    def _tag(self, topic: str) -> ReportTag:
        uid = topic.split("/", 2)[1]
        terminal = self._registry.terminal(uid)
        if terminal is None:
            raise BridgeRefused(f"no terminal {uid!r:.70}")
        known = self._tags.get(topic)
        if known is not None and known[0] is terminal:
            return known[1]
        report = TerminalAcl(terminal, self._registry).may_publish(topic) if terminal.is_admitted else None
        if report is None:
            raise BridgeRefused(f"the terminal {uid!r:.70} may not report on this topic")
        tag = make_tag(report, trace=self._presence.trace(uid), seal=self._seals.of(terminal))
        if len(self._tags) >= _CACHED_TAGS:
            self._tags.clear()
        self._tags[topic] = terminal, tag
        return tag

    def _client(self, name: str, owner: str) -> Client:
        """Who brings it: reports take turns, rest and count as memory by the owner, as those of its terminals."""
        client = self._clients.get((name, owner))
        if client is None:
            client = self._clients[name, owner] = Client(
                client_id=_publisher(name),
                username=None,
                protocol=5,
                address="",
                port=0,
                listener="bridge",
                connected_us=now_us(),
                keep_alive_s=0,
                owner=owner,
            )
        return client


class _BridgedBatch:
    """One message that a bridge brought, or none that has to be stored."""

    __slots__ = ("_on_taken", "arrived_us", "client", "messages")

    def __init__(self, client: Client, messages: Sequence[Inbound], on_taken: Callable[[], None]) -> None:
        self.client = client
        self.messages = messages
        self.arrived_us = now_us()
        self._on_taken = on_taken

    def settle(self, refusals: Mapping[int, int] | None = None) -> None:
        """The ingest calls this when the batch is stored, as records or as rejects."""
        self._on_taken()

    def hold(self) -> None:
        """A bridge brings a message at a time."""

    def release(self) -> None:
        """As ``hold``."""


def _owner(company_id: int, reporting: Terminal | None) -> str:
    """Whose a bridge's message is: the bridge's company's, or, of a bridge without one, the reporting terminal's.

    What no terminal reports is nobody's then.
    """
    if company_id:
        return str(company_id)
    return "" if reporting is None else reporting.owner


def _publisher(name: str) -> str:
    return f"bridge:{name}"


def _outbound(message: ApplicationMessage) -> BridgeMessage:
    properties = _read_properties(message.properties) if message.properties else None
    topic = message.topic.decode()
    return BridgeMessage(topic, message.payload, message.qos, message.retain, message.expires_us, properties)


def _read_properties(encoded: bytes) -> MessageProperties:
    data = encode_length(len(encoded)) + encoded
    found = parse_properties(Cursor(data, 0, len(data)), "publish")
    return MessageProperties(
        payload_format_indicator=found.get("payload_format_indicator", 0),
        content_type=found.get("content_type"),
        response_topic=found.get("response_topic"),
        correlation_data=found.get("correlation_data"),
        user_properties=tuple(found.get("user_properties", ())),
    )


def _properties(message: BridgeMessage) -> PublishProperties:
    given = message.properties or MessageProperties()
    left_us = message.expires_us - now_us()
    return PublishProperties(
        payload_format_indicator=given.payload_format_indicator,
        message_expiry_s=max(0, -(-left_us // 1_000_000)) if message.expires_us else None,
        content_type=given.content_type,
        response_topic=given.response_topic,
        correlation_data=given.correlation_data,
        user_properties=given.user_properties,
    )
