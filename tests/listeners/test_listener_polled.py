"""Sockets that the broker looks at by itself: all bytes in their order, both ways, and nothing is left behind."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import socket
import sys
import termios
from collections.abc import Iterator
from typing import Any

import pytest

from terrazzo_broker import Broker, BrokerSettings
from terrazzo_broker.admission.limits import Admission
from terrazzo_broker.connections import Connections
from terrazzo_broker.listeners.polled_transport import HIGH_BYTES, PolledTransport
from terrazzo_broker.listeners.poller import Poller
from terrazzo_broker.standalone import OpenHooks
from terrazzo_broker.stats import Stats
from waiting import until


class Noting(asyncio.Protocol):
    """A protocol that keeps what it is told."""

    def __init__(self) -> None:
        self.transport: PolledTransport
        self.came = b""
        self.told: list[str] = []
        self.ended: list[Exception | None] = []

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.came += data

    def eof_received(self) -> None:
        self.told.append("end of input")

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.append(exc)


class Stand:
    """A poller, and pairs of a protocol and its peer's socket."""

    def __init__(self) -> None:
        stats, settings = Stats(), BrokerSettings()
        admission = Admission(settings, stats, lambda: 0.0)
        self.connections = Connections(stats, admission, connect_timeout_s=1.0)
        self.poller = Poller(self.connections)
        self.peers: list[socket.socket] = []

    def open(self, protocol: Noting | None = None) -> tuple[Noting, socket.socket]:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            peer = socket.create_connection(listening.getsockname())
            ours, _ = listening.accept()
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 32_000)
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16_000)
        for each in (ours, peer):
            each.setblocking(False)
        self.peers.append(peer)
        protocol = protocol or Noting()
        self.poller.open(ours.detach(), protocol)
        return protocol, peer


@pytest.fixture
async def stand() -> Any:
    made = Stand()
    yield made
    made.poller.close()
    for peer in made.peers:
        peer.close()
    await asyncio.sleep(0)


def pieces() -> Iterator[bytes]:
    """Of many sizes, each other than those before it."""
    for number in range(200):
        yield number.to_bytes(2, "big") * (1 + number * number * 7 % 900)


async def taken_from(peer: socket.socket, count: int) -> bytes:
    """So many bytes, slowly."""
    loop, came = asyncio.get_running_loop(), b""
    while len(came) < count:
        came += await loop.sock_recv(peer, 10_000)
    return came


async def test_what_is_written_comes_in_its_order_and_the_writer_is_held_up_meanwhile(stand: Stand) -> None:
    noting, peer = stand.open()
    sent = b"".join(pieces())
    for piece in pieces():
        noting.transport.write(piece)
    assert noting.told == ["pause"]
    assert HIGH_BYTES < noting.transport.get_write_buffer_size() < len(sent)
    assert await taken_from(peer, len(sent)) == sent
    await until(lambda: noting.told == ["pause", "resume"])
    assert noting.transport.get_write_buffer_size() == 0


async def test_pieces_are_written_in_their_order_without_being_joined(stand: Stand) -> None:
    noting, peer = stand.open()
    sent = b"".join(pieces())
    many = list(pieces())
    noting.transport.writelines(many[:3])  # these are taken at once
    assert noting.transport.get_write_buffer_size() == 0
    noting.transport.writelines(many[3:120])  # some of these, and more of them than one call of the system takes
    noting.transport.write(many[120])
    noting.transport.writelines(many[121:])
    assert noting.told == ["pause"]
    assert HIGH_BYTES < noting.transport.get_write_buffer_size() < len(sent)
    assert await taken_from(peer, len(sent)) == sent
    await until(lambda: noting.told == ["pause", "resume"])


async def test_pieces_for_a_peer_that_has_gone_end_the_connection(stand: Stand) -> None:
    noting, peer = stand.open()
    peer.close()
    await until(lambda: bool(noting.told))
    noting.transport.writelines([b"x" * 5_000] * 3)
    await until(lambda: bool(noting.ended))
    assert noting.transport.is_closing()


async def test_what_fills_a_read_is_read_on_at_once(stand: Stand) -> None:
    noting, peer = stand.open()
    came: list[int] = []
    noting.data_received = lambda data: came.append(len(data))  # type: ignore[method-assign]
    noting.transport.pause_reading()
    with socket.socket(fileno=os.dup(noting.transport.descriptor)) as ours:
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 200_000)
        await asyncio.get_running_loop().sock_sendall(peer, bytes(120_000))
        await until(lambda: waiting_bytes(ours) == 120_000)
    noting.transport.resume_reading()
    await until(lambda: sum(came) == 120_000)
    assert came == [120_000]


def waiting_bytes(sock: socket.socket) -> int:
    """What can be read."""
    return int.from_bytes(fcntl.ioctl(sock, termios.FIONREAD, bytes(4)), sys.byteorder)


async def test_what_is_read_comes_in_its_order_with_pauses_between(stand: Stand) -> None:
    noting, peer = stand.open()
    loop, sent = asyncio.get_running_loop(), b"".join(pieces())
    sending = loop.create_task(loop.sock_sendall(peer, sent))
    while len(noting.came) < len(sent):
        known = len(noting.came)
        await until(lambda known=known: len(noting.came) > known)
        noting.transport.pause_reading()
        await asyncio.sleep(0)
        before = len(noting.came)
        await asyncio.sleep(0.001)
        assert len(noting.came) == before
        noting.transport.resume_reading()
    await sending
    assert noting.came == sent


