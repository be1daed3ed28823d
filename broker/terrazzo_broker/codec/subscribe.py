"""Decodes SUBSCRIBE and UNSUBSCRIBE, as values of our own: ``mqtt5``'s classes raise for a malformed filter, where
SUBACK and UNSUBACK answer with a reason code."""

from __future__ import annotations

import msgspec

from ..scheduling.turns import Steps
from .errors import malformed, protocol_error
from .properties import read_properties
from .wire import Cursor


class RequestedFilter(msgspec.Struct, frozen=True):
    """One topic filter, not empty, with its options; the filter's text hasn't been looked at further."""

    pattern: str
    qos: int
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


class SubscribePacket(msgspec.Struct, frozen=True):
    """A SUBSCRIBE. ``identifier``: 0 is none."""

    packet_id: int
    requested: list[RequestedFilter]
    identifier: int = 0
    user_properties: list[tuple[str, str]] = []


class UnsubscribePacket(msgspec.Struct, frozen=True):
    """An UNSUBSCRIBE; the filters' text hasn't been looked at."""

    packet_id: int
    patterns: list[str]
    user_properties: list[tuple[str, str]] = []


def read_subscribe(cursor: Cursor, version: int) -> Steps[SubscribePacket]:
    """Reads the body of a SUBSCRIBE.

    Raises:
        PacketError: 0x81 or 0x82.
    """
    packet_id = cursor.packet_id()
    values = (yield from read_properties(cursor, "subscribe")) if version == 5 else {}
    requested = []
    while cursor.position < cursor.end:
        requested.append(_requested_filter(cursor, version))
        yield
    if not requested:
        raise protocol_error("a SUBSCRIBE without topic filters")  # [MQTT-3.8.3-2]; [MQTT-3.8.3-3] of 3.1.1
    return SubscribePacket(packet_id, requested, values.get("subscription_id", 0), values.get("user_properties", []))


def _requested_filter(cursor: Cursor, version: int) -> RequestedFilter:
    pattern, options = _pattern(cursor), cursor.byte()
    if options & (0xC0 if version == 5 else 0xFC):
        raise malformed("reserved subscription options are set")  # [MQTT-3.8.3-5]; [MQTT-3.8.3-4] of 3.1.1
    if options & 3 == 3 or options & 0x30 == 0x30:
        raise protocol_error("QoS 3 or retain handling 3")  # [MQTT-3.8.3-4] of 3.1.1
    if options & 4 and pattern.startswith("$share/"):
        raise protocol_error("no local on a shared subscription")  # [MQTT-3.8.3-4]
    return RequestedFilter(pattern, options & 3, bool(options & 4), bool(options & 8), options >> 4 & 3)


def read_unsubscribe(cursor: Cursor, version: int) -> Steps[UnsubscribePacket]:
    """Reads the body of an UNSUBSCRIBE.

    Raises:
        PacketError: 0x81 or 0x82.
    """
    packet_id = cursor.packet_id()
    values = (yield from read_properties(cursor, "unsubscribe")) if version == 5 else {}
    patterns = []
    while cursor.position < cursor.end:
        patterns.append(_pattern(cursor))
        yield
    if not patterns:
        raise protocol_error("an UNSUBSCRIBE without topic filters")  # [MQTT-3.10.3-2] of both
    return UnsubscribePacket(packet_id, patterns, values.get("user_properties", []))


def _pattern(cursor: Cursor) -> str:
    pattern = cursor.string()  # [MQTT-3.8.3-1] [MQTT-3.10.3-1] of both
    if not pattern:
        raise malformed("an empty topic filter")  # [MQTT-4.7.3-1] of both
    return pattern
