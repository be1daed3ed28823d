"""Decodes every packet that a client may send, except PUBLISH; 3.1.1 packets are 5.0 packets without properties.

Those of 3.1 are 3.1.1's, less strict: flags that it doesn't define are not looked at, and a user name or password that
CONNECT announces may be missing (MQTT 3.1, section 3.1, "User name and password flags").

The values are ``mqtt5``'s packet classes. Its own reader is not used on a peer's bytes: it panics on strings that
are not UTF-8 and lets reserved bits, packet identifier 0 and empty filter lists pass. Its classes refuse some texts
that MQTT has an answer for, so topics are looked at before they get that far.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import mqtt5

from ..scheduling.turns import Steps, finish
from ..topics.names import is_topic_name
from .errors import PacketError, UnsupportedProtocol, malformed, protocol_error
from .properties import parse_properties, read_properties
from .subscribe import SubscribePacket, UnsubscribePacket, read_subscribe, read_unsubscribe
from .wire import Cursor

CONNECT, CONNACK, PUBLISH, PUBACK, PUBREC, PUBREL, PUBCOMP, SUBSCRIBE = range(1, 9)
SUBACK, UNSUBSCRIBE, UNSUBACK, PINGREQ, PINGRESP, DISCONNECT, AUTH = range(9, 16)

# [MQTT-2.1.3-1] [MQTT-3.6.1-1] [MQTT-3.8.1-1] [MQTT-3.10.1-1]
# [MQTT-2.2.2-1] [MQTT-3.6.1-1] [MQTT-3.8.1-1] [MQTT-3.10.1-1] of 3.1.1
_FLAGS = {PUBREL: 2, SUBSCRIBE: 2, UNSUBSCRIBE: 2}
_NO_FLAGS = 0  # [MQTT-3.14.1-1] [MQTT-3.15.1-1]; [MQTT-3.14.1-1] of 3.1.1

_Code = TypeVar("_Code", bound=int)
Packet = mqtt5.Packet | SubscribePacket | UnsubscribePacket
_Reader = Callable[[Cursor, int], Steps[Any]]


def parse_packet(header: int, cursor: Cursor, version: int) -> Packet:
    """Reads the packet whose first byte is ``header`` and whose body is the cursor's; ``version`` is 3, 4 or 5.

    Raises:
        PacketError: 0x81 where it can't be read, 0x82 where it may not be sent by a client.
    """
    return finish(read_packet(header, cursor, version))


def read_packet(header: int, cursor: Cursor, version: int) -> Steps[Packet]:
    """``parse_packet`` in steps.

    Raises:
        PacketError: as there.
    """
    kind = header >> 4
    read = _READERS.get(kind)
    if not kind or (kind == AUTH and version < 5):
        raise malformed(f"packet type {kind}")
    if read is None:
        raise protocol_error(f"packet type {kind} from a client")
    if header & 15 != _FLAGS.get(kind, _NO_FLAGS) and version > 3:  # [MQTT-2.2.2-2] of 3.1.1; DUP may be set in 3.1
        raise malformed(f"the flags of packet type {kind} are {header & 15}")
    packet: Packet = yield from read(cursor, version)
    cursor.finish()
    return packet


class ProtocolLevel(NamedTuple):
    """The protocol that a CONNECT names: 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.0.

    ``is_bridge``: the highest bit of the level is set, by which bridges of Mosquitto say what they are.
    """

    level: int
    is_bridge: bool = False


_LEVELS = {
    (b"MQIsdp", 0x03): ProtocolLevel(3),
    (b"MQIsdp", 0x83): ProtocolLevel(3, is_bridge=True),
    (b"MQTT", 0x04): ProtocolLevel(4),
    (b"MQTT", 0x84): ProtocolLevel(4, is_bridge=True),
    (b"MQTT", 0x05): ProtocolLevel(5),
}


def find_level(cursor: Cursor) -> ProtocolLevel | None:
    """The protocol that the CONNECT at the cursor names, which stays where it is; None: another one, or none."""
    start, end = cursor.position, cursor.end
    name_end = start + 2 + int.from_bytes(cursor.buffer[start : min(start + 2, end)], "big")
    if name_end >= end:
        return None
    return _LEVELS.get((cursor.buffer[start + 2 : name_end], cursor.buffer[name_end]))


def parse_connect(header: int, cursor: Cursor) -> tuple[mqtt5.ConnectPacket, ProtocolLevel]:
    """A CONNECT and its protocol.

    Raises:
        UnsupportedProtocol: another protocol or level.
        PacketError: anything else that's wrong with it.
    """
    if header != CONNECT << 4:
        raise malformed(f"the first byte of a CONNECT is 0x{header:02x}")
    name, number = cursor.binary(), cursor.byte()
    protocol = _LEVELS.get((name, number))
    if protocol is None:  # [MQTT-3.1.2-1] [MQTT-3.1.2-2] of both
        raise UnsupportedProtocol(name, number)
    version = protocol.level
    flags, keep_alive = cursor.byte(), cursor.integer(2)
    _check_connect_flags(flags, version)
    values = parse_properties(cursor, "connect") if version == 5 else {}
    # The payload in its order [MQTT-3.1.3-1] of both: what a flag announces is there, and nothing else.
    client_id = cursor.string()  # [MQTT-3.1.3-3] [MQTT-3.1.3-4] of both
    will = _will(cursor, flags, version) if flags & 0x04 else None  # [MQTT-3.1.2-9]; [MQTT-3.1.2-11] of 3.1.1
    # [MQTT-3.1.2-16] [MQTT-3.1.2-17] [MQTT-3.1.3-12]; [MQTT-3.1.2-18] [MQTT-3.1.2-19] [MQTT-3.1.3-11] of 3.1.1
    username = cursor.string() if flags & 0x80 and _is_there(cursor, version) else None
    # [MQTT-3.1.2-18] [MQTT-3.1.2-19]; [MQTT-3.1.2-20] [MQTT-3.1.2-21] of 3.1.1
    password = cursor.binary() if flags & 0x40 and _is_there(cursor, version) else None
    cursor.finish()
    if "authentication_data" in values and "authentication_method" not in values:
        raise protocol_error("authentication data without a method")  # section 3.1.2.11.10
    clean_start = bool(flags & 0x02)
    if version < 5:
        values["session_expiry_interval"] = 0 if clean_start else 0xFFFFFFFF
    return mqtt5.ConnectPacket(
        client_id,
        username=username,
        password=password,
        clean_start=clean_start,
        will=will,
        keep_alive=keep_alive,
        **values,
    ), protocol


def _is_there(cursor: Cursor, version: int) -> bool:
    """Whether a field that a flag announces is read: in 3.1 the packet's end goes before the flag."""
    return version > 3 or cursor.position < cursor.end


