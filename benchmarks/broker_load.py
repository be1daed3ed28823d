"""A load process: many connections, packets coded beforehand, so that the generator is not the limit.

Run by ``broker.py``: ``python broker_load.py '{"role": "publish", ...}'``. It says ``ready`` once connected, then obeys
lines on standard input: ``go`` starts publishing, ``mark`` prints a JSON line with the counts so far, ``end`` ends.
All packets of one run have the same size, so that counting is division and acknowledging is slicing.
"""

from __future__ import annotations

import json
import os
import select
import socket
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from mqtt_bytes import field, frame

READ_BYTES = 1 << 18


def connect(port: int, client_id: str, version: int) -> socket.socket:
    """A connected MQTT client; blocking until its CONNACK."""
    sock = socket.create_connection(("127.0.0.1", port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    properties = b"\0" if version == 5 else b""
    sock.sendall(frame(0x10, field(b"MQTT") + bytes((version, 2, 0, 0)) + properties + field(client_id.encode())))
    head = sock.recv(2)
    body = sock.recv(head[1])
    if head[0] != 0x20 or body[1]:
        raise SystemExit(f"refused: {head + body!r}")
    return sock


class Publisher:
    """One publishing connection: a chunk of packets again and again, at QoS 1 and 2 about ``window`` unacknowledged."""

    def __init__(
        self, sock: socket.socket, topic: bytes, *, qos: int, window: int, payload: bytes, version: int
    ) -> None:
        self.sock, self.qos, self.window = sock, qos, window
        properties = b"\0" if version == 5 else b""
        packets = []
        for number in range(window):
            identifier = (number + 1).to_bytes(2, "big") if qos else b""
            packets.append(frame(0x30 | qos << 1, field(topic) + identifier + properties + payload))
        self.chunk = b"".join(packets)
        self.size = len(packets[0])
        self.sent = self.acked = self.at = 0
        self.partial = b""

    def send(self) -> bool:
        """Sends what the window allows; False when the socket or the window is full."""
        if self.qos and self.sent // self.size >= self.acked + self.window:
            return False
        try:
            count = self.sock.send(self.chunk[self.at :] if self.at else self.chunk)
        except BlockingIOError:
            return False
        self.sent += count
        self.at = (self.at + count) % len(self.chunk)
        return True

    def receive(self) -> None:
        """Counts acknowledgements: 4 bytes each; QoS 2 goes on with PUBREL."""
        data = self.partial + self.sock.recv(READ_BYTES)
        whole = len(data) & ~3
        data, self.partial = data[:whole], data[whole:]
        if self.qos < 2:
            self.acked += whole // 4
            return
        release = bytearray()
        for start in range(0, whole, 4):
            if data[start] == 0x50:
                release += b"\x62\x02" + data[start + 2 : start + 4]
            else:
                self.acked += 1
        if release:
            self.sock.sendall(release)


class Subscriber:
    """One subscribing connection: counts messages of one size and acknowledges them."""

    def __init__(self, sock: socket.socket, topic_filter: str, *, qos: int, size: int, version: int) -> None:
        self.sock, self.qos, self.size, self.version = sock, qos, size, version
        self.count = 0
        self.partial = b""
        properties = b"\0" if version == 5 else b""
        sock.sendall(frame(0x82, b"\0\1" + properties + field(topic_filter.encode()) + bytes((qos,))))
        head = sock.recv(2)
        sock.recv(head[1])

    def receive(self) -> None:
        """Takes what has arrived."""
        data = self.sock.recv(READ_BYTES)
        if not data:
            raise SystemExit("the broker closed a subscriber")
        if self.qos == 2:
            return self._exactly_once(self.partial + data)
        data = self.partial + data if self.partial else data
        number = len(data) // self.size
        self.partial = data[number * self.size :]
        self.count += number
        if self.qos and number:
            at = 2 + (data[1] > 127) + 2 + int.from_bytes(data[2 + (data[1] > 127) : 4 + (data[1] > 127)], "big")
            self.sock.sendall(_acks(0x40, data, at, self.size, number))
        return None

    def _exactly_once(self, data: bytes) -> None:
        position, answer = 0, bytearray()
        while position < len(data):
            if data[position] == 0x62:
                if position + 4 > len(data):
                    break
                answer += b"\x70\x02" + data[position + 2 : position + 4]
                position += 4
                continue
            if position + self.size > len(data):
                break
            at = position + 2 + (data[position + 1] > 127)
            at += 2 + int.from_bytes(data[at : at + 2], "big")
            answer += b"\x50\x02" + data[at : at + 2]
            self.count += 1
            position += self.size
        self.partial = data[position:]
        if answer:
            self.sock.sendall(answer)


def _acks(first: int, data: bytes, at: int, size: int, number: int) -> bytearray:
    acks = bytearray(bytes((first, 2, 0, 0)) * number)
    acks[2::4] = data[at : number * size : size]
    acks[3::4] = data[at + 1 : number * size : size]
    return acks


def main() -> None:
    """Sets up, then serves the sockets and standard input until told to end."""
    options = json.loads(sys.argv[1])
    poll, members = select.epoll(), {}
    version, qos = options.get("version", 4), options["qos"]
    payload = b"x" * options.get("payload", 110)
    for index in range(options["count"]):
        sock = connect(options["port"], f"{options['role']}{os.getpid()}-{index}", version)
        topic = options["topic"].format(index + options.get("first", 0))
        if options["role"] == "publish":
            member = Publisher(
                sock, topic.encode(), qos=qos, window=options["window"], payload=payload, version=version
            )
        else:
            length = 2 + options["topic_bytes"] + (2 if qos else 0) + (version == 5) + len(payload)
            member = Subscriber(sock, topic, qos=qos, size=len(frame(0x30, b"\0" * length)), version=version)
        members[sock.fileno()] = member
        sock.setblocking(options["role"] != "publish" or qos == 2)
        poll.register(sock.fileno(), select.EPOLLIN)
    print("ready", flush=True)
    poll.register(0, select.EPOLLIN)
    _serve(poll, members)


def _serve(poll: select.epoll, members: dict) -> None:
    publishing = False
    while True:
        for descriptor, events in poll.poll():
            if descriptor == 0:
                command = sys.stdin.readline().strip()
                if command == "go":
                    publishing = True
                    for number in members:
                        poll.modify(number, select.EPOLLIN | select.EPOLLOUT)
                elif command == "mark":
                    print(json.dumps(_marks(members)), flush=True)
                else:
                    return
                continue
            member = members[descriptor]
            if events & select.EPOLLIN:
                member.receive()
                if publishing and member.qos:
                    poll.modify(descriptor, select.EPOLLIN | select.EPOLLOUT)
            if publishing and events & select.EPOLLOUT and not member.send() and member.qos:
                poll.modify(descriptor, select.EPOLLIN)


def _marks(members: dict) -> dict:
    received = sum(getattr(each, "count", 0) for each in members.values())
    sent = sum(each.sent // each.size for each in members.values() if isinstance(each, Publisher))
    return {"time": time.monotonic(), "received": received, "sent": sent, "cpu": time.process_time()}


if __name__ == "__main__":
    main()
