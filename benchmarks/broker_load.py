"""A load process: many connections, so that the generator is not the limit.

Run by the broker benchmark: ``python broker_load.py '{"port": ..., "publish": {...}, "subscribe": {...}}'``, with
either or both. It says ``ready`` once connected, then obeys lines on standard input: ``go`` starts publishing, ``stop``
ends it, ``mark`` prints a JSON line with the counts so far, ``end`` ends the process.

With ``credit``, both kinds live in one process and so many messages at most are between them. With ``rate``, the
publishers together send so many messages a second in small writes, whatever the broker does (an open loop).
"""

from __future__ import annotations

import itertools
import json
import os
import select
import sys
import time
from collections.abc import Iterator
from typing import Any

from broker_clients import Credit, Publisher, Subscriber, connect, publish_bytes

SHORTEST_SLEEP_S = 0.0002


def make_subscribers(port: int, *, count: int, topic_filter: str, topic: str, qos: int, payload: int) -> Iterator[Any]:
    """Connected and subscribed; ``{n:04d}`` in the filter is the subscriber's number."""
    size = publish_bytes(topic, qos, b"x" * payload)
    for number in range(count):
        sock = connect(port, f"subscribe{os.getpid()}-{number}")
        yield Subscriber(sock, topic_filter.format(n=number), qos=qos, size=size)


def make_publishers(
    port: int, *, count: int, topics: list[str], qos: int, window: int, block: int, payload: int
) -> Iterator[Publisher]:
    """Connected; ``{n:04d}`` in a topic is the publisher's number."""
    for number in range(count):
        sock = connect(port, f"publish{os.getpid()}-{number}")
        own = [topic.format(n=number) for topic in topics]
        publisher = Publisher(sock, own, qos=qos, window=window, block=block, payload=b"x" * payload)
        # At QoS 1 and 2 the window is less than the socket takes; at QoS 0 a full socket must not block the others.
        sock.setblocking(bool(qos))
        yield publisher


class LoadProcess:
    """The connections, the poll over them and over standard input."""

    def __init__(self, options: dict[str, Any]) -> None:
        port = options["port"]
        self.subscribers = list(make_subscribers(port, **options["subscribe"])) if "subscribe" in options else []
        self.publishers = list(make_publishers(port, **options["publish"])) if "publish" in options else []
        self.rate: float | None = options.get("rate")
        self.credit = Credit(options["credit"]) if "credit" in options else None
        for publisher in self.publishers:
            publisher.credit = self.credit
        self.turns = itertools.cycle(self.publishers)
        self.writes = 0
        self.publishing = self.ended = False
        self.receivers: dict[int, Publisher | Subscriber] = {
            each.sock.fileno(): each for each in [*self.publishers, *self.subscribers]
        }
        self.poll = select.epoll()
        for descriptor in [0, *self.receivers]:
            self.poll.register(descriptor, select.EPOLLIN)

    @property
    def writes_when_writable(self) -> bool:
        """QoS 0 has nothing else to wait for."""
        return self.rate is None and self.credit is None and not any(each.qos for each in self.publishers)

    def serve(self) -> None:
        """Until told to end."""
        print("ready", flush=True)
        started = 0.0
        while not self.ended:
            paced = self.publishing and self.rate is not None
            started = started or (time.monotonic() if paced else 0.0)
            for descriptor, events in self.poll.poll(0 if paced else None):
                self._handle(descriptor, events)
            if paced:
                time.sleep(max(SHORTEST_SLEEP_S, self._send_due(time.monotonic() - started)))

    def _handle(self, descriptor: int, events: int) -> None:
        if descriptor == 0:
            # Not through sys.stdin: what its buffer holds, the poll doesn't see.
            for command in os.read(0, 4096).decode().split() or ["end"]:
                self._obey(command)
            return
        member = self.receivers[descriptor]
        if events & select.EPOLLIN:
            self._receive(member)
        if events & select.EPOLLOUT and isinstance(member, Publisher):
            member.send()

    def _receive(self, member: Publisher | Subscriber) -> None:
        if isinstance(member, Subscriber):
            before = member.count
            member.receive()
            if self.credit is not None:
                self.credit.left += member.count - before
                self._spend_credit()
            return
        member.receive()
        if self.publishing and self.rate is None:
            while member.send():
                pass

    def _spend_credit(self) -> None:
        """Each publisher in turn, until nothing is left or each one's window is full."""
        for publisher in itertools.islice(self.turns, len(self.publishers)):
            while self.publishing and publisher.send():
                pass
            if self.credit is not None and not self.credit.left:
                return

    def _send_due(self, elapsed_s: float) -> float:
        """Sends the writes that are due, not those that a full socket or window refuses; seconds until the next."""
        assert self.rate is not None
        block = self.publishers[0].block_bytes // self.publishers[0].size
        due = int(elapsed_s * self.rate / block) + 1
        for publisher in itertools.islice(self.turns, max(due - self.writes, 0)):
            publisher.send()
        self.writes = max(due, self.writes)
        return due * block / self.rate - elapsed_s

    def _obey(self, command: str) -> None:
        if command in ("go", "stop"):
            self.publishing = command == "go"
            events = select.EPOLLIN | (select.EPOLLOUT if self.publishing and self.writes_when_writable else 0)
            for publisher in self.publishers:
                self.poll.modify(publisher.sock.fileno(), events)
            if self.publishing and self.rate is None and not self.writes_when_writable:
                self._spend_credit()
        elif command == "mark":
            print(json.dumps(self._marks()), flush=True)
        else:
            self.ended = True

    def _marks(self) -> dict[str, float]:
        counts = [each.count for each in self.subscribers] or [0]
        return {
            "time_s": time.monotonic(),
            "cpu_s": time.process_time(),
            "sent": sum(each.sent for each in self.publishers),
            "received": sum(counts),
            "least": min(counts),
            "most": max(counts),
        }


if __name__ == "__main__":
    LoadProcess(json.loads(sys.argv[1])).serve()
