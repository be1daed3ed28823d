"""Peers whose word about a client's address counts, on each kind of listener: required of them, refused of others."""

from __future__ import annotations

import asyncio
import socket

import pytest
from listener_stand import ACCEPTED_4, Peer, connect
from websocket_peer import WebSocketPeer, frame

from terrazzo_broker import BrokerSettings, TlsFiles
from waiting import until

PROXY = ("127.0.0.2", 0)
V1 = b"PROXY TCP4 192.0.2.7 192.0.2.1 40000 1883\r\n"
V2 = bytes.fromhex("0d0a0d0a000d0a515549540a 2111000c c0000207 7f000001 9c40 075b")
UPGRADE = (
    b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: mqtt\r\n"
)


@pytest.fixture
def broker(start):
    """One that trusts 127.0.0.2."""
    return start(trusted_proxies=("127.0.0.2", "2001:db8::/32"), connect_timeout_s=2.0)


@pytest.mark.parametrize("header", [V1, V2])
async def test_a_trusted_peer_names_its_client(broker, dial, header):
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0), local_addr=PROXY)
    peer.send(header + connect("c"))
    assert await peer.receive() == ACCEPTED_4
    assert (broker.client("c").address, broker.client("c").port) == ("192.0.2.7", 40_000)


async def test_a_trusted_peer_has_to(broker, dial):
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0), local_addr=PROXY)
    peer.send(connect("c"))
    assert await peer.ended()
    assert (broker.stats.proxy_headers_refused, broker.stats.accepted) == (1, 0)


async def test_others_need_none(broker, dial):
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0))
    assert await peer.login("c") == ACCEPTED_4
    assert broker.client("c").address == "127.0.0.1"


@pytest.mark.parametrize("header", [V1, V2])
@pytest.mark.parametrize("trusted", [(), ("127.0.0.2",)])
async def test_others_headers_are_refused(start, dial, caplog, header, trusted):
    broker = start(trusted_proxies=trusted)
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0), local_addr=("127.0.0.3", 0))
    peer.send(header + connect("c"))
    assert await peer.ended()
    assert (broker.stats.proxy_headers_refused, broker.hooks.requests) == (1, [])
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0))
    peer.send(b"nonsense")
    assert await peer.ended()
    assert broker.stats.proxy_headers_refused == 1


@pytest.mark.parametrize("address", [PROXY, ("127.0.0.3", 0)])
async def test_before_tls(broker, authority, address):
    """The header comes before the handshake; from others it is no TLS."""
    pair = authority.issue("server")
    port = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key)
    context = authority.client_context()

    def exchange() -> bytes:
        with socket.create_connection(("127.0.0.1", port), timeout=5, source_address=address) as sock:
            sock.sendall(V1)
            with context.wrap_socket(sock, server_hostname="localhost") as tls:
                tls.sendall(connect("c"))
                return tls.recv(4)

    if address == PROXY:
        assert await asyncio.to_thread(exchange) == ACCEPTED_4
        assert broker.client("c") is None or broker.client("c").address == "192.0.2.7"
        assert broker.hooks.requests[0].address == "192.0.2.7"
    else:
        with pytest.raises(OSError):
            await asyncio.to_thread(exchange)
        await until(lambda: broker.stats.handshakes_failed == 1)
        assert broker.hooks.requests == []


# WebSocket


async def upgraded(dial, port: int, sent: bytes, *, address: tuple[str, int], **options) -> Peer:
    """A WebSocket that began with these bytes, and has logged in."""
    plain = await dial(port, local_addr=address, **options)
    peer = WebSocketPeer(plain.reader, plain.writer)
    peer.send(sent)
    await peer.answered()
    assert peer.status == 101
    peer.send(frame(connect("c")))
    assert await peer.mqtt(4) == ACCEPTED_4
    return peer


