"""How many may come in and how fast: each limit tells the peer, counts, and leaves the others alone."""

from __future__ import annotations

import asyncio
import errno
import socket
import time

import pytest
from listener_stand import ACCEPTED_4, PINGREQ, PINGRESP, connect, publish
from websocket_peer import WebSocketPeer, frame

from terrazzo_broker import BrokerSettings
from waiting import until

UNAVAILABLE_4 = b"\x20\x02\x00\x03"


def reason_5(connack: bytes) -> int:
    """The reason code of a 5.0 CONNACK."""
    assert connack[0] == 0x20
    return connack[3]


async def test_as_many_connections_as_there_may_be(start, dial):
    broker = start(connections=2)
    port = await broker.listen_tcp("127.0.0.1", 0)
    peers = [await dial(port) for _ in range(4)]
    assert [await peer.login(f"c{index}") for index, peer in enumerate(peers[:2])] == [ACCEPTED_4] * 2
    assert await peers[2].login("c2") == UNAVAILABLE_4
    assert await peers[2].ended()
    assert reason_5(await peers[3].login("c3", version=5)) == 0x97
    assert await peers[3].ended()
    assert (broker.stats.limited_connections, broker.stats.connects_refused) == (2, 2)
    await peers[0].close()
    await until(lambda: broker.stats.clients == 1)
    assert await (await dial(port)).login("c4") == ACCEPTED_4


async def test_a_full_broker_lets_a_client_come_back(start, dial):
    """Its old connection may be half dead: it is taken over, and the number stays."""
    broker = start(connections=1)
    port = await broker.listen_tcp("127.0.0.1", 0)
    old, new = await dial(port), await dial(port)
    assert [await old.login("c"), await new.login("c")] == [ACCEPTED_4] * 2
    assert await old.ended()
    assert broker.stats.clients == 1


async def test_connects_a_second_by_listener(start, dial):
    """They go at that pace on each listener; who comes faster waits."""
    broker = start(connects_per_second=10, sweep_interval_s=60)
    port, other = [await broker.listen_tcp("127.0.0.1", 0) for _ in range(2)]
    began_s = time.monotonic()
    peers = [await dial(port) for n in range(6)]
    for n, peer in enumerate(peers):
        peer.send(connect(f"c{n}"))
    assert await peers[0].receive() == ACCEPTED_4
    assert await (await dial(other)).login("c6") == ACCEPTED_4
    assert len(broker.hooks.requests) < 6
    assert [await peer.receive() for peer in peers[1:]] == [ACCEPTED_4] * 5
    assert time.monotonic() - began_s > 0.45
    assert broker.stats.connects_delayed == 5
    assert broker.stats.limited_connect_rate == 0


def seen(broker) -> int:
    """CONNECTs that were let through, wait or were refused."""
    return len(broker.hooks.requests) + broker.stats.connects_delayed + broker.stats.limited_connect_rate


async def test_more_connects_than_can_have_their_turn_in_time(start, dial):
    broker = start(connects_per_second=2, connect_timeout_s=1)
    port = await broker.listen_tcp("127.0.0.1", 0)
    peers = [await dial(port) for _ in range(5)]
    for n, peer in enumerate(peers):
        peer.send(connect(f"c{n}", version=5 if n % 2 else 4))
        await until(lambda n=n: seen(broker) > n)
    assert await peers[4].receive() == UNAVAILABLE_4
    assert reason_5(await peers[3].receive()) == 0x9F
    assert broker.stats.limited_connect_rate == 2


async def test_no_pace(start, dial):
    port = await start(connects_per_second=0).listen_tcp("127.0.0.1", 0)
    assert [await (await dial(port)).login(f"c{n}") for n in range(60)] == [ACCEPTED_4] * 60


@pytest.mark.parametrize("sent", [b"", connect("c")[:9]])
async def test_a_login_has_a_deadline(start, dial, sent):
    broker = start(connect_timeout_s=0.2)
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0))
    peer.send(sent)
    assert await peer.ended()
    assert broker.stats.connect_timeouts == 1


async def test_half_open_connections_by_address(start, dial):
    broker = start(half_open_per_address=3)
    port = await broker.listen_tcp("127.0.0.1", 0)
    crowd = [await dial(port) for _ in range(3)]
    await until(lambda: broker.stats.connections == 3)
    crowd.append(await dial(port))
    assert await crowd.pop(0).ended()  # the one that has been silent for longest makes room
    assert broker.stats.half_open_ended == 1
    assert await crowd[0].login("c0") == ACCEPTED_4  # who has logged in doesn't count
    late = await dial(port)
    assert await late.login("late") == ACCEPTED_4
    await crowd[1].close()  # nor who has gone
    await until(lambda: broker.stats.connections == 3)
    assert await (await dial(port)).login("later") == ACCEPTED_4
    await crowd[2].close()
    await until(lambda: broker.stats.connections == 3)
    assert broker.core.admission.half_open.count == 0


