"""A client of MQTT 5.0 that says nothing of its own accord, for what is at a front's sockets while it stands still."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import mqtt5
import pytest

from running import Platform


class NotLetIn(Exception):
    """The login was refused, or the connection ended instead; ``str()`` is what came."""


class Wire:
    """A connection of a terminal whose session lasts ten minutes; ``present``: whether the front had it."""

    def __init__(self, at: Platform, uid: str, *, will: bytes = b"", timeout_s: float = 60) -> None:
        self.uid = uid
        self._socket = socket.create_connection(("127.0.0.1", at.mqtt), timeout_s)
        self._read = b""
        given = None if not will else mqtt5.Will(f"g/{uid}/r", payload=will, qos=mqtt5.QoS(1))
        login = {"username": f"u-{uid}", "password": f"pin-{uid}".encode()}
        self.send(mqtt5.ConnectPacket(uid, **login, will=given, session_expiry_interval=600))
        answer = self.receive()
        if not isinstance(answer, mqtt5.ConnAckPacket) or int(answer.reason_code):
            self.end()
            raise NotLetIn(str(answer))
        self.present = answer.session_present

    def send(self, packet: mqtt5.Packet) -> None:
        self._socket.sendall(packet.write())

    def publish(self, topic: str, payload: bytes, packet_id: int) -> None:
        """At QoS 1; nothing is waited for."""
        self.send(mqtt5.PublishPacket(topic, payload=payload, qos=mqtt5.QoS(1), packet_id=packet_id))

    def subscribe(self, pattern: str, qos: int) -> None:
        """Returns when the SUBACK is there."""
        self.send(mqtt5.SubscribePacket(9, [mqtt5.TopicFilter(pattern, max_qos=mqtt5.QoS(qos))]))
        answer = self.receive()
        assert isinstance(answer, mqtt5.SubAckPacket), answer
        assert int(answer.reason_codes[0]) == qos

    def receive(self) -> mqtt5.Packet | None:
        """The next packet; None: the connection has ended."""
        while True:
            length = _length(self._read)
            if length and len(self._read) >= length:
                found, self._read = self._read[:length], self._read[length:]
                return mqtt5.read(memoryview(found))[0]
            try:
                more = self._socket.recv(65_536)
            except ConnectionError:
                return None
            if not more:
                return None
            self._read += more

    def tell(self, topic: str, payload: bytes) -> int:
        """Publishes at QoS 1; the reason code of the PUBACK."""
        self.publish(topic, payload, 5)
        answer = self.receive()
        assert isinstance(answer, mqtt5.PubAckPacket), answer
        return int(answer.reason_code)

    def hear(self, count: int) -> list[bytes]:
        """So many payloads, each acknowledged."""
        return self._hear(lambda found: len(found) >= count)

    def hear_to(self, last: bytes) -> list[bytes]:
        """All payloads up to this one, each acknowledged."""
        return self._hear(lambda found: found[-1:] == [last])

    def _hear(self, is_enough: Callable[[list[bytes]], bool]) -> list[bytes]:
        found: list[bytes] = []
        while not is_enough(found):
            packet = self.receive()
            if isinstance(packet, mqtt5.PublishPacket):
                found.append(bytes(packet.payload or b""))
                if packet.qos == 1:
                    self.send(mqtt5.PubAckPacket(packet.packet_id))
                elif packet.qos == 2:
                    self.send(mqtt5.PubRecPacket(packet.packet_id))
            elif isinstance(packet, mqtt5.PubRelPacket):
                self.send(mqtt5.PubCompPacket(packet.packet_id))
            else:
                raise AssertionError(f"{packet} instead of a message; there were {found}")
        return found

    def silence(self) -> None:
        """Checks that nothing more comes: what was under way at QoS 2 is ended, then a PINGREQ is answered first."""
        self.send(mqtt5.PingReqPacket())
        while not isinstance(packet := self.receive(), mqtt5.PingRespPacket):
            assert isinstance(packet, mqtt5.PubRelPacket), packet
            self.send(mqtt5.PubCompPacket(packet.packet_id))

    def rest(self) -> list[mqtt5.Packet]:
        """All that still comes, to the connection's end."""
        found = []
        while (packet := self.receive()) is not None:
            found.append(packet)
        return found

    def end(self) -> None:
        """Ends the connection without a word."""
        self._socket.close()


Dial = Callable[..., Wire]


@pytest.fixture
def dial() -> Iterator[Dial]:
    """Connects terminals: ``dial(at, uid)``."""
    with ExitStack() as ends:

        def connect(*given: object, **options: object) -> Wire:
            wire = Wire(*given, **options)  # type: ignore[arg-type]
            ends.callback(wire.end)
            return wire

        yield connect


def _length(read: bytes) -> int:
    """Of the packet that begins here; 0: not known yet."""
    length = 0
    for index, byte in enumerate(read[1:5], 1):
        length |= (byte & 127) << 7 * (index - 1)
        if byte < 128:
            return length + index + 1
    return 0
