"""Load: QoS 1 publishes of 10-point JSON from many connections, precoded, so that the generator is not the limit.

Run as ``python benchmarks/publishers.py '<JSON of Load>'``; prints one JSON line ``{"messages", "seconds", "cpu_s"}``.
Each connection keeps ``window`` publishes unacknowledged and sends the next block when a block's PUBACKs are in.
"""

from __future__ import annotations

import json
import random
import selectors
import socket
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from mqtt_bytes import login, publish

BLOCK = 25  # publishes written at once as a rule


@dataclass(frozen=True)
class Load:
    """What to publish, to whom. ``uids``: one connection each; user name and password are derived from them."""

    host: str
    port: int
    uids: list[str]
    messages: int  # a connection
    window: int = 200
    seed: int = 1
    rate: float = 0.0  # messages a second of all connections together; 0: as fast as they are acknowledged
    first: int = 0  # the number of each connection's first message, where messages have numbers
    at_once: int = BLOCK  # publishes written at once, where the window allows so many

    @property
    def block(self) -> int:
        """How many publishes are written at once."""
        return min(self.at_once, self.window)

    def to_json(self) -> str:
        return json.dumps(asdict(self))


def credentials(uid: str) -> tuple[str, str]:
    """User name and password (pin) of a load terminal."""
    return f"u-{uid}", f"pin-{uid}"


def payload(rng: random.Random) -> bytes:
    """A 10-point JSON object of about 118 bytes."""
    points = {f"P{n}": round(rng.uniform(10, 99), 2) for n in range(9)}
    return json.dumps({**points, "State": rng.choice(["run", "stop"])}, separators=(",", ":")).encode()


class Connection:
    """One publishing connection; ``pump`` is called whenever its socket is ready."""

    def __init__(self, load: Load, uid: str) -> None:
        self.left = load.messages
        self.allowed = 0 if load.rate else load.messages  # of those left, that may go out by now
        self.unacknowledged = 0
        self.window = load.window
        self.block = load.block
        self.surplus = 0  # bytes of a PUBACK that is not complete yet
        self.out = b""
        self.blocks = self.precode(load, uid)
        self.socket = socket.create_connection((load.host, load.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.sendall(login(uid, *credentials(uid)))
        answer = self.socket.recv(4)
        if answer[:1] != b"\x20" or answer[3] != 0:
            raise SystemExit(f"{uid}: CONNACK {answer.hex()}")
        self.socket.setblocking(False)

    @staticmethod
    def precode(load: Load, uid: str) -> Iterator[bytes]:
        """The packets of a block, and of the next one, without end."""
        rng, size = random.Random(f"{load.seed}{uid}"), load.block
        ids = range(1, load.window * 2 + 1)
        packets = [publish(f"g/{uid}/r", payload(rng), packet_id=packet_id) for packet_id in ids]
        blocks = [b"".join(packets[start : start + size]) for start in range(0, len(packets), size)]
        while True:
            yield from blocks

    @property
    def done(self) -> bool:
        return not self.left and not self.unacknowledged and not self.out

    def give(self, count: int, due_s: float) -> None:
        """Lets it send so many more, which are due since ``due_s`` of ``time.perf_counter``."""
        self.allowed += count
        self.send()

    def receive(self) -> None:
        data = self.socket.recv(65536)
        if not data:
            raise SystemExit("the server closed a connection")
        acknowledged, self.surplus = divmod(len(data) + self.surplus, 4)  # a PUBACK has four bytes
        self.unacknowledged -= acknowledged

    def send(self) -> None:
        while not self.out and self.left and self.allowed and self.unacknowledged + self.block <= self.window:
            self.out = next(self.blocks)
            self.left -= self.block
            self.allowed -= self.block
            self.unacknowledged += self.block
            self.on_block()
            self._flush()
        if self.out:
            self._flush()

    def on_block(self) -> None:
        """Is called when a block goes out."""

    def _flush(self) -> None:
        try:
            self.out = self.out[self.socket.send(self.out) :]
        except BlockingIOError:
            return


class Pace:
    """Lets the connections send block by block, in turn, at the rate of the load, where it has one."""

    def __init__(self, load: Load, connections: list[Connection]) -> None:
        self._blocks_per_s = load.rate / load.block
        self._connections = connections
        self._blocks = load.messages // load.block * len(connections) if load.rate else 0
        self._given = 0
        self.poll_s = 0.002 if load.rate else None

    def give(self, started_s: float) -> None:
        """What is due by now, of a load that began then."""
        while self._given < min(self._blocks, (time.perf_counter() - started_s) * self._blocks_per_s):
            connection = self._connections[self._given % len(self._connections)]
            due_s = started_s + self._given / self._blocks_per_s
            self._given += 1
            connection.give(connection.block, due_s)


def run(load: Load, connect: Callable[[Load, str], Connection] = Connection) -> dict[str, float]:
    """Publishes everything and waits for every acknowledgement; messages, the seconds it took, and CPU seconds."""
    if load.messages % load.block or load.window % load.block:
        raise SystemExit(f"messages and window must be multiples of {load.block}")
    selector = selectors.DefaultSelector()
    connections = [connect(load, uid) for uid in load.uids]
    print("connected", flush=True)
    sys.stdin.readline()  # the benchmark starts all its publishers together
    started, used_s = time.perf_counter(), time.process_time()
    for connection in connections:
        connection.send()
        wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.out else 0)
        selector.register(connection.socket, wanted, connection)
    open_connections, pace = len(connections), Pace(load, connections)
    while open_connections:
        pace.give(started)
        for key, ready in selector.select(pace.poll_s):
            connection = key.data
            if ready & selectors.EVENT_READ:
                connection.receive()
            connection.send()
            wanted = selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.out else 0)
            if wanted != key.events:
                selector.modify(connection.socket, wanted, connection)
            if connection.done:
                selector.unregister(connection.socket)
                open_connections -= 1
    seconds, cpu_s = time.perf_counter() - started, time.process_time() - used_s
    for connection in connections:
        connection.socket.close()
    return {"messages": load.messages * len(load.uids), "seconds": seconds, "cpu_s": cpu_s}


if __name__ == "__main__":
    print(json.dumps(run(Load(**json.loads(sys.argv[1])))))