async def test_half_open_tls_handshakes_count(start, dial, authority):
    broker, pair = start(half_open_per_address=2, connect_timeout_s=1.0), authority.issue("server")
    port = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key)
    first, _, _ = [await dial(port) for _ in range(3)]
    assert await first.ended()
    assert broker.stats.half_open_ended == 1
    await until(lambda: broker.stats.handshakes_failed == 2)
    for name in ("a", "b", "c"):
        peer = await dial(port, ssl=authority.client_context())
        assert await peer.login(name) == ACCEPTED_4
    assert broker.core.admission.half_open.count == 0


async def test_one_deadline_for_the_handshake_and_the_login(start, authority, monkeypatch):
    """It counts from the accepting of the socket, not once more from the end of the TLS handshake."""
    broker, pair, now_s = start(connect_timeout_s=30), authority.issue("server"), 1000.0
    monkeypatch.setattr(broker.core, "clock", lambda: now_s)
    port = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key)
    plain = socket.create_connection(("127.0.0.1", port), timeout=5)
    await until(lambda: broker.core.admission.sockets == 1)
    now_s += 20
    reader, writer = await asyncio.open_connection(
        sock=plain, ssl=authority.client_context(), server_hostname="localhost"
    )
    await until(lambda: broker.stats.connections == 1)
    now_s += 11
    assert await asyncio.wait_for(reader.read(), 5) == b""
    assert broker.stats.connect_timeouts == 1
    writer.close()


async def test_early_packets_dont_stop_the_clock(start, dial, monkeypatch):
    """Who fills its buffer while the hooks decide isn't read, and has its deadline all the same."""
    broker, now_s = start(connect_timeout_s=30), 1000.0
    monkeypatch.setattr(broker.core, "clock", lambda: now_s)
    broker.hooks.gate = asyncio.Event()
    peer = await dial(await broker.listen_tcp("127.0.0.1", 0))
    peer.send(connect("c"))
    await until(lambda: broker.hooks.requests)
    peer.send(publish("t", bytes(300_000)))
    await until(lambda: broker.core.admission.half_open.held_bytes > 20_000)
    now_s += 31
    await until(lambda: broker.stats.connect_timeouts == 1)
    broker.hooks.gate.set()
    await until(lambda: broker.stats.connections == 0)


async def test_half_open_upgrades_count(start, dial):
    broker = start(half_open_per_address=2, connect_timeout_s=1.0)
    port = await broker.listen_websocket("127.0.0.1", 0)
    oldest = await dial(port)
    idle = await dial(port)
    assert not oldest.reader.at_eof()
    upgraded = await WebSocketPeer.upgrade(port)
    assert await oldest.ended()
    upgraded.send(frame(connect("c")))
    assert await upgraded.mqtt(4) == ACCEPTED_4
    second = await WebSocketPeer.upgrade(port)
    second.send(frame(connect("d")))
    assert await second.mqtt(4) == ACCEPTED_4
    await idle.close()
    await until(lambda: broker.core.admission.half_open.count == 0)
    assert broker.stats.half_open_ended >= 1
    for each in (upgraded, second):
        await each.close()


async def test_half_open_while_the_hooks_decide(start, dial):
    broker = start(half_open_per_address=2)
    broker.hooks.gate = asyncio.Event()
    port = await broker.listen_tcp("127.0.0.1", 0)
    peers = [await dial(port) for _ in range(2)]
    for index, peer in enumerate(peers):
        peer.send(connect(f"c{index}"))
    await until(lambda: len(broker.hooks.requests) == 2)
    assert await (await dial(port)).ended()
    broker.hooks.gate.set()
    assert [await peer.receive() for peer in peers] == [ACCEPTED_4] * 2
    assert await (await dial(port)).login("late") == ACCEPTED_4


async def test_out_of_file_descriptors(start, dial, authority, monkeypatch):
    """Accepting fails for a while; the listener goes on when it works again."""
    broker, pair = start(), authority.issue("server")
    port = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key)
    peer = await dial(port, ssl=authority.client_context())
    loop, failures = asyncio.get_running_loop(), []
    if not hasattr(loop, "__dict__"):
        pytest.skip("uvloop's methods can't be replaced")
    accept = loop.sock_accept

    async def failing(listening):
        if len(failures) < 2:
            failures.append(1)
            raise OSError(errno.EMFILE, "Too many open files")
        return await accept(listening)

    monkeypatch.setattr(loop, "sock_accept", failing)
    assert await peer.login("c") == ACCEPTED_4
    first = await dial(port, ssl=authority.client_context())  # the accept that was already waiting
    second = await dial(port, ssl=authority.client_context())
    assert [await first.login("d"), await second.login("e")] == [ACCEPTED_4] * 2
    assert len(failures) == 2
    second.send(PINGREQ)
    assert await second.receive() == PINGRESP


@pytest.mark.parametrize(
    "name", ["half_open_per_address", "half_open", "half_open_bytes", "connections", "connect_timeout_s"]
)
def test_a_limit_of_nothing_is_refused(name):
    with pytest.raises(ValueError, match=f"^{name}: 0 is not"):
        BrokerSettings(**{name: 0})
