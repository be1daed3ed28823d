"""What a peer may cost that hasn't logged in: the size of its packets and heads, what is kept of them, and sockets."""

from __future__ import annotations

import asyncio
import ipaddress
import time

import pytest
from listener_stand import ACCEPTED_4, PINGREQ, PINGRESP, Peer, connect, publish
from mqtt5 import ConnAckReasonCode
from websocket_peer import WebSocketPeer, frame

from garbage import set_aside
from mqtt_bytes import field
from mqtt_bytes import frame as packet
from terrazzo_broker import TlsFiles
from terrazzo_broker.admission.half_open import HalfOpenPeers
from terrazzo_broker.admission.half_open import Peer as Counted
from waiting import until

LIMIT = 16 << 10


def large_connect(size: int, version: int = 5) -> bytes:
    """A CONNECT of so many bytes, of which its will is most."""
    properties = b"\0" if version == 5 else b""

    def of(will_bytes: int) -> bytes:
        head = field("MQTT"), bytes((version, 0x06)), b"\0\0", properties
        return packet(0x10, *head, field("c"), properties, field("w"), field(bytes(will_bytes)))

    return of(size - len(of(LIMIT // 2)) + LIMIT // 2)


async def test_a_connect_may_be_so_large(start, dial):
    broker = start()
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0))
    whole = large_connect(LIMIT)
    assert len(whole) == LIMIT
    peer.send(whole)
    assert (await peer.receive())[3] == 0
    peer.send(publish("t", bytes(200_000)))  # and what follows the login as large as ever
    peer.send(PINGREQ)
    assert await peer.receive() == PINGRESP


@pytest.mark.parametrize("sent", [LIMIT + 1, 40], ids=["whole", "its start"])
async def test_a_larger_connect_is_refused_by_its_announcement(start, dial, sent):
    broker = start()
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0))
    peer.send(large_connect(LIMIT + 1)[:sent])
    answer = await peer.receive()
    assert (answer[0], answer[3]) == (0x20, int(ConnAckReasonCode.PACKET_TOO_LARGE))
    assert await peer.ended()
    assert broker.stats.protocol_errors == 1


async def test_it_is_refused_byte_by_byte_too(start, dial):
    peer = await dial(await start().listen_tcp("127.0.0.1", 0))
    for byte in large_connect(LIMIT + 1)[:12]:
        peer.send(bytes((byte,)))
        await asyncio.sleep(0)  # the broker is in this loop: it reads what has come so far
    assert (await peer.receive())[3] == int(ConnAckReasonCode.PACKET_TOO_LARGE)


@pytest.mark.parametrize("version", [3, 4])
async def test_older_protocols_know_no_reason_for_it(start, dial, version):
    broker = start()
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0))
    peer.send(large_connect(LIMIT + 1, version=4) if version == 4 else b"\x10\xff\xff\x3f" + field("MQIsdp") + b"\x03")
    assert await peer.ended()
    assert broker.stats.connects_refused == 1


async def test_the_bound_is_a_setting(start, dial):
    broker = start(connect_bytes=100_000)
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0))
    peer.send(large_connect(60_000))
    assert (await peer.receive())[3] == 0


async def test_what_waits_for_the_hooks_is_bounded(start, dial):
    """Behind its CONNECT a client may send at once; what is taken of it before its login is a read or two."""
    broker = start()
    broker.hooks.gate = asyncio.Event()
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0))
    block = publish("t", bytes(8_000))
    peer.send(connect("c") + block * 500)
    await until(lambda: broker.hooks.requests)
    await until(lambda: broker.core.admission.half_open.held_bytes > 0)
    for _ in range(50):  # turns of the loop, in which it would take all of it
        await asyncio.sleep(0)
    assert broker.stats.bytes_in < 600_000
    broker.hooks.gate.set()
    assert await peer.receive() == ACCEPTED_4
    peer.send(PINGREQ)
    assert await peer.receive() == PINGRESP
    assert broker.stats.messages_in == 500
    assert broker.core.admission.half_open.held_bytes == 0


