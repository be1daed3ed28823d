"""What a bomb is made of, and how it is sent."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from attacks.attack import GATEWAY
from attacks.mqtt_peer import PUBACK, SUBACK

from mqtt_bytes import field as mqtt_field
from mqtt_bytes import frame, login

TAKEN = "taken"
_TOLD = 200  # characters of an answer
_PINGRESP, _DISCONNECT = 13, 14
_ANSWERS = {PUBACK: "PUBACK", SUBACK: "SUBACK", _PINGRESP: "PINGRESP", _DISCONNECT: "DISCONNECT"}


@dataclass(frozen=True)
class Site:
    """Where they are sent: ports by name, tokens by role, and a client for HTTP."""

    ports: dict[str, int]
    tokens: dict[str, str]
    http: aiohttp.ClientSession = field(repr=False)

    async def call(self, role: str, action: str, **fields: Any) -> str:
        """A request of the gateway."""
        return await self.post(role, GATEWAY, json.dumps({"action": action, **fields}).encode())

    async def post(self, role: str, path: str, body: Any, **headers: str) -> str:
        """A body as it is; what it was answered: ``taken``, or the code and what is wrong."""
        given = {"Authorization": f"Bearer {self.tokens[role]}", "Content-Type": "application/json"}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, aiohttp.FormData):
            del given["Content-Type"]
        url = f"http://127.0.0.1:{self.ports['http']}{path}"
        async with self.http.post(url, data=body, headers=given) as answer:
            return told(answer.status, await answer.read())


def told(status: int, body: bytes) -> str:
    """What an answer says: ``taken``, or its code and what is wrong."""
    try:
        said = json.loads(body)
        code, info = int(said["code"]), str(said["info"])
    except (ValueError, KeyError, TypeError):
        code, info = status, body.decode(errors="replace")
    return TAKEN if code == 200 else f"{code} {info}"[:_TOLD]


async def report(site: Site, uid: str, payload: bytes, *, topic: str = "", first: int = 0x32) -> str:
    """A publish at QoS 1 by a terminal of MQTT 5; the bytes of its payload come at once."""
    return await talk(site, uid, frame(first, mqtt_field(topic or f"g/{uid}/r"), b"\0\1\0", payload))


async def talk(site: Site, uid: str, *packets: bytes, connect: bytes = b"") -> str:
    """A terminal of MQTT 5 that logs in, and sends this: what the first answer to it says.

    That is ``taken``, the name and reason code of the packet that refuses it, or ``closed``.
    """
    reader, writer = await asyncio.open_connection("127.0.0.1", site.ports["mqtt"])
    try:
        writer.write(connect or opened(uid))
        _, body = await _packet(reader)
        if body[1]:
            return f"CONNACK 0x{body[1]:02x}"
        writer.write(b"".join(packets))
        while True:
            first, body = await _packet(reader)
            if first >> 4 in _ANSWERS:
                return _reason(first >> 4, body)
    except (ConnectionError, asyncio.IncompleteReadError):
        return "closed"
    finally:
        writer.close()


async def _packet(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    first = (await reader.readexactly(1))[0]
    length = shift = 0
    while True:
        digit = (await reader.readexactly(1))[0]
        length |= (digit & 127) << shift
        shift += 7
        if digit < 128:
            return first, await reader.readexactly(length)


def _reason(kind: int, body: bytes) -> str:
    """Of PUBACK after its packet's id, where it is not 0; of SUBACK the largest; of DISCONNECT the first."""
    if kind == PUBACK:
        code = body[2] if len(body) > 2 else 0
    else:
        code = max(body[3 + body[2] :], default=0) if kind == SUBACK else (body or b"\0")[0]
    return TAKEN if kind in (PUBACK, SUBACK, _PINGRESP) and code < 0x80 else f"{_ANSWERS[kind]} 0x{code:02x}"


def opened(uid: str) -> bytes:
    """A CONNECT of MQTT 5."""
    return login(uid, f"u-{uid}", f"pin-{uid}"[:16], protocol=5)


Send = Callable[[Site, str], Awaitable[str]]


@dataclass(frozen=True)
class Bomb:
    """One of them.

    Attributes:
        name: what it is.
        who: ``viewer``, ``admin``, or ``terminal``.
        send: sends it as one of a role, or a terminal of a uid; what it was answered.
        refused: beginnings of what it may be answered; empty: it is taken, and costs little.
        rejected: what the company reads in ``get_reject_list`` of it; empty: it is no report that is rejected.
    """

    name: str
    who: str
    send: Send
    refused: tuple[str, ...] = ("10401 ",)
    rejected: str = ""

    def wrong(self, answers: list[str]) -> list[str]:
        """Answers that are neither what it may be answered, nor say why."""
        if not self.refused:
            return [each for each in answers if each != TAKEN]
        return [each for each in answers if not each.startswith(self.refused)]
