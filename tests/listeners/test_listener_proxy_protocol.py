"""PROXY protocol v2 in front of MQTT: whose address counts, and what is no header."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from listener_stand import ACCEPTED_4, PINGREQ, PINGRESP, connect

from terrazzo_broker.listeners.proxy_protocol import ProxyError, parse_length, parse_source

SIGNATURE = bytes.fromhex("0d0a0d0a000d0a515549540a")


def header(
    source: str = "192.0.2.7", port: int = 40_000, *, command: int = 0x21, family: int | None = None, more: bytes = b""
) -> bytes:
    """A header as a balancer sends it; ``more`` are type-length-value fields."""
    address = ipaddress.ip_address(source)
    body = address.packed + bytes(len(address.packed)) + port.to_bytes(2, "big") + b"\x07\x5b" + more
    if family is None:
        family = 0x11 if address.version == 4 else 0x21
    return SIGNATURE + bytes((command, family)) + len(body).to_bytes(2, "big") + body


@pytest.fixture
async def listening(start):
    """A broker behind a balancer, its port in ``port``."""
    broker = start(connect_timeout_s=1.0, half_open_per_address=3)
    broker.port = await broker.listen_tcp("127.0.0.1", 0, proxy_protocol=True)
    return broker


@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
async def test_the_clients_address(listening, dial, address):
    peer = await dial(listening.port)
    peer.send(header(address, 40_123) + connect("c"))
    assert await peer.receive() == ACCEPTED_4
    assert listening.hooks.requests[0].address == address
    assert (listening.client("c").address, listening.client("c").port) == (address, 40_123)
    assert listening.hooks.requests[0].listener == "tcp"
    peer.send(PINGREQ)
    assert await peer.receive() == PINGRESP


@pytest.mark.parametrize(
    "sent",
    [
        header(command=0x20),
        SIGNATURE + b"\x20\x00\x00\x00",
        SIGNATURE + b"\x21\x00\x00\x00",
        SIGNATURE + b"\x21\x31\x00\xd8" + bytes(216),
    ],
    ids=["local", "local, empty", "unspecified", "unix"],
)
async def test_headers_without_an_address(listening, dial, sent):
    peer = await dial(listening.port)
    peer.send(sent + connect("c"))
    assert await peer.receive() == ACCEPTED_4
    assert listening.hooks.requests[0].address == "127.0.0.1"


async def test_extra_fields_are_skipped(listening, dial):
    peer = await dial(listening.port)
    peer.send(header(more=b"\x04\x01\x00" + bytes(256)) + connect("c"))
    assert await peer.receive() == ACCEPTED_4
    assert listening.hooks.requests[0].address == "192.0.2.7"


async def test_a_header_in_pieces(listening, dial):
    peer = await dial(listening.port)
    peer.writer.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in header() + connect("c"):
        peer.send(bytes((byte,)))
        await asyncio.sleep(0)  # the broker is in this loop: it reads what has come so far
    assert await peer.receive() == ACCEPTED_4


@pytest.mark.parametrize(
    "sent",
    [
        connect("c"),
        b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 1883\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        SIGNATURE + b"\x11\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
        header(family=0x12),
        header(family=0x21),
        header(family=0x77),
        SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11),
        SIGNATURE + b"\x21\x11\xff\xff",
    ],
    ids=["none", "v1", "TLS", "version 1", "command 2", "UDP", "short IPv6", "family 7", "short", "huge"],
)
async def test_anything_else_is_closed(listening, dial, sent):
    peer = await dial(listening.port)
    peer.send(sent)
    assert await peer.ended()
    assert listening.stats.proxy_headers_refused == 1
    assert listening.stats.accepted == 0


@pytest.mark.parametrize("sent", [b"", SIGNATURE[:5], header()[:20]])
async def test_a_header_has_a_deadline(listening, dial, sent):
    peer = await dial(listening.port)
    peer.send(sent)
    assert await peer.ended()
    assert listening.stats.proxy_headers_refused == 1


async def test_the_end_inside_a_header(listening, dial):
    peer = await dial(listening.port)
    peer.send(header()[:20])
    peer.writer.write_eof()
    assert await peer.ended()
    assert listening.stats.proxy_headers_refused == 1


async def test_tls_behind_the_header(start, authority):
    """The ClientHello comes in the same segment as the header."""
    broker, pair = start(), authority.issue("server")
    port = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key, proxy_protocol=True)

    def exchange() -> bytes:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = authority.client_context().wrap_bio(incoming, outgoing, server_hostname="localhost")
        with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
            pending = header("198.51.100.9")
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    sock.sendall(pending + outgoing.read())
                    pending = b""
                    incoming.write(sock.recv(65_536))
            tls.write(connect("c"))
            sock.sendall(outgoing.read())
            while True:
                try:
                    return tls.read(100)
                except ssl.SSLWantReadError:
                    incoming.write(sock.recv(65_536))

    assert await asyncio.to_thread(exchange) == ACCEPTED_4
    request = broker.hooks.requests[0]
    assert (request.address, request.listener) == ("198.51.100.9", "tls")


async def test_limits_count_the_clients_not_the_balancer(listening, dial):
    crowd = [await dial(listening.port) for _ in range(4)]
    for peer in crowd:
        peer.send(header("192.0.2.7"))
    waiting = [asyncio.create_task(peer.ended()) for peer in crowd]
    ended, others = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    assert (len(ended), listening.stats.limited_half_open) == (1, 1)
    for each in others:
        each.cancel()
    other = await dial(listening.port)
    other.send(header("192.0.2.8") + connect("c"))
    assert await other.receive() == ACCEPTED_4


@given(st.binary(max_size=64), st.sampled_from([0x20, 0x21, 0x11, 0x22]), st.integers(0, 255))
@settings(max_examples=300)
def test_any_header_is_read_or_refused(body, command, family):
    start = SIGNATURE + bytes((command, family)) + len(body).to_bytes(2, "big")
    try:
        assert parse_length(start) == len(body)
        source = parse_source(start, body)
    except ProxyError:
        return
    assert source is None or (ipaddress.ip_address(source[0]) and 0 <= source[1] <= 65_535)
