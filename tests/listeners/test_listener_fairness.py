"""A slow consumer slows nobody, a fast publisher starves nobody, and neither fills the memory; on every transport."""

from __future__ import annotations

import asyncio
import itertools
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from listener_stand import ACCEPTED_4, PINGREQ, PINGRESP, Peer, connect, publish, subscribe
from websocket_peer import WebSocketPeer, frame

from terrazzo_broker import TlsFiles
from waiting import until

PAYLOAD = bytes(8_000)
ROUNDS, IN_A_ROUND = 150, 16  # 19 MB
STANDING_S = 5.0  # a round that waits for the slow one waits for ever
TURN_BYTES = 640 << 10  # what is taken of one publisher before the others are looked at
TAKEN_BYTES = 40 << 20  # more than sixty of these
TURNS = 3  # that a ping may wait: far above what it takes, far below what starving looks like


class FramedPeer(WebSocketPeer):
    """A WebSocket that looks like a stream of packets."""

    def send(self, data: bytes) -> None:
        super().send(data if data.startswith(b"GET ") else frame(data))

    async def receive(self) -> bytes:
        """The next packet."""
        head = await self.mqtt(2)
        length, shift = head[1] & 127, 7
        while head[-1] > 127:
            head += await self.mqtt(1)
            length |= (head[-1] & 127) << shift
            shift += 7
        return head + await self.mqtt(length)


class Transport:
    """One listener of a broker, and how to reach it."""

    def __init__(self, kind: str, context: ssl.SSLContext) -> None:
        self.kind, self.context = kind, context
        self.port = 0

    async def listen(self, broker, files: TlsFiles) -> None:
        if self.kind == "tcp":
            self.port = await broker.listen_tcp("127.0.0.1", 0)
        elif self.kind == "tls":
            self.port = await broker.listen_tls("127.0.0.1", 0, cert=files.cert, key=files.key)
        else:
            self.port = await broker.listen_websocket("127.0.0.1", 0)

    async def open(self, client_id: str) -> Peer:
        """A client that has logged in."""
        if self.kind == "ws":
            peer: Peer = await FramedPeer.upgrade(self.port)
        else:
            peer = await Peer.open(self.port, ssl=self.context if self.kind == "tls" else None)
        assert await peer.login(client_id) == ACCEPTED_4
        return peer

    @contextmanager
    def flood(self, data: bytes, client_id: str) -> Iterator[None]:
        """A thread that logs in and then sends ``data`` as often as the broker takes it."""
        stop, blocks = threading.Event(), itertools.repeat(self._framed(data))

        def run() -> None:
            with self._connected() as sock:
                sock.sendall(self._framed(connect(client_id)))
                for block in blocks:
                    rest = memoryview(block)
                    while rest:
                        if stop.is_set():
                            return
                        try:
                            rest = rest[sock.send(rest) :]
                        except TimeoutError:
                            continue
                        except ConnectionError:
                            return  # the broker has had enough

        thread = threading.Thread(target=run, name=f"flood {client_id}", daemon=True)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join(5)
            assert not thread.is_alive()

    def _framed(self, data: bytes) -> bytes:
        if self.kind != "ws":
            return data
        return b"".join(frame(data[at : at + 16_384]) for at in range(0, len(data), 16_384))

    def _connected(self) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self.port), timeout=5)
        if self.kind == "tls":
            plain = self.context.wrap_socket(plain, server_hostname="localhost")
        if self.kind == "ws":
            plain.sendall(
                b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
                b"Sec-WebSocket-Protocol: mqtt\r\n\r\n"
            )
        plain.settimeout(0.2)
        return plain


@pytest.fixture(params=["tcp", "tls", "ws"])
def transport(request, authority) -> Transport:
    """Each kind in turn."""
    return Transport(request.param, authority.client_context())


@pytest.fixture
async def broker(start, transport, authority):
    """A broker with room for 1 MiB a slow client, listening on the transport."""
    broker, pair = start(queued_bytes=1 << 20), authority.issue("server")
    await transport.listen(broker, TlsFiles(cert=pair.cert, key=pair.key))
    return broker


def waiting_bytes(broker, client_id: str) -> int:
    """All that the broker holds for a client."""
    session = broker.sessions[client_id]
    connection = session.connection
    unacknowledged = sum(message.size for message in session.inflight.values() if message is not None)
    below = connection.transport.get_write_buffer_size()
    return connection.out_bytes + below + session.queued_bytes + unacknowledged


