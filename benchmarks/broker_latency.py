"""How long a message takes from one connection to another: alone, and beside a steady load."""

from __future__ import annotations

import select
import socket
import statistics
import time
from dataclasses import dataclass

from broker_clients import connect, subscribe
from broker_peers import Peer
from broker_scenarios import PAYLOAD_BYTES, WARM_UP_S, Scenario, Window, loads

from mqtt_bytes import field as encode
from mqtt_bytes import frame

PROBES_PER_SECOND = 200
PROBE_TOPIC = "probe/t"
STAMP_BYTES = 8
LATE_S = 2.0
# Small writes on many connections: 200 to 200 as in the saturating scenario, at most 10 packets back to back.
LOAD_BLOCK = 10
LOAD_CYCLE = 1000


@dataclass(frozen=True)
class Latency:
    """Of one probe; microseconds."""

    p50_us: float
    p99_us: float
    probes: int
    lost: int


@dataclass(frozen=True)
class Loaded:
    """Latency beside a load; rates in messages a second, CPU as shares of one core."""

    latency: Latency
    wanted: float
    achieved: float  # received by the load's subscribers
    broker_cpu: float
    others_cpu: float


class Probe:
    """One publisher and one subscriber, each on a connection of its own; messages carry the time they were sent at."""

    def __init__(self, port: int, qos: int) -> None:
        self.qos = qos
        self.publisher, self.receiver = connect(port, "probe-out"), connect(port, "probe-in")
        subscribe(self.receiver, PROBE_TOPIC, qos)
        self.size = len(self._packet(0))
        self.partial = b""
        self.sent = 0
        self.samples_us: list[float] = []

    def _packet(self, number: int) -> bytes:
        stamp = time.perf_counter_ns().to_bytes(STAMP_BYTES, "big")
        identifier = (number % 60_000 + 1).to_bytes(2, "big") if self.qos else b""
        # The stamp comes last: behind whatever the broker writes in front of the payload.
        return frame(0x30 | self.qos << 1, encode(PROBE_TOPIC), identifier, b"x" * (PAYLOAD_BYTES - 8), stamp)

    def send(self) -> None:
        """Sends one message, whether or not earlier ones have arrived."""
        self.publisher.sendall(self._packet(self.sent))
        self.sent += 1

    def receive_until(self, deadline_s: float) -> None:
        """Takes messages and acknowledgements until the deadline (``time.perf_counter``)."""
        while (left_s := deadline_s - time.perf_counter()) > 0:
            for sock in select.select([self.receiver, self.publisher], [], [], left_s)[0]:
                if sock is self.receiver:
                    self._take()
                elif not self.publisher.recv(4096):
                    raise SystemExit("the broker closed the probe")

    def _take(self) -> None:
        data = self.receiver.recv(1 << 16)
        now_ns = time.perf_counter_ns()
        if not data:
            raise SystemExit("the broker closed the probe")
        data = self.partial + data
        while len(data) >= self.size:
            packet, data = data[: self.size], data[self.size :]
            self.samples_us.append((now_ns - int.from_bytes(packet[-STAMP_BYTES:], "big")) / 1e3)
            if self.qos:
                at = 4 + len(PROBE_TOPIC)
                self.receiver.sendall(b"\x40\x02" + packet[at : at + 2])
        self.partial = data

    def run(self, seconds: float) -> Latency:
        """Probes at a steady rate, then waits for those on their way."""
        started = time.perf_counter()
        for number in range(int(seconds * PROBES_PER_SECOND)):
            self.send()
            self.receive_until(started + (number + 1) / PROBES_PER_SECOND)
        deadline = time.perf_counter() + LATE_S
        while len(self.samples_us) < self.sent and time.perf_counter() < deadline:
            self.receive_until(min(deadline, time.perf_counter() + 0.05))
        if not self.samples_us:
            raise SystemExit("no probe arrived")
        return Latency(
            p50_us=statistics.median(self.samples_us),
            p99_us=sorted(self.samples_us)[int(len(self.samples_us) * 0.99)],
            probes=self.sent,
            lost=self.sent - len(self.samples_us),
        )

    def close(self) -> None:
        """Closes both connections."""
        self.publisher.close()
        self.receiver.close()


def alone(peer: Peer, count: int = 2000) -> Latency:
    """Messages at QoS 0 one at a time: the next one leaves when the last one has arrived."""
    publisher, receiver = connect(peer.port, "alone-out"), connect(peer.port, "alone-in")
    subscribe(receiver, PROBE_TOPIC, 0)
    packet = frame(0x30, encode(PROBE_TOPIC), b"x" * PAYLOAD_BYTES)
    samples = [_round(publisher, receiver, packet) for _ in range(count)]
    publisher.close()
    receiver.close()
    return Latency(statistics.median(samples), sorted(samples)[int(count * 0.99)], count, 0)


def _round(publisher: socket.socket, receiver: socket.socket, packet: bytes) -> float:
    started = time.perf_counter()
    publisher.sendall(packet)
    got = 0
    while got < len(packet):
        got += len(receiver.recv(4096))
    return (time.perf_counter() - started) * 1e6


def beside_load(peer: Peer, *, qos: int, rate: float, seconds: float) -> Loaded:
    """Probes while 200 publishers send to 200 subscribers ``rate`` messages a second altogether."""
    load = Scenario("load", qos, 200, 200, "f/{n:04d}", window=LOAD_CYCLE, block=LOAD_BLOCK)
    processes = (
        {"port": peer.port, "subscribe": load.subscribe()},
        {"port": peer.port, "publish": load.publish(), "rate": rate},
    )
    probe = Probe(peer.port, qos)
    with loads(*processes) as (subscriber, publisher):
        publisher.tell("go")
        time.sleep(WARM_UP_S)
        window, first = Window(peer, [subscriber, publisher]), subscriber.mark()
        latency = probe.run(seconds)
        last = subscriber.mark()
        broker_cpu, _load_cpu, others_cpu = window.shares()
    probe.close()
    achieved = (last["received"] - first["received"]) / (last["time_s"] - first["time_s"])
    return Loaded(latency, rate, achieved, broker_cpu, others_cpu)
