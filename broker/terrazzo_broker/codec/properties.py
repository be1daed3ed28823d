"""MQTT 5 properties as a client may send them: one table, one reader. [MQTT-2.2.2]"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..scheduling.turns import Steps
from .errors import malformed, protocol_error
from .wire import Cursor


class Property(NamedTuple):
    """One row of the table: the property's keyword in ``mqtt5``, how it is read, the packets that it may stand in."""

    name: str
    read: Callable[[Cursor], Any]
    packets: str


def _flag(cursor: Cursor) -> int:
    value = cursor.byte()
    if value > 1:
        raise protocol_error(f"a property is {value} where only 0 and 1 exist")
    return value


def _boolean(cursor: Cursor) -> bool:
    return bool(_flag(cursor))


def _two(cursor: Cursor) -> int:
    return cursor.integer(2)


def _four(cursor: Cursor) -> int:
    return cursor.integer(4)


def _two_above_zero(cursor: Cursor) -> int:
    return _above_zero(cursor.integer(2))


def _four_above_zero(cursor: Cursor) -> int:
    return _above_zero(cursor.integer(4))


def _length_above_zero(cursor: Cursor) -> int:
    return _above_zero(cursor.length())


def _above_zero(value: int) -> int:
    if not value:
        raise protocol_error("a property is 0 where 0 is not allowed")
    return value


def _pair(cursor: Cursor) -> tuple[str, str]:
    return cursor.string(), cursor.string()  # [MQTT-1.5.7-1]


USER_PROPERTY = 0x26

PROPERTIES: Mapping[int, Property] = {
    0x01: Property("payload_format_indicator", _flag, "publish will"),
    0x02: Property("message_expiry_interval", _four, "publish will"),
    0x03: Property("content_type", Cursor.string, "publish will"),  # [MQTT-3.3.2-19]
    0x08: Property("response_topic", Cursor.string, "publish will"),  # [MQTT-3.3.2-13]
    0x09: Property("correlation_data", Cursor.binary, "publish will"),
    0x0B: Property("subscription_id", _length_above_zero, "publish subscribe"),
    0x11: Property("session_expiry_interval", _four, "connect disconnect"),
    0x15: Property("authentication_method", Cursor.string, "connect auth"),
    0x16: Property("authentication_data", Cursor.binary, "connect auth"),
    0x17: Property("request_problem_info", _boolean, "connect"),
    0x18: Property("will_delay_interval", _four, "will"),
    0x19: Property("request_response_info", _boolean, "connect"),
    0x1F: Property("reason_str", Cursor.string, "ack disconnect auth"),
    0x21: Property("receive_max", _two_above_zero, "connect"),
    0x22: Property("topic_alias_max", _two, "connect"),
    0x23: Property("topic_alias", _two, "publish"),
    USER_PROPERTY: Property("user_properties", _pair, "connect will publish ack subscribe unsubscribe disconnect auth"),
    0x27: Property("max_packet_size", _four_above_zero, "connect"),
}

# What a PUBLISH carries on to subscribers unchanged; the expiry is counted down instead.
# [MQTT-3.3.2-4] [MQTT-3.3.2-15] [MQTT-3.3.2-16] [MQTT-3.3.2-17] [MQTT-3.3.2-20]
FORWARDED = frozenset((0x01, 0x03, 0x08, 0x09, USER_PROPERTY))


def _allowed(packet: str) -> dict[int, Property]:
    return {number: row for number, row in PROPERTIES.items() if packet in row.packets.split()}


ALLOWED = {
    packet: _allowed(packet)
    for packet in ("connect", "will", "publish", "ack", "subscribe", "unsubscribe", "disconnect", "auth")
}


def parse_properties(cursor: Cursor, packet: str, forwarded: list[bytes] | None = None) -> dict[str, Any]:
    """The properties at the cursor by ``mqtt5`` keyword; those in ``FORWARDED`` also go raw into ``forwarded``.

    Raises:
        PacketError: 0x81 for an identifier that may not stand here, 0x82 for one that stands twice.
    """
    outer_end, allowed = _begin(cursor), ALLOWED[packet]
    values: dict[str, Any] = {}
    while cursor.position < cursor.end:
        _take_one(cursor, allowed, values, forwarded)
    cursor.end = outer_end
    return values


def read_properties(cursor: Cursor, packet: str, forwarded: list[bytes] | None = None) -> Steps[dict[str, Any]]:
    """``parse_properties`` in steps.

    Raises:
        PacketError: as there.
    """
    outer_end, allowed = _begin(cursor), ALLOWED[packet]
    values: dict[str, Any] = {}
    while cursor.position < cursor.end:
        _take_one(cursor, allowed, values, forwarded)
        yield
    cursor.end = outer_end
    return values


def _begin(cursor: Cursor) -> int:
    """Ends the cursor with the properties; where it ended before."""
    length = cursor.length()  # there also where it is 0 [MQTT-2.2.2-1]
    outer_end, cursor.end = cursor.end, cursor.position + length
    if cursor.end > outer_end:
        raise malformed("the properties are longer than the packet")
    return outer_end


def _take_one(
    cursor: Cursor, allowed: Mapping[int, Property], values: dict[str, Any], forwarded: list[bytes] | None
) -> None:
    start = cursor.position
    number = cursor.length()
    row = allowed.get(number)
    if row is None:
        raise malformed(f"property 0x{number:02x} may not stand here")
    value = row.read(cursor)
    if forwarded is None or number != USER_PROPERTY:  # else as it came is enough
        _put(values, row, value)
    if forwarded is not None and number in FORWARDED:
        forwarded.append(cursor.buffer[start : cursor.position])  # in their order [MQTT-3.3.2-18]


def _put(values: dict[str, Any], row: Property, value: Any) -> None:
    if row.name == "user_properties":
        values.setdefault(row.name, []).append(value)
    elif row.name in values:
        raise protocol_error(f"property {row.name} twice")
    else:
        values[row.name] = value