def _check_connect_flags(flags: int, version: int) -> None:
    if flags & 0x01 and version > 3:
        raise malformed("the reserved CONNECT flag is set")  # [MQTT-3.1.2-3] of both
    if not flags & 0x04 and flags & 0x38 and version > 3:
        # [MQTT-3.1.2-11] [MQTT-3.1.2-13]; [MQTT-3.1.2-13] [MQTT-3.1.2-15] of 3.1.1
        raise malformed("will QoS or will retain without a will")
    if flags & 0x18 == 0x18:
        raise malformed("will QoS 3")  # [MQTT-3.1.2-12]; [MQTT-3.1.2-14] of 3.1.1
    if version < 5 and flags & 0x40 and not flags & 0x80:
        raise malformed("a password without a user name")  # [MQTT-3.1.2-22] of 3.1.1


def _will(cursor: Cursor, flags: int, version: int) -> mqtt5.Will:
    values = parse_properties(cursor, "will") if version == 5 else {}
    topic = cursor.string()  # [MQTT-3.1.3-11]; [MQTT-3.1.2-9] [MQTT-3.1.3-10] of 3.1.1
    if not is_topic_name(topic):
        raise PacketError(mqtt5.DisconnectReasonCode.TOPIC_NAME_INVALID, "not a topic for a will")
    if not is_topic_name(values.get("response_topic", "none")):
        raise protocol_error("wildcards in a will's response topic")  # [MQTT-3.3.2-14]
    return mqtt5.Will(
        topic,
        payload=cursor.binary(),
        qos=mqtt5.QoS(flags >> 3 & 3),
        retain=bool(flags & 0x20),
        **values,
    )


def _code(codes: Callable[[int], _Code], value: int) -> _Code:
    try:
        return codes(value)
    except ValueError:
        raise malformed(f"reason code 0x{value:02x}") from None


def _ack_reader(packet: Callable[..., mqtt5.Packet], codes: Callable[[int], Any]) -> _Reader:
    def read(cursor: Cursor, version: int) -> Steps[mqtt5.Packet]:
        packet_id = cursor.packet_id()
        if version < 5 or cursor.position == cursor.end:
            return packet(packet_id)
        reason = _code(codes, cursor.byte())
        values = (yield from read_properties(cursor, "ack")) if cursor.position < cursor.end else {}
        return packet(packet_id, reason_code=reason, **values)

    return read


def _pingreq(cursor: Cursor, version: int) -> Steps[mqtt5.Packet]:
    yield from ()
    return mqtt5.PingReqPacket()


def _disconnect(cursor: Cursor, version: int) -> Steps[mqtt5.Packet]:
    if version < 5 or cursor.position == cursor.end:
        return mqtt5.DisconnectPacket()
    reason = _code(mqtt5.DisconnectReasonCode, cursor.byte())
    values = (yield from read_properties(cursor, "disconnect")) if cursor.position < cursor.end else {}
    return mqtt5.DisconnectPacket(reason_code=reason, **values)


def _auth(cursor: Cursor, version: int) -> Steps[mqtt5.Packet]:
    if cursor.position == cursor.end:
        return mqtt5.AuthPacket()
    reason = _code(mqtt5.AuthReasonCode, cursor.byte())
    values = (yield from read_properties(cursor, "auth")) if cursor.position < cursor.end else {}
    return mqtt5.AuthPacket(reason_code=reason, **values)


_READERS: dict[int, _Reader] = {
    PUBACK: _ack_reader(mqtt5.PubAckPacket, mqtt5.PubAckReasonCode),
    PUBREC: _ack_reader(mqtt5.PubRecPacket, mqtt5.PubRecReasonCode),
    PUBREL: _ack_reader(mqtt5.PubRelPacket, mqtt5.PubRelReasonCode),
    PUBCOMP: _ack_reader(mqtt5.PubCompPacket, mqtt5.PubCompReasonCode),
    SUBSCRIBE: read_subscribe,
    UNSUBSCRIBE: read_unsubscribe,
    PINGREQ: _pingreq,
    DISCONNECT: _disconnect,
    AUTH: _auth,
}
