"""The PROXY protocol in front of MQTT, versions 1 and 2: whose address counts, and what is no header."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from listener_stand import ACCEPTED_4, PINGREQ, PINGRESP, connect

from terrazzo_broker.listeners.proxy_protocol import ProxyError, parse_header

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


def line(source: str, port: int) -> bytes:
    """A header of version 1."""
    family = "TCP6" if ":" in source else "TCP4"
    return f"PROXY {family} {source} {source} {port} 1883\r\n".encode()


@pytest.mark.parametrize("make", [header, line])
@pytest.mark.parametrize("address", ["192.0.2.7", "2001:db8::7"])
async def test_the_clients_address(listening, dial, address, make):
    peer = await dial(listening.port)
    peer.send(make(address, 40_123) + connect("c"))
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
        b"PROXY UNKNOWN\r\n",
        b"PROXY UNKNOWN ffff:f... " + b"x" * 81 + b"\r\n",
    ],
    ids=["local", "local, empty", "unspecified", "unix", "v1 unknown", "v1 unknown, 107 bytes"],
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


@pytest.mark.parametrize("make", [header, line])
async def test_a_header_in_pieces(listening, dial, make):
    peer = await dial(listening.port)
    peer.writer.transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in make("192.0.2.7", 40_123) + connect("c"):
        peer.send(bytes((byte,)))
        await asyncio.sleep(0)  # the broker is in this loop: it reads what has come so far
    assert await peer.receive() == ACCEPTED_4


@pytest.mark.parametrize(
    "sent",
    [
        connect("c"),
        b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 1883\n" + bytes(107),
        b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 65536\r\n",
        b"PROXY TCP4 192.0.2.7 192.0.2.1 40000\r\n",
        b"PROXY TCP4 2001:db8::1 192.0.2.1 40000 1883\r\n",
        b"PROXY TCP6 fe80::1%eth0 fe80::2 40000 1883\r\n",
        b"PROXY UDP4 192.0.2.7 192.0.2.1 40000 1883\r\n",
        b"PROXY  TCP4 192.0.2.7 192.0.2.1 40000 1883\r\n",
        b"PROXY UNKNOWN " + b"x" * 92 + b"\r\n",
        b"POST /mqtt HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\x00\x01",
        SIGNATURE + b"\x11\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
        header(family=0x12),
        header(family=0x21),
        header(family=0x77),
        SIGNATURE + b"\x21\x11\x00\x0b" + bytes(11),
        SIGNATURE + b"\x21\x11\xff\xff",
    ],
    ids=[
        "none",
        "v1, no end",
        "v1, port",
        "v1, short",
        "v1, family",
        "v1, zone",
        "v1, UDP",
        "v1, blanks",
        "v1, 108 bytes",
        "HTTP",
        "TLS",
        "version 1",
        "command 2",
        "UDP",
        "short IPv6",
        "family 7",
        "short",
        "huge",
    ],
)
async def test_anything_else_is_closed(listening, dial, sent):
    peer = await dial(listening.port)
    peer.send(sent)
    assert await peer.ended()
    assert listening.stats.proxy_headers_refused == 1
    assert listening.stats.accepted == 0


@pytest.mark.parametrize("sent", [b"", SIGNATURE[:5], header()[:20], b"P", b"PROXY TCP4 192.0.2.7\r"])
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
    assert (len(ended), listening.stats.half_open_ended) == (1, 1)
    for each in others:
        each.cancel()
    other = await dial(listening.port)
    other.send(header("192.0.2.8") + connect("c"))
    assert await other.receive() == ACCEPTED_4


@given(st.binary(max_size=64), st.sampled_from([0x20, 0x21, 0x11, 0x22]), st.integers(0, 255))
@settings(max_examples=300)
def test_any_header_is_read_or_refused(body, command, family):
    start = SIGNATURE + bytes((command, family)) + len(body).to_bytes(2, "big") + body
    check_header(start)


@given(st.binary(max_size=120), st.sampled_from([b"", b"P", b"PROXY ", b"PROXY TCP4 ", b"PROXY TCP6 ::1 ", SIGNATURE]))
@settings(max_examples=500)
def test_any_start_is_read_or_refused(rest, begin):
    check_header(begin + rest)
    check_header(begin + rest[:100] + b"\r\n")


def check_header(start: bytes) -> None:
    """Whatever it is, its parts lead to the same as the whole."""
    try:
        whole = parse_header(start)
    except ProxyError:
        whole = None
    for end in range(len(start)):
        try:
            part = parse_header(start[:end])
        except ProxyError:
            assert whole is None
            break
        if part is not None:
            assert part == whole
    if whole is not None:
        assert 0 < whole.size <= len(start)
        assert whole.source is None or (ipaddress.ip_address(whole.source[0]) and 0 <= whole.source[1] <= 65_535)


def test_the_longest_headers_take_no_time():
    """Byte by byte, as long as they may be: what was read is not read again and again."""
    line, binary = b"PROXY UNKNOWN " + b"x" * 91 + b"\r\n", SIGNATURE + b"\x21\x11\x10\x00" + bytes(4096)
    assert parse_header(line).size == len(line) == 107
    began_s = time.thread_time()
    seen = bytearray()
    for byte in binary:
        assert parse_header(seen) is None
        seen.append(byte)
    assert parse_header(seen).size == len(binary)
    assert time.thread_time() - began_s < 0.5
