"""Encodes and decodes the data types of MQTT: integers, strings, binary data, lengths. MQTT, section 1.5."""

from __future__ import annotations

from .errors import malformed, protocol_error

_ONE_BYTE = tuple(bytes((value,)) for value in range(128))


def encode_length(value: int) -> bytes:
    """A Variable Byte Integer, as short as can be. [MQTT-1.5.5-1]"""
    if value < 128:
        return _ONE_BYTE[value]
    if value < 16_384:
        return bytes((value & 127 | 128, value >> 7))
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_binary(data: bytes) -> bytes:
    """Two bytes of length and the data; a string is its UTF-8."""
    return len(data).to_bytes(2, "big") + data


class Cursor:
    """Reads fields one after the other out of one packet's body.

    Each method raises ``PacketError`` 0x81 where the body ends early or a value can't be.
    """

    __slots__ = ("buffer", "end", "position")

    def __init__(self, buffer: bytes, position: int = 0, end: int | None = None) -> None:
        self.buffer = buffer
        self.position = position
        self.end = len(buffer) if end is None else end

    def take(self, count: int) -> bytes:
        """The next ``count`` bytes."""
        start = self.position
        if start + count > self.end:
            raise malformed("the packet ends inside a field")
        self.position = start + count
        return self.buffer[start : self.position]

    def rest(self) -> bytes:
        """All bytes that are left."""
        return self.take(self.end - self.position)

    def byte(self) -> int:
        """An integer of one byte."""
        position = self.position
        if position >= self.end:
            raise malformed("the packet ends inside a field")
        self.position = position + 1
        return self.buffer[position]

    def integer(self, size: int) -> int:
        """A big-endian integer of ``size`` bytes."""
        return int.from_bytes(self.take(size), "big")

    def length(self) -> int:
        """A Variable Byte Integer of at most four bytes, in its shortest form. [MQTT-1.5.5-1]"""
        value = 0
        for shift in (0, 7, 14, 21):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                if shift and not byte:
                    raise malformed("a length is encoded longer than it needs")
                return value
        raise malformed("a length takes more than four bytes")

    def binary(self) -> bytes:
        """Binary data or a string's bytes with their two-byte length: up to 65,535. [MQTT-4.7.3-3] of both"""
        buffer, start = self.buffer, self.position + 2
        if start > self.end:
            raise malformed("the packet ends inside a field")
        self.position = end = start + (buffer[start - 2] << 8 | buffer[start - 1])
        if end > self.end:
            raise malformed("the packet ends inside a field")
        return buffer[start:end]

    def string(self) -> str:
        """A UTF-8 string, without U+0000 and surrogates."""
        return decode_string(self.binary())

    def packet_id(self) -> int:
        """A packet identifier; zero is a protocol error. [MQTT-2.2.1-3]; [MQTT-2.3.1-1] of 3.1.1"""
        value = self.integer(2)
        if not value:
            raise protocol_error("packet identifier 0")
        return value

    def finish(self) -> None:
        """Checks that nothing is left."""
        if self.position != self.end:
            raise malformed(f"{self.end - self.position} bytes are left after the last field")


def decode_string(data: bytes) -> str:
    """The text of an MQTT string; a byte order mark stays. [MQTT-1.5.4-3]; [MQTT-1.5.3-3] of 3.1.1"""
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        # [MQTT-1.5.4-1]; [MQTT-1.5.3-1] of 3.1.1
        raise malformed("a string is not UTF-8") from None
    if "\0" in text:
        # [MQTT-1.5.4-2] [MQTT-4.7.3-2]; [MQTT-1.5.3-2] [MQTT-4.7.3-2] of 3.1.1
        raise malformed("a string contains U+0000")
    return text


def parse_frame(buffer: bytes, position: int) -> tuple[int, int] | None:
    """Where the body of the packet at ``position`` starts and ends; None while its length hasn't all arrived."""
    at = position + 1
    if at < len(buffer) and (byte := buffer[at]) < 128:  # as most are: the shortest form
        return at + 1, at + 1 + byte
    length = 0
    for index, shift in enumerate((0, 7, 14, 21), position + 1):
        if index >= len(buffer):
            return None
        byte = buffer[index]
        length |= (byte & 127) << shift
        if byte < 128:
            if shift and not byte:
                raise malformed("the remaining length is encoded longer than it needs")
            return index + 1, index + 1 + length
    raise malformed("the remaining length takes more than four bytes")  # [MQTT-1.5.5-1]