async def publish_to_all(publisher: Peer, reader: Peer, *, qos: int) -> int:
    """Publishes in rounds, each read to its end by ``reader`` before the next; the longest round in seconds."""
    longest_s = 0.0
    for _ in range(ROUNDS):
        began_s = time.perf_counter()
        publisher.send(b"".join(publish("t", PAYLOAD, qos=qos, packet_id=n + 1) for n in range(IN_A_ROUND)))
        for _ in range(IN_A_ROUND):
            packet = await reader.receive()
            assert packet[0] == 0x30 | qos << 1
            if qos:
                reader.send(b"\x40\x02" + packet[-len(PAYLOAD) - 2 : -len(PAYLOAD)])
        for _ in range(IN_A_ROUND if qos else 0):
            assert (await publisher.receive())[0] == 0x40
        longest_s = max(longest_s, time.perf_counter() - began_s)
    return longest_s


@pytest.mark.parametrize("qos", [0, 1])
async def test_a_slow_consumer(broker, transport, qos):
    slow, fast, publisher = [await transport.open(name) for name in ("slow", "fast", "publisher")]
    for each in (slow, fast):
        each.send(subscribe("t", qos))
        assert (await each.receive())[0] == 0x90
    longest_s = await publish_to_all(publisher, fast, qos=qos)
    assert longest_s < STANDING_S
    held = waiting_bytes(broker, "slow")
    assert held < 3 << 20
    if not qos:
        assert held > 1 << 19  # it was slow indeed
        assert broker.stats.dropped["slow consumer"] > ROUNDS * IN_A_ROUND // 2
    slow.send(PINGREQ)
    received = 0
    while (packet := await slow.receive()) != PINGRESP:
        received += packet[0] & 0xF0 == 0x30
    if not qos:
        assert received + broker.stats.dropped["slow consumer"] == ROUNDS * IN_A_ROUND
    for each in (slow, fast, publisher):
        await each.close()


@pytest.mark.parametrize("qos", [0, 1])
async def test_fast_publishers(broker, transport, qos):
    data = b"".join(publish("flood", bytes(100), qos=qos, packet_id=n + 1) for n in range(500))
    quiet, taken = await transport.open("quiet"), []
    with transport.flood(data, "f1"), transport.flood(data, "f2"), transport.flood(data, "f3"):
        await until(lambda: broker.stats.clients == 4 and broker.stats.messages_in > 10_000, 20)
        before = broker.stats.messages_in
        for _ in range(25):
            asked = broker.stats.bytes_in
            quiet.send(PINGREQ)
            assert await quiet.receive() == PINGRESP
            taken.append(broker.stats.bytes_in - asked)
            await asyncio.sleep(0.005)  # to ask again and again while the flood goes on
        assert broker.stats.messages_in > before + 5_000  # they were fast indeed
    assert max(taken) < TURNS * 3 * TURN_BYTES, "they were served far more often"
    await until(lambda: broker.stats.clients == 1)
    await quiet.close()


async def test_turns_are_bounded(broker, transport):
    """However much a publisher has sent, a bounded part of it is taken before the others are looked at."""
    data, loop, turns = publish("flood", bytes(30_000)) * 30, asyncio.get_running_loop(), [0]
    taken = 0

    def count_turn() -> None:
        nonlocal taken
        turns.append(broker.stats.bytes_in - taken)
        taken = broker.stats.bytes_in
        if sum(turns) < TAKEN_BYTES:
            loop.call_soon(count_turn)

    with transport.flood(data, "f1"):
        loop.call_soon(count_turn)
        await until(lambda: sum(turns) >= TAKEN_BYTES, 30)
    assert max(turns) <= TURN_BYTES


async def test_publishers_that_read_no_acknowledgements(broker, transport):
    """What the broker owes them is bounded too: it stops reading from them, or drops them."""
    data = b"".join(publish("flood", b"", qos=1, packet_id=n + 1) for n in range(5000))
    quiet = await transport.open("quiet")
    with transport.flood(data, "f1"):
        await until(lambda: broker.stats.messages_in > 100_000, 20)
        highest = 0
        for _ in range(30):
            quiet.send(PINGREQ)
            assert await quiet.receive() == PINGRESP
            connection = broker.sessions["f1"].connection if "f1" in broker.sessions else None
            if connection is not None:
                highest = max(highest, connection.out_bytes + connection.transport.get_write_buffer_size())
            await asyncio.sleep(0.005)  # to ask again and again while the flood goes on
        assert highest < 3 << 20
    await quiet.close()
