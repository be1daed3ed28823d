"""An MQTT 3.1.1 client that keeps its own side of a session over broken connections, as a real device would.

On threads, and sharing no code with the broker.
"""

from __future__ import annotations

import contextlib
import itertools
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator

from mqtt_bytes import field, frame

TIMEOUT_S = 10.0
IDENTIFIERS = 64  # few, so that one left over from before is met again soon


def split(buffer: bytearray) -> Iterator[tuple[int, bytes]]:
    """Takes whole packets off the front."""
    while len(buffer) > 1:
        length, shift, position = 0, 0, 1
        while position < len(buffer):
            length |= (buffer[position] & 127) << shift
            shift += 7
            position += 1
            if buffer[position - 1] < 128:
                break
        else:
            return
        if len(buffer) < position + length or buffer[position - 1] > 127:
            return
        first, body = buffer[0], bytes(buffer[position : position + length])
        del buffer[: position + length]
        yield first, body


class Peer:
    """One client id. ``received`` counts payloads as delivered to the application; ``acknowledged`` has what the
    broker has promised to deliver."""

    def __init__(self, client_id: str, *, will: tuple[str, bytes] | None = None) -> None:
        self.client_id = client_id
        self.received: Counter[bytes] = Counter()
        self.acknowledged: set[bytes] = set()
        self.session_present = False
        self.subscribed = 0
        self.retained: dict[str, bytes] = {}
        self._will = will
        self._open_qos2: set[int] = set()  # received, PUBREL hasn't come
        self._unfinished: dict[int, tuple[int, bytes, bytes] | None] = {}  # sent; None: only PUBREL is left
        self._next_id = 0
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._thread: threading.Thread | None = None
        self._ponged = threading.Event()

    # Connections

    def connect(self, port: int, *, clean: bool = False) -> Peer:
        """Connects, then sends again what the broker hasn't finished, in order. [MQTT-4.4.0-1]"""
        self._socket = socket.create_connection(("127.0.0.1", port), TIMEOUT_S)
        flags, tail = 2 * clean, b""
        if self._will is not None:
            flags |= 4 | 1 << 3
            tail = field(self._will[0]) + field(self._will[1])
        self._socket.sendall(frame(0x10, field("MQTT") + bytes((4, flags, 0, 0)) + field(self.client_id) + tail))
        connack = self._socket.recv(4)
        assert connack[:2] == b"\x20\x02", connack
        assert connack[3] == 0, connack
        self.session_present = bool(connack[2])
        self._socket.settimeout(None)
        for identifier, unfinished in list(self._unfinished.items()):
            if unfinished is None:
                self._send(0x62, struct.pack(">H", identifier))
            else:
                qos, topic, payload = unfinished
                self._send(0x38 | qos << 1, topic + struct.pack(">H", identifier) + payload)
        self._thread = threading.Thread(target=self._read, args=(self._socket,), name=self.client_id)
        self._thread.start()
        return self

    def leave(self, *, goodbye: bool = True) -> None:
        """Ends the connection, with DISCONNECT or without."""
        if self._socket is None or self._thread is None:
            return
        if goodbye:
            self._send(0xE0, b"")
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join(TIMEOUT_S)
        assert not self._thread.is_alive()
        self._socket.close()

    # Out

    def subscribe(self, topic_filter: str, qos: int) -> None:
        """Sends SUBSCRIBE; ``subscribed`` rises when it is granted."""
        self._send(0x82, struct.pack(">H", 1) + field(topic_filter) + bytes((qos,)))

    def publish(self, topic: str, payload: bytes, qos: int, *, retain: bool = False) -> None:
        """Sends PUBLISH at QoS 1 or 2."""
        with self._lock:
            while (identifier := self._next_id % IDENTIFIERS + 1) in self._unfinished:
                self._next_id += 1
            self._next_id = identifier
            self._unfinished[identifier] = qos, field(topic), payload
        self._send(0x30 | qos << 1 | retain, field(topic) + struct.pack(">H", identifier) + payload)

    @property
    def is_cut_off(self) -> bool:
        """Whether the broker has ended the connection."""
        return self._thread is not None and not self._thread.is_alive()

    @property
    def unfinished(self) -> int:
        """How many publishes the broker hasn't finished."""
        return len(self._unfinished)

    def ping(self) -> None:
        """Returns when the broker has handled all that was sent before."""
        self._ponged.clear()
        self._send(0xC0, b"")
        assert self._ponged.wait(TIMEOUT_S)

    def _send(self, first: int, body: bytes) -> None:
        assert self._socket is not None
        with contextlib.suppress(OSError):  # the broker was killed: what isn't finished is sent again
            self._socket.sendall(frame(first, body))

    # In

    def _read(self, sock: socket.socket) -> None:
        buffer = bytearray()
        with contextlib.suppress(ConnectionError):
            while data := sock.recv(65_536):
                buffer += data
                for first, body in split(buffer):
                    self._handle(first, body)

    def _handle(self, first: int, body: bytes) -> None:
        if first >> 4 == 3:
            self._on_publish(first, body)
        elif first == 0x62:
            self._open_qos2.discard(struct.unpack(">H", body)[0])
            self._send(0x70, body)
        elif first == 0x90:
            assert body[2] < 0x80
            self.subscribed += 1
        elif first == 0xD0:
            self._ponged.set()
        else:
            self._on_acknowledgement(first, struct.unpack(">H", body)[0])

    def _on_publish(self, first: int, body: bytes) -> None:
        topic_end = 2 + struct.unpack_from(">H", body)[0]
        qos = first >> 1 & 3
        payload = body[topic_end + 2 :] if qos else body[topic_end:]
        if first & 1:
            self.retained[body[2:topic_end].decode()] = payload
        if not qos:
            return
        identifier = struct.unpack_from(">H", body, topic_end)[0]
        if qos == 1:
            self.received[payload] += 1
            self._send(0x40, struct.pack(">H", identifier))
            return
        if identifier not in self._open_qos2:
            self._open_qos2.add(identifier)
            self.received[payload] += 1
        self._send(0x50, struct.pack(">H", identifier))

    def _on_acknowledgement(self, first: int, identifier: int) -> None:
        with self._lock:
            if first == 0x70:
                self._unfinished.pop(identifier, None)
                return
            unfinished = self._unfinished.get(identifier)
            if unfinished is not None:
                self.acknowledged.add(unfinished[2])
            if first == 0x40:
                self._unfinished.pop(identifier, None)
                return
            assert first == 0x50, first
            self._unfinished[identifier] = None
        self._send(0x62, struct.pack(">H", identifier))


