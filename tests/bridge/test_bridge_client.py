"""The bridge is a client too, and keeps to what binds clients: watched by a remote broker that the test plays."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import mqtt5
import psutil
import pytest
from bridge_rig import bridge_toml, metric, start_platform, stored, terminal

from mqtt_bytes import field, frame
from running import Platform, wait_for

KEEP_ALIVE_S = 5
WINDOW = 2  # Receive Maximum of the remote broker


@dataclass
class Packet:
    """One packet of a client's. ``rest`` is what follows identifier and properties."""

    first: int
    body: bytes
    protocol: str
    topic: str = ""
    packet_id: int = 0
    rest: bytes = b""

    @property
    def kind(self) -> int:
        return self.first >> 4

    def parse(self) -> Self:
        """Splits what has an identifier, and has an independent reader look at the whole of 5.0."""
        body = self.body
        if self.kind == 3:
            assert self.first & 6 != 6  # [MQTT-3.3.1-4]
            end = 2 + int.from_bytes(body[:2], "big")
            self.topic, body = body[2:end].decode("utf-8", "strict"), body[end:]
            assert self.topic
            assert not set(self.topic) & set("+#\0")  # [MQTT-3.3.2-2]
        else:
            assert self.first & 15 == {6: 2, 8: 2, 10: 2}.get(self.kind, 0)  # [MQTT-2.2.2-1] [MQTT-2.1.3-1]
        if (self.kind == 3 and self.first & 6) or self.kind in (4, 5, 6, 7, 8, 10):
            self.packet_id, body = int.from_bytes(body[:2], "big"), body[2:]
            assert self.packet_id  # [MQTT-2.3.1-1] [MQTT-2.2.1-3]
        elif self.kind == 3:
            assert not self.first & 8  # [MQTT-3.3.1-2]
        self.rest = body
        if self.protocol == "5.0":
            raw = frame(self.first, self.body)
            assert mqtt5.read(memoryview(raw))[1] == len(raw)
        return self


class Remote:
    """Listens; one connection at a time, everything said by the test."""

    def __init__(self, protocol: str) -> None:
        self.protocol = protocol
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(20)
        self.port = self.listener.getsockname()[1]
        self.connection: socket.socket | None = None

    def accept(self, *, session_present: bool = False) -> Packet:
        """The CONNECT, which is answered."""
        self.close()
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(20)
        connect = self.receive()
        assert connect.kind == 1  # [MQTT-3.1.0-1]
        properties = frame(0, b"\x21" + WINDOW.to_bytes(2, "big"))[1:] if self.protocol == "5.0" else b""
        self.send(frame(0x20, bytes((session_present, 0)), properties))
        return connect

    def subscribed(self) -> Packet:
        """The SUBSCRIBE, which is granted."""
        subscribe = self.receive()
        assert subscribe.kind == 8
        self.send(frame(0x90, subscribe.packet_id.to_bytes(2, "big"), self.none, b"\x01"))
        return subscribe

    def published(self) -> Packet:
        """The next PUBLISH; on a slow machine a PINGREQ may come before it."""
        while (packet := self.receive()).kind == 12:
            pass
        return packet

    def receive(self) -> Packet:
        first = self._read(1)[0]
        length = shift = 0
        while True:
            digit = self._read(1)[0]
            length |= (digit & 127) << shift
            shift += 7
            if digit < 128:
                assert digit or shift == 7  # [MQTT-1.5.5-1]
                return Packet(first, self._read(length), self.protocol).parse()

    def _read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            assert self.connection is not None
            more = self.connection.recv(count - len(data))
            assert more, "the bridge has closed"
            data += more
        return data

    def silent(self, seconds: float) -> None:
        """Nothing comes for so long."""
        assert self.connection is not None
        self.connection.settimeout(seconds)
        with pytest.raises(TimeoutError):
            self.connection.recv(1)
        self.connection.settimeout(20)

    def has_closed(self) -> bool:
        """Waits for the end of the connection."""
        assert self.connection is not None
        try:
            return self.connection.recv(1) == b""
        except ConnectionError:
            return True

    def send(self, data: bytes) -> None:
        assert self.connection is not None
        self.connection.sendall(data)

    def acknowledge(self, packet: Packet) -> None:
        self.send(frame(0x40, packet.packet_id.to_bytes(2, "big")))

    def publish(self, topic: str, payload: bytes, *, qos: int, packet_id: int) -> None:
        identifier = packet_id.to_bytes(2, "big") if qos else b""
        self.send(frame(0x30 | qos << 1, field(topic), identifier, self.none, payload))

    @property
    def none(self) -> bytes:
        """No properties."""
        return b"\0" if self.protocol == "5.0" else b""

    def close(self) -> None:
        if self.connection is not None:
            self.connection.close()


