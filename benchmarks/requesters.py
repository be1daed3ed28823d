"""Load: one HTTP request again and again on each of some connections, precoded.

Run as ``python benchmarks/requesters.py '<JSON of Requests>'``; prints how many were answered.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import cast

from terrazzo.runtime.process import new_event_loop

_LENGTH = b"content-length:"


@dataclass(frozen=True)
class Requests:
    """What to ask on loopback. ``is_new``: each request has another head than those before it."""

    port: int
    connections: int
    seconds: float
    token: str
    body: str
    is_new: bool

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    def encode(self, number: int) -> bytes:
        lines = [
            "POST /apiproxy/api HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {self.token}",
            "Content-Type: application/json",
            f"Content-Length: {len(self.body)}",
            *([f"X-Request-Id: {number:012}"] if self.is_new else []),
        ]
        return "\r\n".join([*lines, "", self.body]).encode()


class Requester(asyncio.Protocol):
    """One connection: asks, and asks again when it is answered."""

    def __init__(self, requests: Requests, stop_s: float, first: int) -> None:
        self.answered = 0
        self.done = asyncio.get_running_loop().create_future()
        self._requests = requests
        self._stop_s = stop_s
        self._number = first
        self._received = b""
        self._same = requests.encode(0)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._ask()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(b"\r\n\r\n")
        if not end or len(body) < _body_bytes(head):
            return
        if not head.startswith(b"HTTP/1.1 200") or b'"code":200' not in body[:200]:
            raise SystemExit(self._received[:500].decode())
        self._received = b""
        self.answered += 1
        if time.monotonic() < self._stop_s:
            self._ask()
        else:
            self._transport.close()
            self.done.set_result(None)

    def _ask(self) -> None:
        self._number += 1
        self._transport.write(self._requests.encode(self._number) if self._requests.is_new else self._same)


def _body_bytes(head: bytes) -> int:
    at = head.lower().index(_LENGTH) + len(_LENGTH)
    return int(head[at:].split(b"\r\n", 1)[0])


async def ask(requests: Requests) -> int:
    """How many were answered."""
    loop, stop_s = asyncio.get_running_loop(), time.monotonic() + requests.seconds
    requesters = [Requester(requests, stop_s, number * 10**9) for number in range(requests.connections)]
    for requester in requesters:
        await loop.create_connection(lambda each=requester: each, "127.0.0.1", requests.port)  # type: ignore[misc]
    await asyncio.wait_for(asyncio.gather(*(each.done for each in requesters)), requests.seconds + 30)
    return sum(each.answered for each in requesters)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        print(runner.run(ask(Requests(**json.loads(sys.argv[1])))))
