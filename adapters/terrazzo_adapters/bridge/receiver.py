"""``Receiver``: publishes the remote broker's messages locally, and acknowledges them once they are taken."""

from __future__ import annotations

from typing import Any

from paho.mqtt.client import MQTTMessage

from terrazzo.ports.bridge import BridgeMessage, BridgeRefused, BridgeStatus, LocalBroker, MessageProperties
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us
from terrazzo_adapters.bridge.link import RemoteLink
from terrazzo_adapters.bridge.settings import BridgeSettings

# what the local broker has not taken yet; reading pauses beyond, until half is
_UNTAKEN_MOST = 1_000
_UNTAKEN_BYTES = 16 << 20


class Receiver:
    """Publishes locally what one connection receives; made anew for each connection."""

    def __init__(
        self, link: RemoteLink, broker: LocalBroker, *, settings: BridgeSettings, status: BridgeStatus, log: SparseLog
    ) -> None:
        self._link = link
        self._broker = broker
        self._name = settings.name
        self._company_id = settings.company_id
        self._rules = settings.incoming
        self._status = status
        self._log = log
        self._untaken = self._untaken_bytes = 0
        link.on_message = self._on_message

    @property
    def untaken_bytes(self) -> int:
        """Of messages that the local broker has not taken yet."""
        return self._untaken_bytes

    def _on_message(self, incoming: MQTTMessage) -> None:
        try:
            given = incoming.topic
        except UnicodeDecodeError as error:  # paho decodes it when it is asked for
            self._refuse(incoming, error.object, "its topic is not UTF-8")
            return
        topic = self._local_name(given)
        message = _read_message(incoming, topic or given)
        if message.has_left(self._broker.id):
            self._status.looped += 1
            self._link.acknowledge(incoming)
        elif topic is None:
            self._refuse(incoming, given, "no rule names this topic")
        else:
            self._take(incoming, message)

    def _local_name(self, topic: str) -> str | None:
        return next((name for rule in self._rules if (name := rule.to_local(topic)) is not None), None)

    def _take(self, incoming: MQTTMessage, message: BridgeMessage) -> None:
        size = message.size
        self._count(1, size)
        try:
            self._broker.publish(
                self._name, message, lambda: self._on_taken(incoming, size), company_id=self._company_id
            )
        except BridgeRefused as error:
            self._count(-1, -size)
            self._refuse(incoming, incoming.topic, str(error))
        if self._untaken > _UNTAKEN_MOST or self._untaken_bytes > _UNTAKEN_BYTES:
            self._link.pause_reading()

    def _count(self, messages: int, size: int) -> None:
        self._untaken += messages
        self._untaken_bytes += size

    def _on_taken(self, incoming: MQTTMessage, size: int) -> None:
        self._count(-1, -size)
        self._status.received += 1
        self._link.acknowledge(incoming)
        if self._untaken <= _UNTAKEN_MOST // 2 and self._untaken_bytes <= _UNTAKEN_BYTES // 2:
            self._link.resume_reading()

    def _refuse(self, incoming: MQTTMessage, topic: str | bytes, why: str) -> None:
        """Logs and counts a message that can't be taken; it is acknowledged, or it would be sent again and again."""
        self._status.refused_here += 1
        self._status.last_error = f"{topic!r:.100} from the remote broker is refused: {why}"
        self._log.warning("bridge %s: %s", self._name, self._status.last_error)
        self._link.acknowledge(incoming)


def _read_message(incoming: MQTTMessage, topic: str) -> BridgeMessage:
    given: Any = incoming.properties
    expiry_s = getattr(given, "MessageExpiryInterval", None)
    return BridgeMessage(
        topic,
        bytes(incoming.payload),
        incoming.qos,
        incoming.retain,
        0 if expiry_s is None else now_us() + expiry_s * 1_000_000,
        _read_properties(given),
    )


def _read_properties(given: Any) -> MessageProperties | None:
    if given is None or given.isEmpty():
        return None
    return MessageProperties(
        payload_format_indicator=getattr(given, "PayloadFormatIndicator", 0),
        content_type=getattr(given, "ContentType", None),
        response_topic=getattr(given, "ResponseTopic", None),
        correlation_data=getattr(given, "CorrelationData", None),
        user_properties=tuple((name, value) for name, value in getattr(given, "UserProperty", ())),
    )