@pytest.fixture(params=["3.1.1", "5.0"])
def remote(request: pytest.FixtureRequest) -> Iterator[Remote]:
    remote = Remote(request.param)
    yield remote
    remote.close()
    remote.listener.close()


@pytest.fixture
def platform(remote: Remote, tmp_path: Path) -> Iterator[Platform]:
    toml = bridge_toml(
        f"mqtt://127.0.0.1:{remote.port}",
        protocol=remote.protocol,
        client_id="bridge",
        username="name",
        password="secret",
        keep_alive_s=KEEP_ALIVE_S,
        out=[{"filter": "g/t1/#"}],
        in_=[{"filter": "g/t2/#"}],
    )
    with start_platform(tmp_path, toml) as running:
        yield running


def numbered(packets: list[Packet]) -> list[int]:
    return [json.loads(each.rest[each.rest.index(b"{") :])["n"] for each in packets]


def test_what_binds_clients(remote: Remote, platform: Platform) -> None:
    connect = remote.accept()
    level, flags = connect.body[6], connect.body[7]
    assert (connect.body[:6], level) == (b"\0\x04MQTT", 5 if remote.protocol == "5.0" else 4)
    assert flags == 0b1100_0000  # a session, a name, a password, no will [MQTT-3.1.2-3] [MQTT-3.1.2-11]
    assert int.from_bytes(connect.body[8:10], "big") == KEEP_ALIVE_S
    assert connect.body.endswith(field("bridge") + field("name") + field("secret"))  # [MQTT-3.1.3-1]

    subscribe = remote.subscribed()
    filters = subscribe.rest[len(remote.none) :]
    assert filters[:-1] == field("g/t2/#")  # [MQTT-3.8.3-1]
    assert filters[-1] & (0xC0 if remote.protocol == "5.0" else 0xFC) == 0  # [MQTT-3.8.3-5]

    with terminal(platform) as here:
        for number in range(3):
            here.publish("g/t1/r", json.dumps({"n": number}))
        sent = [remote.published() for _ in range(2)]
        if remote.protocol == "5.0":
            remote.silent(0.3)  # the window is full [MQTT-3.3.4-7]
        remote.acknowledge(sent[0])
        sent.append(remote.published())
        assert numbered(sent) == [0, 1, 2]  # [MQTT-4.6.0-1]
        assert {each.first for each in sent} == {0x32}  # no DUP at first [MQTT-4.3.2-2]
        assert len({each.packet_id for each in sent}) == 3  # [MQTT-2.3.1-2] [MQTT-2.2.1-4]

        remote.close()  # without an acknowledgement of two
        assert remote.accept(session_present=True).body[7] & 2 == 0
        again = [remote.published() for _ in range(2)]
        assert numbered(again) == [1, 2]
        assert [each.packet_id for each in again] == [each.packet_id for each in sent[1:]]  # [MQTT-4.4.0-1]
        assert {each.first for each in again} == {0x3A}  # DUP [MQTT-3.3.1-1]
        remote.subscribed()
        for each in again:
            remote.acknowledge(each)
        here.publish("g/t1/r", '{"n": 3}')
        later = remote.published()
        assert (later.first, numbered([later])) == (0x32, [3])
        remote.acknowledge(later)
        wait_for(lambda: metric(platform, "queued") == 0, "nothing left to send")

    for number in range(3):  # whatever comes is acknowledged, in its order [MQTT-4.5.0-2] [MQTT-4.6.0-2]
        remote.publish("g/t2/r", b'{"n": %d}' % number, qos=1, packet_id=7 + number)
    pubacks = [remote.receive() for _ in range(3)]
    assert [(each.first, each.packet_id) for each in pubacks] == [(0x40, 7), (0x40, 8), (0x40, 9)]
    remote.publish("g/t2/r", b'{"n": 3}', qos=0, packet_id=0)
    wait_for(lambda: len(stored(platform, "t2")) == 4, "what came in")

    since = time.monotonic()
    assert remote.receive().kind == 12  # PINGREQ
    assert (
        time.monotonic() - since < 1.5 * KEEP_ALIVE_S
    )  # when a broker would give it up: [MQTT-3.1.2-23] [MQTT-3.1.2-20]
    remote.send(b"\xd0\x00")

    platform.process.terminate()
    goodbye = remote.receive()
    assert goodbye.kind == 14
    assert remote.has_closed()  # and nothing after it [MQTT-3.14.4-1] [MQTT-3.14.4-2]


