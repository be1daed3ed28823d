"""Load as of ``publishers.py`` in which each message has a number, and of which is told how long each block waited.

Run as ``python benchmarks/numbered_publishers.py '<JSON of Load>'``; prints one JSON line, that of ``publishers.py``
with ``waited_ms``: of each block the milliseconds from when it was due (of a load without a rate: when the window let
it go) to its last PUBACK. The tenth point of a message is its connection's number of it, eight digits, from
``Load.first`` on.
"""

from __future__ import annotations

import json
import random
import re
import sys
import time
from collections import deque
from collections.abc import Iterator

from publishers import Connection, Load, payload, publish, run

DIGITS = 8
_POINT = re.compile(rb'"State":"(\d{8})"')

waited_ms: list[float] = []


def number_of(body: bytes) -> int:
    """The number of a message, of its payload or of the record that became of it."""
    found = _POINT.search(body)
    if found is None:
        raise ValueError(f"a message without a number: {body[:200]!r}")
    return int(found[1])


class NumberedConnection(Connection):
    """A connection whose messages have numbers."""

    def __init__(self, load: Load, uid: str) -> None:
        super().__init__(load, uid)
        self._due: deque[float] = deque()  # of blocks that may go out
        self._sent: deque[tuple[int, float]] = deque()  # of blocks: messages up to their end, when they were due
        self._is_paced = load.rate > 0
        self._out_so_far = 0

    @staticmethod
    def precode(load: Load, uid: str) -> Iterator[bytes]:
        """The packets of a block, and of the next one, without end."""
        rng, ids = random.Random(f"{load.seed}{uid}"), load.window * 2
        heads = [_head(uid, rng, packet_id) for packet_id in range(1, ids + 1)]
        number = load.first
        while True:
            yield b"".join(b'%b%08d"}' % (heads[n % ids], n) for n in range(number, number + load.block))
            number += load.block

    def give(self, count: int, due_s: float) -> None:
        self._due.append(due_s)
        super().give(count, due_s)

    def on_block(self) -> None:
        self._out_so_far += self.block
        due_s = self._due.popleft() if self._is_paced else time.perf_counter()
        self._sent.append((self._out_so_far, due_s))

    def receive(self) -> None:
        super().receive()
        acknowledged, now_s = self._out_so_far - self.unacknowledged, time.perf_counter()
        while self._sent and self._sent[0][0] <= acknowledged:
            waited_ms.append(1_000 * (now_s - self._sent.popleft()[1]))


def _head(uid: str, rng: random.Random, packet_id: int) -> bytes:
    """A packet up to the number."""
    points = json.loads(payload(rng)) | {"State": "0" * DIGITS}
    packet = publish(f"g/{uid}/r", json.dumps(points, separators=(",", ":")).encode(), packet_id=packet_id)
    return packet[: -DIGITS - len(b'"}')]


if __name__ == "__main__":
    told = run(Load(**json.loads(sys.argv[1])), NumberedConnection)
    print(json.dumps({**told, "waited_ms": [round(each, 2) for each in waited_ms]}))