async def test_all_that_is_kept_is_bounded(start, dial):
    """Those who hold most give way; who says little gets in."""
    broker = start(half_open_bytes=200_000, half_open_per_address=100)
    port = await broker.listen_tcp("127.0.0.1", 0)
    begun = large_connect(LIMIT)[:-1]
    greedy = [await dial(port, local_addr=("127.0.0.2", 0)) for _ in range(30)]
    little = await dial(port)
    little.send(connect("c")[:-1])
    most = 0
    for peer in greedy:
        peer.send(begun)
        await asyncio.sleep(0.01)  # to look at it in between
        most = max(most, broker.core.admission.half_open.held_bytes)
    await until(lambda: broker.stats.half_open_ended == 30 - 200_000 // len(begun))
    assert LIMIT < most <= 200_000
    little.send(connect("c")[-1:])
    assert await little.receive() == ACCEPTED_4


async def test_a_mebibyte_from_each_of_many(start, dial):
    """A thousand CONNECTs that announce a mebibyte leave nothing behind."""
    broker = start(connect_timeout_s=60)
    port = await broker.listen_tcp("127.0.0.1", 0)
    announced = b"\x10\xff\xff\x3f" + connect("c", version=5)[2:] + bytes(4_000)
    peers = []
    for _ in range(10):
        batch = [await dial(port) for _ in range(20)]
        for peer in batch:
            peer.send(announced)
        peers += batch
    answers = [await peer.receive() for peer in peers]
    assert {answer[3] for answer in answers} == {0x95}
    assert broker.core.admission.half_open.held_bytes == 0


# WebSocket


async def test_the_head_of_an_upgrade_is_bounded(start, dial):
    """However many fields it has, and however slowly they come."""
    broker = start()
    peer = await dial(await broker.listen_websocket("127.0.0.1", 0))
    peer.send(b"GET /mqtt HTTP/1.1\r\nHost: x\r\n")
    for _ in range(40):
        peer.send(b"X-A: " + b"a" * 1_000 + b"\r\n")
    assert (await peer.reader.read(12)) == b"HTTP/1.1 431"
    assert broker.stats.upgrades_refused == 1
    await until(lambda: broker.core.admission.half_open.count == 0)


async def test_a_frame_before_the_login_is_bounded(start):
    """A frame of a mebibyte that is never whole isn't taken off the socket."""
    broker = start(connect_timeout_s=1.0)
    peer = await WebSocketPeer.upgrade(await broker.listen_websocket("127.0.0.1", 0))
    peer.send(frame(bytes(1 << 20))[:-1])
    for _ in range(20):
        await asyncio.sleep(0.02)  # while it could take more
        assert broker.core.admission.half_open.held_bytes < 500_000
    await until(lambda: broker.stats.connect_timeouts == 1)
    await until(lambda: broker.stats.connections == 0, 10)
    await peer.close()


async def test_early_packets_over_websocket_wait(start):
    broker = start()
    broker.hooks.gate = asyncio.Event()
    peer = await WebSocketPeer.upgrade(await broker.listen_websocket("127.0.0.1", 0))
    peer.send(frame(connect("c")))
    for _ in range(100):
        peer.send(frame(publish("t", bytes(8_000))))
    await until(lambda: broker.hooks.requests)
    broker.hooks.gate.set()
    assert await peer.mqtt(4) == ACCEPTED_4
    await until(lambda: broker.stats.messages_in == 100)
    peer.send(frame(PINGREQ))
    assert await peer.mqtt(2) == PINGRESP
    await peer.close()


# Sockets, in shares by address


@pytest.fixture(params=["tcp", "tls", "ws", "wss"])
async def listening(request, start, authority):
    """A listener of each kind that has room for ten; its broker, its port, and how a client logs in."""
    broker, pair = start(half_open=10, half_open_per_address=8, connect_timeout_s=30), authority.issue("server")
    files = {"cert": pair.cert, "key": pair.key}
    kind, context = request.param, authority.client_context()
    if kind == "tcp":
        port = await broker.listen_tcp("127.0.0.1", 0)
    elif kind == "tls":
        port = await broker.listen_tls("127.0.0.1", 0, **files)
    else:
        port = await broker.listen_websocket("127.0.0.1", 0, tls=TlsFiles(**files) if kind == "wss" else None)
    options = {"ssl": context} if kind in ("tls", "wss") else {}

    async def log_in(client_id: str, **where) -> Peer:
        if kind in ("tcp", "tls"):
            peer = await Peer.open(port, **options, **where)
            assert await peer.login(client_id) == ACCEPTED_4
            return peer
        upgraded = await WebSocketPeer.upgrade(port, **options, **where)
        upgraded.send(frame(connect(client_id)))
        assert await upgraded.mqtt(4) == ACCEPTED_4
        return upgraded

    return broker, port, log_in


async def test_silent_sockets_of_one_address_close_a_port_to_nobody(listening, dial):
    broker, port, log_in = listening
    crowd = [await dial(port, local_addr=("127.0.0.2", 0)) for _ in range(40)]
    half_open = broker.core.admission.half_open
    await until(lambda: broker.stats.half_open_ended == 32)
    assert half_open.count == 8
    honest = [await log_in(f"honest {n}") for n in range(5)]
    neighbour = await log_in("neighbour", local_addr=("127.0.0.2", 0))
    assert broker.stats.limited_half_open == 0
    assert broker.stats.clients == 6
    for each in (*honest, neighbour, *crowd):
        await each.close()
    await until(lambda: half_open.count == 0)
    await until(lambda: broker.core.admission.sockets == 0)


async def test_silent_sockets_of_many_addresses_close_a_port_to_nobody(listening, dial):
    broker, port, log_in = listening
    for n in range(40):
        await dial(port, local_addr=(f"127.0.0.{2 + n}", 0))
    await until(lambda: broker.stats.half_open_ended == 30)
    honest = [await log_in(f"honest {n}") for n in range(5)]
    assert broker.core.admission.half_open.count <= 10
    assert broker.stats.limited_half_open == 0
    for each in honest:
        await each.close()


async def test_sockets_are_bounded(start, dial):
    """Beyond, those that haven't logged in make room; clients don't, and then nobody else gets in."""
    broker = start(sockets=6)
    port, other = [await broker.listen_tcp("127.0.0.1", 0) for _ in range(2)]
    for _ in range(20):
        await dial(port, local_addr=("127.0.0.2", 0))
    await until(lambda: broker.stats.half_open_ended == 14)
    assert broker.core.admission.sockets == 6
    clients = []
    for n in range(6):
        clients.append(await dial(other))
        assert await clients[-1].login(f"c{n}") == ACCEPTED_4
    assert broker.core.admission.sockets == 6
    assert await (await dial(port)).ended()
    assert broker.stats.limited_half_open == 1
    await clients[0].close()
    await until(lambda: broker.core.admission.sockets == 5)
    assert await (await dial(port)).login("late") == ACCEPTED_4


async def test_those_who_ask_are_not_put_out_for_equals(start, dial):
    """Many terminals that come back at the same time, each from its own address, don't push each other out."""
    broker = start(half_open=5)
    broker.hooks.gate = asyncio.Event()
    port = await broker.listen_tcp("127.0.0.1", 0)
    peers = [await dial(port, local_addr=(f"127.0.0.{2 + n}", 0)) for n in range(5)]
    for n, peer in enumerate(peers):
        peer.send(connect(f"c{n}"))
    await until(lambda: len(broker.hooks.requests) == 5)
    assert await (await dial(port)).ended()
    assert (broker.stats.limited_half_open, broker.stats.half_open_ended) == (1, 0)
    broker.hooks.gate.set()
    assert [await peer.receive() for peer in peers] == [ACCEPTED_4] * 5


# The counting itself


def counted(address: str) -> Counted:
    return Counted(address, 0.0)


def test_shares_of_addresses():
    """An IPv6 customer has a /64 of addresses, and one share."""
    peers = HalfOpenPeers()
    for n in range(5):
        peers.add(counted(str(ipaddress.IPv6Address((0x20010DB8 << 96) + n))))
    peers.add(counted("2001:db8:0:1::1"))
    assert peers.count_of("2001:db8::/64") == 5
    assert peers.next_to_go("192.0.2.1").share == "2001:db8::/64"


def test_who_gives_way():
    peers = HalfOpenPeers()
    first, second, third = counted("192.0.2.1"), counted("192.0.2.1"), counted("192.0.2.2")
    assert peers.next_to_go("192.0.2.9") is None
    for peer in (third, first, second):
        peers.add(peer)
    assert peers.next_to_go("192.0.2.9") is first
    peers.on_connect(first)
    assert peers.next_to_go("192.0.2.9") is second
    peers.on_connect(second)
    assert peers.next_to_go("192.0.2.9") is second  # the latest of two; there is one from this address
    assert peers.next_to_go("192.0.2.1") is None
    peers.remove(first)
    assert peers.next_to_go("192.0.2.9") is third  # of equals one that is silent
    peers.hold(third, 10)
    peers.hold(second, 1_000)
    assert peers.largest_holder() is second
    for peer in (second, third):
        peers.remove(peer)
    assert (peers.count, peers.held_bytes) == (0, 0)


def test_the_cost_does_not_grow_with_the_addresses():
    """Room is made for 20,000 peers in a table of 20,000 addresses in a fraction of a second."""
    peers, held = HalfOpenPeers(), []
    for n in range(20_000):
        peers.add(counted(f"10.{n >> 16}.{n >> 8 & 255}.{n & 255}"))
    set_aside()
    began_s = time.thread_time()
    for n in range(20_000):
        gone = peers.next_to_go("192.0.2.1")
        assert gone is not None
        peers.remove(gone)
        held.append(counted(f"11.{n >> 16}.{n >> 8 & 255}.{n & 255}"))
        peers.add(held[-1])
        peers.hold(held[-1], n + 1)
        peers.hold(peers.largest_holder(), 0)
    assert time.thread_time() - began_s < 2
    assert peers.count == 20_000