class Publisher(Peer):
    """Publishes numbered messages on a thread, in turn on each topic, ``window`` at a time, until told to stop."""

    def __init__(self, client_id: str, *, qos: int, topics: list[str], window: int = 20) -> None:
        super().__init__(client_id)
        self.qos = qos
        self._topics = itertools.cycle(topics)
        self._window = window
        self._numbers = itertools.count()
        self._stop = threading.Event()
        self._worker: threading.Thread | None = None
        self.by_topic: dict[str, set[bytes]] = {topic: set() for topic in topics}

    def go(self, port: int) -> None:
        """Connects and starts publishing."""
        self.connect(port)
        self._stop.clear()
        self._worker = threading.Thread(target=self._run, name=f"{self.client_id} publishes")
        self._worker.start()

    def _run(self) -> None:
        while not self._stop.is_set():
            if self.unfinished >= self._window:
                self._stop.wait(0.0005)
                continue
            topic = next(self._topics)
            number = next(self._numbers)
            payload = f"{self.client_id} {number} ".encode().ljust(110 if number % 5 else 3_000, b".")
            self.by_topic[topic].add(payload)
            self.publish(topic, payload, self.qos)

    def stop(self) -> None:
        """Publishes nothing new."""
        self._stop.set()
        if self._worker is not None:
            self._worker.join(TIMEOUT_S)
