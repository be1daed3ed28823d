"""Decodes a PUBLISH from a client, with all that may stand in it. MQTT, section 3.3."""

from __future__ import annotations

from typing import Any

import msgspec

from ..scheduling.turns import Steps
from .errors import malformed, protocol_error
from .properties import parse_properties, read_properties
from .wire import Cursor

DUPLICATE = 0x08
RETAIN = 0x01

_Head = tuple[bytes, int]  # topic, packet identifier


class Publish(msgspec.Struct, frozen=True):
    """A decoded PUBLISH. ``topic`` (UTF-8) is empty where an alias stands for it; ``packet_id`` is 0 at QoS 0.

    ``properties``: those passed on to subscribers, encoded. ``is_text``: Payload Format Indicator 1.
    """

    topic: bytes
    payload: bytes
    qos: int
    retain: bool
    duplicate: bool
    packet_id: int
    properties: bytes
    expiry_s: int | None
    alias: int | None
    response_topic: str | None
    correlation_data: bytes | None
    is_text: bool


def parse_publish(header: int, cursor: Cursor, version: int) -> Publish:
    """Reads a PUBLISH of either protocol version; ``cursor`` stands at the topic.

    Raises:
        PacketError: 0x81 or 0x82; the topic's text is not looked at yet.
    """
    head = _take_head(header, cursor)
    forwarded: list[bytes] = []
    values = parse_properties(cursor, "publish", forwarded) if version == 5 else {}
    return _publish(header, head, cursor, values, forwarded)


def read_publish(header: int, cursor: Cursor, version: int) -> Steps[Publish]:
    """``parse_publish`` in steps.

    Raises:
        PacketError: as there.
    """
    head = _take_head(header, cursor)
    forwarded: list[bytes] = []
    values = (yield from read_properties(cursor, "publish", forwarded)) if version == 5 else {}
    return _publish(header, head, cursor, values, forwarded)


def _take_head(header: int, cursor: Cursor) -> _Head:
    qos = header >> 1 & 3
    if qos == 3:
        raise malformed("QoS 3")  # [MQTT-3.3.1-4] of both
    if not qos and header & DUPLICATE:
        raise malformed("DUP at QoS 0")  # [MQTT-3.3.1-2] of both
    topic = cursor.binary()
    return topic, cursor.packet_id() if qos else 0  # [MQTT-2.2.1-2]; [MQTT-2.3.1-5] of 3.1.1


def _publish(header: int, head: _Head, cursor: Cursor, values: dict[str, Any], forwarded: list[bytes]) -> Publish:
    if "subscription_id" in values:
        raise protocol_error("a client sent a subscription identifier")  # [MQTT-3.3.4-6]
    return Publish(
        topic=head[0],
        payload=cursor.rest(),
        qos=header >> 1 & 3,
        retain=bool(header & RETAIN),
        duplicate=bool(header & DUPLICATE),
        packet_id=head[1],
        properties=b"".join(forwarded),
        expiry_s=values.get("message_expiry_interval"),
        alias=values.get("topic_alias"),
        response_topic=values.get("response_topic"),
        correlation_data=values.get("correlation_data"),
        is_text=values.get("payload_format_indicator") == 1,
    )
