"""Publishers and one subscriber at QoS 1 in one process: so many messages at most are on their way, none is lost.

Run as ``python -m terrazzo_bench.loads.fan_in PORT``: says ``ready``; a line ``SECONDS`` of standard input publishes
for so long, after a warm-up, and prints ``{"received", "seconds"}``.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time

from terrazzo_bench.packets import connect, publish, subscribe

PUBLISHERS = 50
WINDOW = 50  # of a publisher
ON_THE_WAY = 900  # of all together: fewer than the brokers' queues hold
PAYLOAD = b"x" * 110
READ_BYTES = 1 << 18
WARM_UP_S = 0.3


class Publisher:
    """A cycle of precoded packets, as long as the window, so that no identifier is used twice at a time."""

    def __init__(self, port: int, number: int) -> None:
        self.socket: socket.socket = connect(port, f"publisher-{number}")
        packets = [publish(f"f/{number:04}", PAYLOAD, packet_id=n + 1) for n in range(WINDOW)]
        self.size = len(packets[0])
        self._cycle = memoryview(b"".join(packets))
        self._at = 0  # packets
        self._surplus = 0
        self.free = WINDOW

    def send(self, most: int) -> int:
        """One write of at most so many packets; how many it was."""
        count = min(most, self.free, WINDOW - self._at)
        if count:
            self.socket.sendall(self._cycle[self._at * self.size : (self._at + count) * self.size])
            self._at = (self._at + count) % WINDOW
            self.free -= count
        return count

    def receive(self) -> None:
        """Counts acknowledgements."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the broker closed a publisher")
        acknowledged, self._surplus = divmod(len(data) + self._surplus, 4)
        self.free += acknowledged


class Subscriber:
    """Counts whole messages of one size and acknowledges them."""

    def __init__(self, port: int, size: int) -> None:
        self.socket: socket.socket = connect(port, "subscriber")
        subscribe(self.socket, "f/+")
        self._size = size
        self._partial = b""
        self.received = 0

    def receive(self) -> int:
        """How many messages came."""
        data = self.socket.recv(READ_BYTES)
        if not data:
            raise ConnectionError("the broker closed the subscriber")
        data = self._partial + data
        number, rest = divmod(len(data), self._size)
        if number and (data[0] | 8, data[1]) != (0x3A, self._size - 2):
            raise ConnectionError(f"not the expected PUBLISH: {data[:20]!r}")
        self._partial = data[-rest:] if rest else b""
        if number:
            at = 4 + data[3]
            answers = bytearray(b"\x40\x02\0\0" * number)
            answers[2::4] = data[at : number * self._size : self._size]
            answers[3::4] = data[at + 1 : number * self._size : self._size]
            self.socket.sendall(answers)
        self.received += number
        return number


class FanIn:
    """All connections, and how much may be sent."""

    def __init__(self, port: int) -> None:
        self._publishers = [Publisher(port, number) for number in range(PUBLISHERS)]
        self._subscriber = Subscriber(port, self._publishers[0].size)
        self._by_socket = {each.socket.fileno(): each for each in self._publishers}
        self._credit = ON_THE_WAY
        self._turn = 0
        self._poll = select.epoll()
        for descriptor in (*self._by_socket, self._subscriber.socket.fileno()):
            self._poll.register(descriptor, select.EPOLLIN)

    def run(self, seconds: float) -> dict[str, float]:
        """Publishes for ``WARM_UP_S`` and then so long; the messages that came meanwhile, and the seconds."""
        self._until(time.monotonic() + WARM_UP_S)
        before, began = self._subscriber.received, time.monotonic()
        self._until(began + seconds)
        return {"received": self._subscriber.received - before, "seconds": time.monotonic() - began}

    def _until(self, end_s: float) -> None:
        while time.monotonic() < end_s:
            self._spend()
            self._take()

    def _spend(self) -> None:
        """Each publisher in turn, until nothing may be sent or each one's window is full."""
        for _ in range(PUBLISHERS):
            if not self._credit:
                return
            self._credit -= self._publishers[self._turn].send(self._credit)
            self._turn = (self._turn + 1) % PUBLISHERS

    def _take(self) -> None:
        for descriptor, _ in self._poll.poll(1.0):
            publisher = self._by_socket.get(descriptor)
            if publisher is not None:
                publisher.receive()
            else:
                self._credit += self._subscriber.receive()


def main(port: int) -> None:
    """Obeys lines until the last."""
    fan_in = FanIn(port)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(fan_in.run(float(line))), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]))