@pytest.mark.parametrize(
    ("address", "sent", "client"),
    [
        (PROXY, UPGRADE + b"X-Forwarded-For: 192.0.2.7\r\n\r\n", "192.0.2.7"),
        (PROXY, UPGRADE + b"X-Forwarded-For: 10.0.0.1, 192.0.2.7, 2001:db8::5\r\n\r\n", "192.0.2.7"),
        (PROXY, UPGRADE + b"X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n", "192.0.2.7"),
        (PROXY, UPGRADE + b"\r\n", "127.0.0.2"),
        (PROXY, V1 + UPGRADE + b"\r\n", "192.0.2.7"),
        (PROXY, V2 + UPGRADE + b"\r\n", "192.0.2.7"),
        (PROXY, V1 + UPGRADE + b"X-Forwarded-For: 198.51.100.1\r\n\r\n", "192.0.2.7"),
        (("127.0.0.3", 0), UPGRADE + b"X-Forwarded-For: 192.0.2.7\r\n\r\n", "127.0.0.3"),
    ],
    ids=["one", "several", "lines", "none", "v1", "v2", "v1, and a stranger's", "a stranger's"],
)
async def test_over_websocket_the_forwarded_address_counts(broker, dial, authority, address, sent, client):
    """With TLS, too; what comes in front of that is shown above."""
    pair, context = authority.issue("server"), authority.client_context()
    files = TlsFiles(cert=pair.cert, key=pair.key)
    for tls in (False, True) if sent.startswith(b"GET") else (False,):
        port = await broker.listen_websocket("127.0.0.1", 0, tls=files if tls else None)
        await upgraded(dial, port, sent, address=address, **({"ssl": context} if tls else {}))
        assert broker.hooks.requests[-1].address == broker.client("c").address == client


async def test_others_headers_in_front_of_http_are_refused(broker, dial):
    peer = await dial(await broker.listen_websocket("127.0.0.1", 0), local_addr=("127.0.0.3", 0))
    peer.send(V1 + UPGRADE + b"\r\n")
    assert (await peer.reader.read(12))[9:] == b"400"
    assert broker.hooks.requests == []


async def test_a_silent_proxy_has_a_deadline(start, dial):
    broker = start(trusted_proxies=("127.0.0.2",), connect_timeout_s=0.3)
    for port in (await broker.listen_tcp("127.0.0.1", 0), await broker.listen_websocket("127.0.0.1", 0)):
        peer = await dial(port, local_addr=PROXY)
        assert await peer.ended()
    assert broker.stats.proxy_headers_refused == 2
    assert broker.core.admission.sockets == 0


async def test_shares_are_counted_by_the_client(start, dial):
    """A flood behind a proxy leaves the room of another client behind the same one alone."""
    broker = start(trusted_proxies=("127.0.0.2",), half_open_per_address=3)
    port, websocket = await broker.listen_tcp("127.0.0.1", 0), await broker.listen_websocket("127.0.0.1", 0)
    for _ in range(6):
        peer = await dial(port, local_addr=PROXY)
        peer.send(V1)
    honest = await dial(port, local_addr=PROXY)
    honest.send(V1.replace(b"192.0.2.7", b"192.0.2.8"))
    half_open = broker.core.admission.half_open
    await until(lambda: half_open.count_of("192.0.2.7") == 3 and half_open.count_of("192.0.2.8") == 1)
    assert broker.stats.half_open_ended == 3
    for _ in range(3):
        peer = await dial(websocket, local_addr=PROXY)
        peer.send(UPGRADE + b"X-Forwarded-For: 192.0.2.7\r\n\r\n")
    await until(lambda: broker.stats.half_open_ended == 6)
    assert half_open.count_of("192.0.2.7") == 3
    honest.send(connect("honest"))
    assert await honest.receive() == ACCEPTED_4


@pytest.mark.parametrize("network", ["10.0.0.1/8", "proxy.example.com", ""])
def test_what_is_no_network_is_refused(network):
    with pytest.raises(ValueError, match=r"^trusted_proxies: "):
        BrokerSettings(trusted_proxies=(network,))
