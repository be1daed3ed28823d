"""QoS 1 publishes of 10-point JSON from many connections, each with a window of unacknowledged ones.

Run as ``python -m terrazzo_bench.loads.publishers '<JSON of Load>'``: says ``ready`` when connected; each line ``go``
publishes everything and prints ``done`` with the last acknowledgement; ``end`` ends it.
"""

from __future__ import annotations

import json
import random
import selectors
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass

from terrazzo_bench.packets import connect, publish
from terrazzo_bench.servers import credentials

BLOCK = 25  # publishes written at once


@dataclass(frozen=True)
class Load:
    """Who publishes how many messages each; messages and window are multiples of ``BLOCK``."""

    port: int
    uids: list[str]
    messages: int
    window: int = 200
    seed: int = 1

    def to_json(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))


def payload(rng: random.Random) -> bytes:
    """A 10-point JSON object of about 118 bytes."""
    points = {f"P{n}": round(rng.uniform(10, 99), 2) for n in range(9)}
    return json.dumps({**points, "State": rng.choice(["run", "stop"])}, separators=(",", ":")).encode()


class Connection:
    """One publishing connection."""

    def __init__(self, load: Load, uid: str) -> None:
        username, pin = credentials(uid)
        self.socket: socket.socket = connect(load.port, uid, username=username, password=pin)
        self.socket.setblocking(False)
        self._window = load.window
        self._blocks = self._precode(load, uid)
        self._left = self._unacknowledged = 0
        self._surplus = 0  # bytes of a PUBACK that is not complete yet
        self.out = b""

    @staticmethod
    def _precode(load: Load, uid: str) -> Iterator[bytes]:
        """The packets of a block, and of the next one, without end."""
        rng = random.Random(f"{load.seed}{uid}")
        numbers = range(1, load.window * 2 + 1)
        packets = [publish(f"g/{uid}/r", payload(rng), packet_id=number) for number in numbers]
        blocks = [b"".join(packets[start : start + BLOCK]) for start in range(0, len(packets), BLOCK)]
        while True:
            yield from blocks

    def begin(self, messages: int) -> None:
        """So many are to be sent."""
        self._left = messages
        self.send()

    @property
    def is_done(self) -> bool:
        """Whether everything is acknowledged."""
        return not self._left and not self._unacknowledged and not self.out

    def receive(self) -> None:
        """Counts acknowledgements."""
        data = self.socket.recv(65536)
        if not data:
            raise ConnectionError("the server closed a connection")
        acknowledged, self._surplus = divmod(len(data) + self._surplus, 4)
        self._unacknowledged -= acknowledged

    def send(self) -> None:
        """What the window and the socket allow."""
        while not self.out and self._left and self._unacknowledged + BLOCK <= self._window:
            self.out = next(self._blocks)
            self._left -= BLOCK
            self._unacknowledged += BLOCK
            self._flush()
        if self.out:
            self._flush()

    def _flush(self) -> None:
        try:
            self.out = self.out[self.socket.send(self.out) :]
        except BlockingIOError:
            return


def run(connections: list[Connection], messages: int) -> None:
    """Publishes everything and waits for every acknowledgement."""
    selector = selectors.DefaultSelector()
    for connection in connections:
        connection.begin(messages)
        selector.register(connection.socket, _wanted(connection), connection)
    still = len(connections)
    while still:
        for key, ready in selector.select():
            connection = key.data
            if ready & selectors.EVENT_READ:
                connection.receive()
            connection.send()
            if _wanted(connection) != key.events:
                selector.modify(connection.socket, _wanted(connection), connection)
            if connection.is_done:
                selector.unregister(connection.socket)
                still -= 1
    selector.close()


def _wanted(connection: Connection) -> int:
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if connection.out else 0)


def main(load: Load) -> None:
    """Obeys lines until the last."""
    connections = [Connection(load, uid) for uid in load.uids]
    print("ready", flush=True)
    for word in sys.stdin:
        if word.strip() != "go":
            return
        run(connections, load.messages)
        print("done", flush=True)


if __name__ == "__main__":
    main(Load(**json.loads(sys.argv[1])))