async def test_who_is_not_read_costs_nothing_when_its_peer_goes(stand: Stand, monkeypatch: Any) -> None:
    noting, peer = stand.open()
    looks = 0

    def counted(*arguments: int) -> None:
        nonlocal looks
        looks += 1
        begin()

    begin = stand.connections.begin_reading
    monkeypatch.setattr(stand.connections, "begin_reading", counted)
    noting.transport.pause_reading()
    peer.sendall(b"x")
    peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset
    peer.close()
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert looks <= 3
    assert not noting.ended
    noting.transport.resume_reading()
    await until(lambda: noting.ended)
    assert isinstance(noting.ended[0], ConnectionResetError)


async def test_what_waits_is_written_before_the_end(stand: Stand) -> None:
    noting, peer = stand.open()
    sent = bytes(300_000)
    noting.transport.write(sent)
    noting.transport.close()
    assert noting.transport.is_closing()
    assert not noting.ended
    assert await taken_from(peer, len(sent)) == sent
    assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""
    await until(lambda: noting.ended == [None])
    noting.transport.close()
    noting.transport.abort()
    await asyncio.sleep(0)
    assert noting.ended == [None]


async def test_half_of_it_ends_behind_what_waits(stand: Stand) -> None:
    noting, peer = stand.open()
    sent = bytes(300_000)
    noting.transport.write(sent)
    noting.transport.write_eof()
    assert await taken_from(peer, len(sent)) == sent
    assert await asyncio.get_running_loop().sock_recv(peer, 1) == b""
    peer.sendall(b"still heard")
    await until(lambda: noting.came == b"still heard")
    peer.close()
    await until(lambda: noting.ended == [None])
    assert noting.told[-1] == "end of input"


async def test_what_waits_is_lost_with_an_abort(stand: Stand) -> None:
    noting, _ = stand.open()
    descriptor = noting.transport.descriptor
    noting.transport.write(bytes(1 << 20))
    noting.transport.abort()
    assert not noting.ended  # its protocol is in the middle of something
    await until(lambda: noting.ended == [None])
    assert noting.transport.get_write_buffer_size() == 0
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)
    noting.transport.write(b"into nothing")
    noting.transport.resume_reading()


async def test_a_fault_ends_one_alone(stand: Stand) -> None:
    class Faulty(Noting):
        def data_received(self, data: bytes) -> None:
            raise ValueError("a fault")

    (faulty, first), (noting, second) = stand.open(Faulty()), stand.open()
    first.sendall(b"a")
    second.sendall(b"b")
    await until(lambda: faulty.ended and noting.came == b"b")
    assert isinstance(faulty.ended[0], ValueError)
    assert not noting.ended


async def test_what_a_read_is_answered_with_leaves_at_its_end(stand: Stand) -> None:
    """Not in the next turn of the loop, and not before the others are read."""
    order: list[str] = []

    class Answering(Noting):
        dirty = False

        def data_received(self, data: bytes) -> None:
            order.append("read")
            stand.connections.flush_soon(self)  # type: ignore[arg-type]
            asyncio.get_running_loop().call_soon(order.append, "turn")

        def flush(self) -> None:
            order.append("flush")

    for _ in range(2):
        stand.open(Answering())
    for peer in stand.peers:
        peer.sendall(b"x")
    await until(lambda: len(order) == 6)
    assert order == ["read", "read", "flush", "flush", "turn", "turn"]


async def test_without_descriptors_it_accepts_later(monkeypatch: Any) -> None:
    broker, failed = Broker(BrokerSettings(), OpenHooks(anonymous=True)), 0
    accept = socket.socket.accept

    def fails_twice(self: socket.socket) -> Any:
        nonlocal failed
        if failed < 2:
            failed += 1
            raise OSError(errno.EMFILE, "too many open files")
        return accept(self)

    monkeypatch.setattr("terrazzo_broker.listeners.polled_listener.PAUSE_S", 0.01)
    monkeypatch.setattr(socket.socket, "accept", fails_twice)
    port = await broker.listen_tcp("127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"\x10\x0d\0\x04MQTT\x04\x02\0\0\0\1c")
    assert await reader.readexactly(4) == b"\x20\x02\0\0"
    assert failed == 2
    writer.close()
    await broker.close(1.0)


async def _serve_twenty() -> int:
    """A broker's life with twenty clients, half of whom go before it does; the descriptors that are open behind it."""
    broker = Broker(BrokerSettings(), OpenHooks(anonymous=True))
    port = await broker.listen_tcp("127.0.0.1", 0)
    sides = [await asyncio.open_connection("127.0.0.1", port) for _ in range(20)]
    await until(lambda: broker.stats.connections == 20)
    for _, writer in sides[:10]:
        writer.close()
    await until(lambda: broker.stats.connections == 10)
    await broker.close(0.1)
    for _, writer in sides[10:]:
        writer.close()
    await until(lambda: broker.stats.connections == 0)
    await asyncio.sleep(0.01)
    return len(os.listdir("/proc/self/fd"))


async def test_no_descriptor_is_left_behind() -> None:
    first = await _serve_twenty()  # the loop opens some of its own
    assert await _serve_twenty() <= first