def test_a_session_that_the_remote_broker_has_lost(remote: Remote, platform: Platform) -> None:
    remote.accept()
    remote.subscribed()
    with terminal(platform) as here:
        here.publish("g/t1/r", '{"n": 1}')
        assert remote.receive().first == 0x32
        remote.close()
        remote.accept(session_present=False)
        remote.subscribed()
        again = remote.receive()
        assert (again.first, numbered([again])) == (0x32, [1])  # new to that broker [MQTT-4.3.2-2]
        remote.acknowledge(again)
        wait_for(lambda: metric(platform, "queued") == 0, "nothing left to send")


def test_a_malformed_packet_ends_the_connection(remote: Remote, platform: Platform) -> None:
    for bad in (b"\x36\x05\0\x01tab", b"\x40\x01\0", b"\x00\x00"):  # QoS 3, cut off, no such type
        remote.accept()
        remote.subscribed()
        remote.send(bad)
        assert remote.has_closed()  # [MQTT-4.8.0-1] [MQTT-4.13.1-1]
    remote.accept()  # and it comes again


def test_what_no_client_may_publish_is_refused(remote: Remote, platform: Platform) -> None:
    connect = remote.accept()
    if remote.protocol == "5.0":
        assert b"\x27" + (1 << 20).to_bytes(4, "big") in connect.body  # Maximum Packet Size
    remote.subscribed()
    bad = ["g/t2/r/#", "g/t2/r/+/x", "g/t2/r/\0", "g/t2/r" + "/x" * 200, "g/t2/r/" + "x" * 1_024]
    for number, topic in enumerate(bad, 1):
        remote.publish(topic, b'{"a": 1}', qos=1, packet_id=number)
    large = json.dumps({"a": "x" * (1 << 20)}).encode()
    if remote.protocol == "3.1.1":  # it has not been told
        remote.publish("g/t2/r", large, qos=1, packet_id=len(bad) + 1)
    else:  # properties that are no MQTT any more
        text = frame(0, b"\x08" + field("a/#"))[1:]
        remote.send(frame(0x32, field("g/t2/r"), b"\0\6", text, b"{}"))
    remote.publish("g/t2/r", b'{"good": 1}', qos=1, packet_id=19)
    answered = [remote.published() for _ in range(len(bad) + 2)]
    assert [each.packet_id for each in answered] == [*range(1, len(bad) + 2), 19]
    wait_for(lambda: metric(platform, "received") == 1, "the good one")
    assert metric(platform, "refused_here") == len(bad) + 1


def test_a_topic_that_is_no_text_is_refused_and_ends_nothing(remote: Remote, platform: Platform) -> None:
    remote.accept()
    remote.subscribed()
    head = b"" if remote.protocol == "3.1.1" else b"\0"
    bad = [b"g/t2/r/\xff", b"g/t2/\xed\xa0\x80", b"\xc0\x80"]
    for number, topic in enumerate(bad, 1):
        remote.send(frame(0x32, field(topic), number.to_bytes(2), head, b'{"a": 1}'))
    remote.publish("g/t2/r", b'{"good": 1}', qos=1, packet_id=19)
    assert [remote.published().packet_id for _ in range(len(bad) + 1)] == [1, 2, 3, 19], "on the same connection"
    wait_for(lambda: metric(platform, "received") == 1, "the good one")
    assert metric(platform, "refused_here") == len(bad)


def test_a_packet_of_any_length_costs_no_more_memory_than_one_may(remote: Remote, platform: Platform) -> None:
    remote.accept()
    remote.subscribed()
    wait_for(lambda: metric(platform, "connected") == 1, "it is in use")
    process = psutil.Process(platform.pid)
    remote.publish("g/t2/r", b'{"before": 1}', qos=1, packet_id=1)
    remote.published()
    before, most = process.memory_info().rss, 0
    payload = b"x" * (8 << 20)
    head = b"" if remote.protocol == "3.1.1" else b"\0"
    packet = frame(0x32, field("g/t2/r"), b"\0\2", head, *[payload] * 15)
    for at in range(0, len(packet), len(payload)):
        remote.send(packet[at : at + len(payload)])
        most = max(most, process.memory_info().rss - before)
    remote.publish("g/t2/r", b'{"good": 1}', qos=1, packet_id=3)
    assert [remote.published().packet_id for _ in range(2)] == [2, 3], "it is read to its end, and the next one is read"
    assert max(most, process.memory_info().rss - before) < 32 << 20
    assert metric(platform, "refused_here") == 1
    assert stored(platform, "t2") == [{"before": 1}, {"good": 1}]
