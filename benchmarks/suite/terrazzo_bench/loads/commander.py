"""Clients of the gateway that give commands, each to a terminal of its own, which acknowledges them.

Run as ``python -m terrazzo_bench.loads.commander '<JSON of Commander>'``: says ``ready``; a line ``CLIENTS SECONDS``
has so many give commands for so long, each the next one when the last has been answered and has arrived, and prints
``{"arrived", "seconds", "took_ms": [...]}``: from the request until the command is at the terminal.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass

from terrazzo_bench.packets import LOOPBACK, connect, subscribe
from terrazzo_bench.servers import credentials

PATIENCE_S = 10.0
PUBLISH = 3


@dataclass(frozen=True)
class Commander:
    """Where to ask, as whom, and which terminals there are."""

    http: int
    mqtt: int
    token: str
    uids: list[str]

    def to_json(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))


class Terminal:
    """A terminal that acknowledges its commands."""

    def __init__(self, commander: Commander, uid: str) -> None:
        self.uid = uid
        username, pin = credentials(uid)
        self._socket = connect(commander.mqtt, uid, username=username, password=pin)
        subscribe(self._socket, f"p2p/{uid}")
        self.arrived: asyncio.Queue[float] = asyncio.Queue()

    async def listen(self) -> None:
        """Acknowledges what comes, and keeps when it came, until the connection ends."""
        reader, writer = await asyncio.open_connection(sock=self._socket)
        while True:
            first = (await reader.readexactly(1))[0]
            body = await reader.readexactly(await _remaining_length(reader))
            if first >> 4 != PUBLISH:
                continue
            self.arrived.put_nowait(time.perf_counter())
            at = 2 + int.from_bytes(body[:2], "big")
            writer.write(b"\x40\x02" + body[at : at + 2])


async def _remaining_length(reader: asyncio.StreamReader) -> int:
    length, shift = 0, 0
    while True:
        digit = (await reader.readexactly(1))[0]
        length |= (digit & 127) << shift
        shift += 7
        if digit < 128:
            return length


class Client:
    """One client on a kept connection."""

    def __init__(self, commander: Commander, terminal: Terminal) -> None:
        self._port, self._terminal = commander.http, terminal
        request = {"action": "publish_terminal_command", "terminal_id": terminal.uid, "command": "SP", "value": 1}
        body = json.dumps(request)
        head = [
            "POST /apiproxy/api HTTP/1.1",
            "Host: x",
            f"Authorization: Bearer {commander.token}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
        ]
        self._request = "\r\n".join([*head, "", body]).encode()

    async def give(self, until_s: float) -> list[float]:
        """Gives commands until then (``time.perf_counter``); milliseconds from the request to the terminal, of each."""
        reader, writer = await asyncio.open_connection(LOOPBACK, self._port)
        took_ms = []
        while (began := time.perf_counter()) < until_s:
            writer.write(self._request)
            async with asyncio.timeout(PATIENCE_S):
                await _answered(reader)
                took_ms.append((await self._terminal.arrived.get() - began) * 1e3)
        writer.close()
        return took_ms


async def _answered(reader: asyncio.StreamReader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    lowered = head.lower()
    at = lowered.index(b"content-length:") + len(b"content-length:")
    body = await reader.readexactly(int(lowered[at:].split(b"\r\n", 1)[0]))
    if not head.startswith(b"HTTP/1.1 200") or json.loads(body)["code"] != 200:
        raise ConnectionError(f"a command was refused: {body[:300]!r}")


async def give_commands(commander: Commander, terminals: list[Terminal], seconds: float) -> dict[str, object]:
    """One client for each terminal."""
    began = time.perf_counter()
    clients = [Client(commander, terminal) for terminal in terminals]
    found = await asyncio.gather(*(client.give(began + seconds) for client in clients))
    took_ms = [each for client in found for each in client]
    return {"arrived": len(took_ms), "seconds": time.perf_counter() - began, "took_ms": took_ms}


async def main(commander: Commander) -> None:
    """Obeys lines until the last."""
    terminals = [Terminal(commander, uid) for uid in commander.uids]
    async with asyncio.TaskGroup() as group:
        listening = [group.create_task(terminal.listen()) for terminal in terminals]
        print("ready", flush=True)
        while line := await asyncio.to_thread(sys.stdin.readline):
            count, seconds = line.split()
            print(json.dumps(await give_commands(commander, terminals[: int(count)], float(seconds))), flush=True)
        for task in listening:
            task.cancel()


if __name__ == "__main__":
    asyncio.run(main(Commander(**json.loads(sys.argv[1]))))
