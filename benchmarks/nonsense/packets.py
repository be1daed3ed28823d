"""MQTT packets with random fields, properties and payloads."""

from __future__ import annotations

import base64
import json

from mqtt_bytes import field, frame
from nonsense.large import large_report
from nonsense.values import Values
from terrazzo_simulators.sealing import Seal

PROPERTIES = {
    **dict.fromkeys((0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2A), "byte"),
    **dict.fromkeys((0x13, 0x21, 0x22, 0x23), "two"),
    **dict.fromkeys((0x02, 0x11, 0x18, 0x27), "four"),
    **dict.fromkeys((0x03, 0x08, 0x12, 0x15, 0x1A, 0x1C, 0x1F), "text"),
    **dict.fromkeys((0x09, 0x16), "binary"),
    0x0B: "length",
    0x26: "pair",
}
"""The properties of MQTT 5 and the kind of each."""
LAWFUL = {"connect": (0x11, 0x21, 0x27, 0x22, 0x19, 0x17, 0x26), "publish": (0x01, 0x02, 0x03, 0x08, 0x09, 0x23, 0x26)}
_HEADERS = (
    {"alg": "dir", "enc": "A256GCM"},
    {"alg": "RSA-OAEP-256", "enc": "A256GCM"},
    {"alg": "RSA1_5", "enc": "A128CBC-HS256"},
    {"alg": "none"},
    {"alg": "dir", "enc": "A256GCM", "zip": "DEF"},
    {"alg": "dir", "enc": "A256GCM", "crit": ["exp"], "exp": 1},
    {"alg": "PBES2-HS512+A256KW", "enc": "A256GCM", "p2c": 2**31, "p2s": "AAAA"},
    {"alg": "ECDH-ES", "enc": "A256GCM", "epk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}},
)


class Packets:
    """Makes them.

    Args:
        uid: of the terminal whose they are.
        points: names that its payloads may have.
        large: the share of its payloads that are as large as may come.
    """

    def __init__(self, values: Values, uid: str, points: tuple[str, ...], *, protocol: int, large: float = 0.0) -> None:
        self._large = large
        self.values = values
        self._uid = uid
        self._points = points
        self._protocol = protocol

    def any(self) -> bytes:
        """One of any kind; what only a broker sends among them, now and then."""
        values = self.values
        match values.random.randrange(12):
            case 0 | 1 | 2 | 3 | 4 | 5 | 6:
                packet = self.publish()
            case 7:
                packet = self.subscribe()
            case 8:
                packet = frame(0xA2, self._id(), self._properties("none"), self._text())
            case 9:
                packet = frame(values.pick((0x40, 0x50, 0x62, 0x70)), self._id())
            case 10:
                packet = frame(0xC0)
            case _:
                packet = frame(values.random.randrange(256), values.bytes(40))
        return values.damaged(packet) if values.chance(0.05) else packet

    def publish(self) -> bytes:
        """A PUBLISH of any QoS."""
        values, qos = self.values, self.values.pick((0, 1, 1, 1, 2, 2, 3) if self.values.chance(0.1) else (0, 1, 1, 2))
        first = 0x30 | qos << 1 | values.chance(0.2) | 8 * values.chance(0.05)
        return frame(first, self._topic(), self._id() if qos else b"", self._properties("publish"), self.payload())

    def subscribe(self) -> bytes:
        """A SUBSCRIBE of some filters."""
        values = self.values
        entries = [
            self._text() + bytes((values.pick((0, 1, 2, 0x2E, 3, 255)),)) for _ in range(values.random.randrange(4))
        ]
        return frame(0x82, self._id(), self._properties("none"), *entries)

    def connect(self, username: str, pin: str) -> bytes:
        """A CONNECT, most often of somebody who may."""
        values, version = self.values, self._protocol
        name = values.pick((b"MQTT", b"MQTT", b"MQTT", b"MQIsdp", values.bytes(8)))
        flags = values.pick((0xC2, 0xC2, 0xC0, 0xC6 | values.random.randrange(4) << 3, values.random.randrange(256)))
        fields = [self._text() if values.chance(0.2) else field(self._uid)]
        if flags & 4:
            fields += [self._properties("publish"), self._topic(), field(self.payload()[:60_000])]
        fields += [self._text() if values.chance(0.2) else field(each) for each in (username, pin)]
        keep_alive = values.bytes(3)[:2].rjust(2, b"\0")
        head = field(name) + bytes((values.pick((version, version, 3, 9)), flags)) + keep_alive
        packet = frame(0x10, head, self._properties("connect"), *fields)
        return values.damaged(packet) if values.chance(0.3) else packet

    def payload(self) -> bytes:
        """What it reports: plain, or sealed, or what looks as if it were."""
        values = self.values
        is_large = bool(self._large) and values.chance(self._large)
        plain = large_report(values, self._points) if is_large else values.payload(self._points)
        match values.random.randrange(5):
            case 0:
                sealed = Seal(pin=f"pin-{self._uid}"[:16], uid=self._uid).seal(plain)
                return values.damaged(sealed) if values.chance(0.5) else sealed
            case 1:
                return self._like_sealed(plain)
        return plain

    def _like_sealed(self, text: bytes) -> bytes:
        values = self.values
        header = values.json({**values.pick(_HEADERS), values.text(): values.value()})
        if values.chance(0.5):
            header = json.dumps(values.changed(values.pick(_HEADERS))).encode()
        parts = (header, values.bytes(300), values.bytes(13), text, values.bytes(17))
        return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in parts)

    def _topic(self) -> bytes:
        values = self.values
        if values.chance(0.3):
            return self._text()
        channel = values.pick(("r", "a", "v", "p", "i", "n", "r/sub", "zz"))
        return field(f"g/{values.pick((self._uid, self._uid, 'r', values.pick(values.known)))}/{channel}"[:300])

    def _text(self) -> bytes:
        return field(self.values.text().encode("utf-8", self.values.pick(("surrogatepass", "replace")))[:65_535])

    def _id(self) -> bytes:
        return self.values.random.randrange(65_536).to_bytes(2, "big")

    def _properties(self, packet: str) -> bytes:
        """Encoded properties with their length, where the protocol has them."""
        if self._protocol != 5:
            return b""
        values, ids = self.values, list(LAWFUL.get(packet, ()))
        if values.chance(0.1):
            ids = list(PROPERTIES)
        chosen = [values.pick(ids) for _ in range(values.pick((0, 0, 1, 2, 5)))] if ids else []
        data = b"".join(bytes((each,)) + self._property(PROPERTIES[each]) for each in chosen)
        return frame(0, data)[1:]

    def _property(self, kind: str) -> bytes:
        match kind:
            case "byte":
                return bytes((self.values.pick((0, 1, 1, 2)),))
            case "two" | "four":
                size = 2 if kind == "two" else 4
                return self.values.pick((0, 1, 7, 2 ** (8 * size) - 1)).to_bytes(size, "big")
            case "length":
                return bytes((self.values.random.randrange(128),))
            case "binary":
                return field(self.values.bytes(50))
            case "pair":
                return self._text() + self._text()
        return self._text()
