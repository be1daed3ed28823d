"""Bombs of terminals that have logged in: payloads sealed and plain, topics, filters, retained messages, wills."""

from __future__ import annotations

import base64
import json
import os
import struct
import zlib
from collections.abc import Callable

import msgspec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from bombs.bomb import Bomb, Send, Site, report, talk
from mqtt_bytes import field, frame
from terrazzo_simulators.sealing import derive_key

MOST = 1_000_000  # bytes of a payload: a packet may have 1 MiB
SEALED = "sealed"
"""A terminal whose payloads are sealed; others are called otherwise."""
_BEYOND = 64 << 20


def _payload(data: bytes | Callable[[str], bytes]) -> Send:
    async def send(site: Site, uid: str) -> str:
        return await report(site, uid, data(uid) if callable(data) else data)

    return send


def _sealed(header: dict[str, object], plain: bytes) -> Callable[[str], bytes]:
    """A JWE that opens, whatever its header says."""

    def made(uid: str) -> bytes:
        head, iv = _text(json.dumps(header).encode()), os.urandom(12)
        sealed = AESGCM(derive_key(pin=f"pin-{uid}"[:16], uid=uid)).encrypt(iv, plain, head)
        return b".".join((head, b"", _text(iv), _text(sealed[:-16]), _text(sealed[-16:])))

    return made


def _text(data: bytes) -> bytes:
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def _deflated(size: int) -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return b"".join([*(packer.compress(b" " * (1 << 20)) for _ in range(size >> 20)), packer.flush()])


def _packets(*packets: bytes) -> Send:
    async def send(site: Site, uid: str) -> str:
        return await talk(site, uid, *packets)

    return send


def _published(topic: str, *, first: int = 0x32, payload: bytes = b'{"p": 1}') -> Send:
    async def send(site: Site, uid: str) -> str:
        return await report(site, uid, payload, topic=topic.format(uid=uid), first=first)

    return send


def _subscribed(filters: list[str]) -> bytes:
    return frame(0x82, b"\0\1\0", b"".join(field(each) + b"\1" for each in filters))


def _willed(topic: str, payload: bytes) -> Send:
    """A CONNECT with a will, and a PINGREQ after it."""

    async def send(site: Site, uid: str) -> str:
        head = field("MQTT") + bytes((5, 0xCE)) + b"\0\0" + b"\0"
        will = b"\0" + field(topic.format(uid=uid)) + field(payload)
        connect = frame(0x10, head, field(uid), will, field(f"u-{uid}"), field(f"pin-{uid}"[:16]))
        return await talk(site, uid, b"\xc0\0", connect=connect)

    return send


async def _propertied(site: Site, uid: str) -> str:
    """A report with as many pairs of names and values as a packet has room for: they are passed on, and not kept."""
    return await talk(site, uid, frame(0x32, field(f"g/{uid}/r"), b"\0\1", frame(0, _PAIRS)[1:], b'{"p": 1}'))


_PAIRS = b"".join(b"\x26" + field("n" * 50) + field("v" * 50) for _ in range(8_000))
_DIR = {"alg": "dir", "enc": "A256GCM"}

TERMINALS = (
    Bomb(
        "JSON 100,000 deep", "terminal", _payload(b'{"a":' * 100_000 + b"1" + b"}" * 100_000), ("PUBACK 0x99",), "deep"
    ),
    Bomb("JSON of 80,000 points", "terminal", _payload(json.dumps({f"p{n}": 1 for n in range(80_000)}).encode()), ()),
    Bomb(
        "a number of a million digits",
        "terminal",
        _payload(b'{"a": ' + b"9" * (MOST - 100) + b"}"),
        ("PUBACK 0x99",),
        "a",
    ),
    Bomb(
        "MessagePack that promises 4,294,967,295 points",
        "terminal",
        _payload(b"\xdf\xff\xff\xff\xff\xa1a\1"),
        ("PUBACK 0x99",),
        "truncated",
    ),
    Bomb("MessagePack 900,000 deep", "terminal", _payload(b"\x81\xa1a" * 300_000 + b"\1"), ("PUBACK 0x99",), "deep"),
    Bomb(
        "MessagePack of a text of 4 GiB",
        "terminal",
        _payload(b"\x81\xa1a\xdb" + struct.pack(">I", 2**32 - 1) + b"x"),
        ("PUBACK 0x99",),
        "truncated",
    ),
    Bomb(
        "MessagePack of 130,000 points",
        "terminal",
        _payload(msgspec.msgpack.encode({f"{n:x}": 1 for n in range(130_000)})),
        (),
    ),
    Bomb(
        "a JWE whose content inflates to 512 MiB",
        SEALED,
        _payload(_sealed({**_DIR, "zip": "DEF"}, _deflated(512 << 20))),
        ("PUBACK 0x99",),
        "DEF",
    ),
    Bomb(
        "a JWE of a key that takes 2,147,483,647 rounds",
        SEALED,
        _payload(_sealed({"alg": "PBES2-HS512+A256KW", "enc": "A256GCM", "p2c": 2**31 - 1, "p2s": "AAAA"}, b"{}")),
        ("PUBACK 0x99",),
        "seal",
    ),
    Bomb(
        "a JWE with a header of 900,000 bytes",
        SEALED,
        _payload(_sealed({**_DIR, "kid": "k" * 600_000}, b"{}")),
        ("PUBACK 0x99",),
        "seal",
    ),
    Bomb(
        "a JWE of JSON 100,000 deep",
        SEALED,
        _payload(_sealed(_DIR, b'{"a":' * 90_000 + b"1" + b"}" * 90_000)),
        ("PUBACK 0x99",),
        "deep",
    ),
    Bomb(
        "a packet beyond 1 MiB",
        "terminal",
        _published("g/{uid}/r", payload=bytes(_BEYOND)),
        ("DISCONNECT 0x95", "closed"),
    ),
    Bomb(
        "a packet that promises 256 MiB",
        "terminal",
        _packets(b"\x32\xff\xff\xff\x7f" + bytes(1_000)),
        ("DISCONNECT 0x95",),
    ),
    Bomb(
        "a topic of 30,000 levels", "terminal", _published("g/{uid}/r" + "/" * 30_000), ("PUBACK 0x", "DISCONNECT 0x")
    ),
    Bomb("a topic that is others'", "terminal", _published("g/" + "x" * 60_000 + "/r"), ("PUBACK 0x", "DISCONNECT 0x")),
    Bomb(
        "a filter of 30,000 levels",
        "terminal",
        _packets(_subscribed(["+/" * 30_000 + "#"])),
        ("SUBACK 0x", "DISCONNECT 0x"),
    ),
    Bomb(
        "20,000 filters",
        "terminal",
        _packets(_subscribed([f"g/{n}/+/+/#" for n in range(20_000)])),
        ("SUBACK 0x", "DISCONNECT 0x"),
    ),
    Bomb("8,000 user properties", "terminal", _propertied, ()),
    Bomb(
        "a retained message of a megabyte, on a topic of others",
        "terminal",
        _published("g/other/i", first=0x33, payload=b"x" * MOST),
        ("PUBACK 0x", "DISCONNECT 0x"),
    ),
    Bomb(
        "a will on a topic of others", "terminal", _willed("g/other/a", b"x" * 100), ()
    ),  # judged when it is published
    Bomb("a will of 60,000 bytes", "terminal", _willed("g/{uid}/a", b"x" * 60_000), ("CONNACK 0x95",)),
    Bomb("a will whose topic has 200 levels", "terminal", _willed("g/{uid}/a" + "/x" * 200, b"x"), ()),
)
