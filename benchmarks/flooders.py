"""The floods of ``floods.py``: what somebody does who has proved nothing, from addresses of their own.

Run as ``python benchmarks/flooders.py '<JSON of Flood>'``; prints ``ready`` when it is under way, goes on until its
standard input ends, then prints what it has done as one JSON line. Each is bounded: so many connections, so many of
them made in a second.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import resource
import struct
import sys
import zlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import uvloop

from mqtt_bytes import field as mqtt_field
from mqtt_bytes import frame, login

GATEWAY = "/apiproxy/api"
UPLOAD = "/object/api/v1/file/upload"
TIMEOUT_S = 10.0
READY_S = 90.0
LARGE = 1 << 20

Peer = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@dataclass(frozen=True)
class Flood:
    """What to do, to which ports, from where.

    Args:
        ports: by name: http, websocket, tcp, mqtt, mqtt_websocket.
        sources: local addresses, taken in turn.
        ready: it is under way when so many connections have been made.
        users: the names of the honest user and the honest terminal, whom some floods try to lock out.
    """

    name: str
    ports: dict[str, int]
    sources: list[str]
    connections: int = 20
    per_second: int = 200
    ready: int = 1
    users: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> str:
        """For the command line."""
        return json.dumps(asdict(self))


class Flooder:
    """Keeps ``connections`` of one flood going, each by ``attack``, and counts what comes of them."""

    def __init__(self, flood: Flood) -> None:
        self.flood = flood
        self.counts: Counter[str] = Counter()
        self.ready = asyncio.Event()
        self._numbers = itertools.count()
        self._next_s = 0.0

    async def run(self, attack: Callable[[Flooder, int], Awaitable[None]]) -> None:
        """Until it is cancelled."""
        await asyncio.gather(*(self._repeat(attack, number) for number in range(self.flood.connections)))

    async def _repeat(self, attack: Callable[[Flooder, int], Awaitable[None]], number: int) -> None:
        while True:
            await self._turn()
            try:
                await asyncio.wait_for(attack(self, number), TIMEOUT_S * 6)
                self.counts["done"] += 1
            except (OSError, TimeoutError, asyncio.IncompleteReadError) as error:
                self.counts[type(error).__name__] += 1

    async def _turn(self) -> None:
        loop = asyncio.get_running_loop()
        self._next_s = max(self._next_s + 1 / self.flood.per_second, loop.time())
        await asyncio.sleep(self._next_s - loop.time())

    def fresh(self) -> str:
        """A name that nobody has had."""
        return f"stranger-{os.getpid()}-{next(self._numbers)}"

    @asynccontextmanager
    async def connect(self, port: str) -> AsyncIterator[Peer]:
        """A connection from the next address."""
        source = self.flood.sources[next(self._numbers) % len(self.flood.sources)]
        reader, writer = await asyncio.wait_for(
            asyncio.open_connection("127.0.0.1", self.flood.ports[port], local_addr=(source, 0)), TIMEOUT_S
        )
        self.counts["connected"] += 1
        if self.counts["connected"] >= self.flood.ready:
            self.ready.set()
        try:
            yield reader, writer
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def post(self, path: str, body: bytes, **headers: str) -> None:
        """One request on a connection of its own; its status is counted."""
        async with self.connect("http") as (reader, writer):
            lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}"]
            lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
            writer.write("\r\n".join([*lines, "", ""]).encode() + body)
            status = await asyncio.wait_for(reader.readline(), TIMEOUT_S)
            self.counts[status[9:12].decode() or "closed"] += 1


async def hold(peer: Peer) -> None:
    """Stays until the server closes."""
    while await peer[0].read(65_536):
        pass


@cache
def inflating() -> bytes:
    """896 MiB of blanks, compressed to less than 1 MiB: one compressed piece, again and again."""
    blanks, pieces = b" " * (16 << 20), 56
    packer, check = zlib.compressobj(9, zlib.DEFLATED, -15), 0
    piece = packer.compress(blanks) + packer.flush(zlib.Z_FULL_FLUSH)
    for _ in range(pieces):
        check = zlib.crc32(blanks, check)
    head = b"\x1f\x8b\x08" + bytes(6) + b"\xff"
    return head + piece * pieces + packer.flush() + struct.pack("<LL", check, len(blanks) * pieces)


@cache
def parts() -> bytes:
    """A multipart body of 5,000 parts with long heads."""
    head = b'--b\r\nContent-Disposition: form-data; name="' + b"n" * 150 + b'"\r\n\r\nx\r\n'
    return head * (LARGE // len(head) - 1) + b"--b--\r\n"


async def inflating_bodies(self: Flooder, _: int) -> None:
    await self.post(GATEWAY, inflating(), Content_Type="application/json", Content_Encoding="gzip")


async def multipart_bodies(self: Flooder, _: int) -> None:
    await self.post(UPLOAD, parts(), Content_Type="multipart/form-data; boundary=b")


async def forms_without_a_boundary(self: Flooder, _: int) -> None:
    await self.post("/api/send/send-email", b"x" * (512 << 10), Content_Type="multipart/form-data")


async def logins_under_fresh_names(self: Flooder, _: int) -> None:
    body = json.dumps({"action": "login", "username": self.fresh(), "password": "x"}).encode()
    await self.post(GATEWAY, body, Content_Type="application/json")


async def connects_of_a_mebibyte(self: Flooder, _: int) -> None:
    async with self.connect("mqtt") as peer:
        whole = login(self.fresh(), "u", "p")
        begun = bytes((0x10, 0xFF, 0xFF, 0x3F)) + whole[2:]
        peer[1].write(begun + bytes(LARGE - len(begun) - 8))
        await hold(peer)


async def lines_that_nobody_reads_the_answers_of(self: Flooder, _: int) -> None:
    async with self.connect("tcp") as peer:
        line = b'{"action": "ping", "actionid": "' + b"x" * (LARGE - 100) + b'"}\n'
        for _ in range(64):
            peer[1].write(line)
            await asyncio.wait_for(peer[1].drain(), TIMEOUT_S)
        await asyncio.sleep(TIMEOUT_S)


async def scram_begun_and_left(self: Flooder, _: int) -> None:
    async with self.connect("mqtt") as (reader, writer):
        method = b"\x15" + mqtt_field("SCRAM-SHA-256")
        first = b"\x16" + mqtt_field(f"n,,n={self.fresh()},r=fyko+d2lbbFgONRv9qkxdawL")
        properties = method + first
        head = mqtt_field("MQTT") + b"\x05\x02\x00\x00" + bytes((len(properties),)) + properties
        writer.write(frame(0x10, head, mqtt_field(self.fresh())))
        self.counts[f"packet {(await reader.read(1)).hex()}"] += 1


async def wrong_passwords_of_the_user(self: Flooder, _: int) -> None:
    body = json.dumps({"action": "login", "username": self.flood.users["user"], "password": "x"}).encode()
    await self.post(GATEWAY, body, Content_Type="application/json")


async def wrong_pins_of_the_terminal(self: Flooder, _: int) -> None:
    await _log_in(self, self.flood.users["terminal"])


async def connects_at_full_speed(self: Flooder, _: int) -> None:
    await _log_in(self, self.fresh())


async def _log_in(self: Flooder, uid: str) -> None:
    async with self.connect("mqtt") as (reader, writer):
        writer.write(login(uid, f"u-{uid}", "wrong"))
        self.counts[f"CONNACK {(await reader.read(4))[3:].hex()}"] += 1


async def silent_api_connections(self: Flooder, number: int) -> None:
    async with self.connect(("http", "websocket", "tcp")[number % 3]) as peer:
        await hold(peer)


async def silent_mqtt_websockets(self: Flooder, _: int) -> None:
    async with self.connect("mqtt_websocket") as peer:
        await hold(peer)


async def silent_connections_everywhere(self: Flooder, number: int) -> None:
    async with self.connect(("http", "websocket", "tcp", "mqtt", "mqtt_websocket")[number % 5]) as peer:
        await hold(peer)


async def slow_lorises_on_each_port(self: Flooder, number: int) -> None:
    """A request, line or CONNECT that never ends, a byte a second."""
    port = ("http", "websocket", "tcp", "mqtt", "mqtt_websocket")[number % 5]
    async with self.connect(port) as (reader, writer):
        begun, more = _UNENDING[port]
        writer.write(begun)
        while not reader.at_eof():
            writer.write(more)
            await writer.drain()
            with suppress(TimeoutError):
                await asyncio.wait_for(reader.read(65_536), 1.0)


_HEAD = (b"GET / HTTP/1.1\r\nHost: x\r\nX-", b"x")
_UNENDING = {
    "http": (f"POST {GATEWAY} HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n".encode(), b" "),
    "websocket": _HEAD,
    "tcp": (b'{"action": "', b"x"),
    "mqtt": (b"\x10\xff\x7f\x00\x04MQTT\x04\x02\x00\x00\x3f\x00", b"x"),
    "mqtt_websocket": _HEAD,
}

ATTACKS: dict[str, Callable[[Flooder, int], Awaitable[None]]] = {
    "e inflating bodies": inflating_bodies,
    "f multipart bodies": multipart_bodies,
    "g forms without a boundary": forms_without_a_boundary,
    "h logins under fresh names": logins_under_fresh_names,
    "i connects of a mebibyte": connects_of_a_mebibyte,
    "j lines that nobody reads the answers of": lines_that_nobody_reads_the_answers_of,
    "k scram begun and left": scram_begun_and_left,
    "l wrong passwords of the user": wrong_passwords_of_the_user,
    "m wrong pins of the terminal": wrong_pins_of_the_terminal,
    "n connects at full speed": connects_at_full_speed,
    "o silent api connections": silent_api_connections,
    "p silent mqtt websockets": silent_mqtt_websockets,
    "q silent connections everywhere": silent_connections_everywhere,
    "r slow lorises on each port": slow_lorises_on_each_port,
}


async def main() -> None:
    """Floods until standard input ends."""
    flooder = Flooder(Flood(**json.loads(sys.argv[1])))
    task = asyncio.create_task(flooder.run(ATTACKS[flooder.flood.name]))
    with suppress(TimeoutError):
        await asyncio.wait_for(flooder.ready.wait(), READY_S)
    print("ready" if flooder.ready.is_set() else f"not under way: {dict(flooder.counts)}", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    print(json.dumps(flooder.counts), flush=True)
    del task
    os._exit(0)  # closing ten thousand connections one by one takes longer than their end


if __name__ == "__main__":
    os.nice(10)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # a flood of silent connections takes over a thousand
    uvloop.run(main())
