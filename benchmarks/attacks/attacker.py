"""Does one attack over and over: ``python benchmarks/attacks/attacker.py``, until its standard input ends.

The first line of that is the JSON of a ``Target``. Prints ``ready`` when it begins, and what came of it as one JSON
line. What it does is bounded by the attack's ``connections`` and ``per_second``.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))
sys.path.append(str(Path(__file__).parents[2] / "tests"))

import aiohttp
import uvloop

from attacks.attack import GATEWAY, Attack, Facts
from attacks.mqtt_peer import MqttPeer, connected
from attacks.table import ATTACKS

TIMEOUT_S = 60.0
SMALL_WINDOW = 4_096  # of a receiver that takes nothing


@dataclass(frozen=True)
class Target:
    """Whom to attack, and how.

    Args:
        ports: by name: http, mqtt, websocket, and far_side, where a bridge looks for its other side.
        tokens: of the attacking company's users, by role.
        facts: what the attack's preparation said.
    """

    number: int
    ports: dict[str, int]
    tokens: dict[str, str]
    facts: Facts

    def to_json(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))


class Attacker:
    """Keeps all connections of an attack going, counts what comes of it, and has the clients for it."""

    def __init__(self, target: Target, http: aiohttp.ClientSession) -> None:
        self.facts = target.facts
        self.ports = target.ports
        self.counts: Counter[str] = Counter()
        self._target = target
        self._http = http
        self._next_s = 0.0

    async def run(self, attack: Attack) -> None:
        """Until it is cancelled."""
        await asyncio.gather(*(self._repeat(attack, number) for number in range(attack.connections)))

    async def _repeat(self, attack: Attack, number: int) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._next_s = max(self._next_s + 1 / attack.per_second, loop.time())
            await asyncio.sleep(self._next_s - loop.time())
            try:
                async with asyncio.timeout(TIMEOUT_S):
                    await attack.attack(self, number)
                self.counts["rounds"] += 1
            except (OSError, TimeoutError, EOFError, aiohttp.ClientError) as error:
                self.counts[f"{type(error).__name__} {error}"[:80]] += 1

    def mqtt(self, uid: str, *, protocol: int = 4, connect: bytes = b"") -> AbstractAsyncContextManager[MqttPeer]:
        """A terminal that has logged in."""
        return connected(self.ports["mqtt"], uid, protocol=protocol, connect=connect)

    async def call(self, action: str, *, role: str = "viewer", **fields: Any) -> Any:
        """One request as a user of the company; its result, after its code and what is wrong are counted."""
        return await self.post(GATEWAY, json.dumps({"action": action, **fields}).encode(), role=role)

    async def post(self, path: str, body: bytes, *, role: str = "admin") -> Any:
        """A body as it is."""
        headers = {**self._headers(role), "Content-Type": "application/json"}
        async with self._http.post(self._url(path), data=body, headers=headers) as answer:
            said = await answer.json(content_type=None)
        self.counts[f"{said['code']} {said['info'][:60]}"] += 1
        return said["result"]

    async def download(self, path: str, *, role: str = "viewer") -> None:
        """A file, read and thrown away; its bytes are counted."""
        async with self._http.get(self._url(path), headers=self._headers(role)) as answer:
            async for chunk in answer.content.iter_any():
                self.counts["bytes"] += len(chunk)

    async def socket(self, *, role: str = "viewer") -> aiohttp.ClientWebSocketResponse:
        """A WebSocket of the gateway; the caller closes it."""
        url = f"http://127.0.0.1:{self.ports['websocket']}{GATEWAY}"
        return await self._http.ws_connect(url, headers=self._headers(role), max_msg_size=0)

    @asynccontextmanager
    async def unread(self, path: str, body: bytes = b"", *, role: str = "viewer") -> AsyncIterator[socket.socket]:
        """A request (a POST where it has a body) of whose answer nothing is taken."""
        loop = asyncio.get_running_loop()
        with socket.socket() as peer:
            peer.setblocking(False)
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, SMALL_WINDOW)
            await loop.sock_connect(peer, ("127.0.0.1", self.ports["http"]))
            lines = [f"{'POST' if body else 'GET'} {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
            lines += ["Content-Type: application/json", *(f"{k}: {v}" for k, v in self._headers(role).items())]
            await loop.sock_sendall(peer, "\r\n".join([*lines, "", ""]).encode() + body)
            yield peer

    def _headers(self, role: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._target.tokens[role]}"}

    def _url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.ports['http']}{path}"


async def main() -> None:
    """Attacks until standard input ends."""
    target = Target(**json.loads(sys.stdin.readline()))
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as http:
        attacker = Attacker(target, http)
        task = asyncio.create_task(attacker.run(ATTACKS[target.number]), name="attack")
        print("ready", flush=True)
        ended = asyncio.create_task(asyncio.to_thread(sys.stdin.read), name="end")
        await asyncio.wait((task, ended), return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            attacker.counts[f"ENDED {task.exception()!r}"] += 1
            await ended
        print(json.dumps(attacker.counts), flush=True)
        os._exit(0)  # what is open ends with the process


if __name__ == "__main__":
    uvloop.run(main())
