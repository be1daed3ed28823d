"""What a packet of MQTT says, for people: its kind, topic and codes; of a payload the beginning, secrets masked.

Passwords and data of authentication are never looked at: of a CONNECT, and of an AUTH, kind and size are told alone.
"""

from __future__ import annotations

import re

import msgspec

from terrazzo_broker.codec.errors import PacketError
from terrazzo_broker.codec.reader import (
    AUTH,
    CONNECT,
    DISCONNECT,
    PUBACK,
    PUBCOMP,
    PUBLISH,
    SUBACK,
    SUBSCRIBE,
    UNSUBACK,
    UNSUBSCRIBE,
)
from terrazzo_broker.codec.wire import Cursor
from terrazzo_broker.tracing.packet_tap import TappedPacket

NAMES = (
    "", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE", "SUBACK",
    "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH",
)  # fmt: skip
"""By the packet's type."""

MOST_TEXT = 512  # characters of a payload that are told, and bytes of one that is no text
MOST_FILTERS = 20
_MASK = "***"
_SECRET = r"[\w-]{0,32}(?:pin|pwd|passw|secret|token|signature|credential|private|api_?key)[\w-]{0,32}"  # nosec B105
_JSON_SECRET = re.compile(rf'("{_SECRET}"\s{{0,8}}:\s{{0,8}})("[^"]{{0,1024}}"?|[^\s,}}"]{{1,1024}})', re.IGNORECASE)
_URL_QUERY = re.compile(r"(https?://[^\s\"?]{0,512}\?)[^\s\"]{1,1024}", re.IGNORECASE)
_URL_USER = re.compile(r"(\w{1,8}://)[^\s\"/@]{1,256}@")
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\ufffd]")


class PacketSummary(msgspec.Struct, kw_only=True):
    """One packet: ``direction`` in (from the terminal) or out, ``size`` in bytes, whole.

    ``payload``: the beginning of a PUBLISH's, as text with secrets masked, or hexadecimal (``is_hex``); ``cut``:
    there is more of it. ``codes``: reason codes, hexadecimal. ``filters``: of a SUBSCRIBE or UNSUBSCRIBE.
    """

    direction: str
    packet: str
    size: int
    qos: int | None = None
    retain: bool = False
    duplicate: bool = False
    packet_id: int | None = None
    topic: str = ""
    filters: list[str] = []
    codes: list[str] = []
    payload: str = ""
    is_hex: bool = False
    cut: bool = False


def summarize(packet: TappedPacket) -> PacketSummary:
    """What a packet says; what can't be read is left out."""
    kind = packet.header >> 4
    found = PacketSummary(direction="in" if packet.is_in else "out", packet=NAMES[kind] or "?", size=packet.size)
    if kind in (CONNECT, AUTH) or not kind:
        return found
    try:
        _read_fields(found, packet, kind)
    except PacketError:
        found.cut = True
    return found


def masked(text: str) -> str:
    """A text without what its names say is secret, and without users and queries of addresses."""
    text = _JSON_SECRET.sub(rf'\g<1>"{_MASK}"', text)
    return _URL_USER.sub(rf"\g<1>{_MASK}@", _URL_QUERY.sub(rf"\g<1>{_MASK}", text))


def _read_fields(found: PacketSummary, packet: TappedPacket, kind: int) -> None:
    cursor, is_new = Cursor(packet.body), packet.protocol == 5
    if kind == PUBLISH:
        _read_publish(found, packet, cursor, is_new=is_new)
    elif PUBACK <= kind <= PUBCOMP:
        found.packet_id = cursor.integer(2)
        if cursor.position < cursor.end:
            found.codes = [_hex(cursor.integer(1))]
    elif kind in (SUBSCRIBE, UNSUBSCRIBE):
        found.packet_id = cursor.integer(2)
        _skip_properties(cursor, is_new=is_new)
        found.cut = _read_filters(found, cursor, has_options=kind == SUBSCRIBE)
    elif kind in (SUBACK, UNSUBACK):
        found.packet_id = cursor.integer(2)
        _skip_properties(cursor, is_new=is_new)
        found.codes = [_hex(code) for code in cursor.rest()[:MOST_FILTERS]]
    elif kind == DISCONNECT and cursor.end:
        found.codes = [_hex(cursor.integer(1))]
    elif kind == 2 and cursor.end > 1:  # CONNACK: flags, then the code
        found.codes = [_hex(cursor.buffer[1])]


def _read_publish(found: PacketSummary, packet: TappedPacket, cursor: Cursor, *, is_new: bool) -> None:
    found.qos, found.retain = packet.header >> 1 & 3, bool(packet.header & 1)
    found.duplicate = bool(packet.header & 8)
    found.topic = cursor.binary().decode(errors="replace")
    if found.qos:
        found.packet_id = cursor.integer(2)
    _skip_properties(cursor, is_new=is_new)
    head_bytes = packet.size - len(packet.body)  # of the frame, where all of the body is there
    payload, is_whole = cursor.rest(), head_bytes <= 5
    found.payload, found.is_hex = _told(payload)
    found.cut = not is_whole or len(payload) > MOST_TEXT


def _told(payload: bytes) -> tuple[str, bool]:
    """A payload as text, and whether it is hexadecimal."""
    text = payload.decode(errors="replace")
    if _UNSEEN.search(text.rstrip("\ufffd")):
        return payload[: MOST_TEXT // 2].hex(), True
    return masked(text)[:MOST_TEXT], False


def _read_filters(found: PacketSummary, cursor: Cursor, *, has_options: bool) -> bool:
    """Reads filters; whether there are more."""
    found.filters = []
    while cursor.position < cursor.end and len(found.filters) < MOST_FILTERS:
        found.filters.append(cursor.binary().decode(errors="replace")[:MOST_TEXT])
        if has_options:
            cursor.take(1)
    return cursor.position < cursor.end


def _skip_properties(cursor: Cursor, *, is_new: bool) -> None:
    if is_new:
        cursor.take(cursor.length())


def _hex(code: int) -> str:
    return f"0x{code:02x}"
