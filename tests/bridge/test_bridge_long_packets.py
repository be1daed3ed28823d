"""What paho reads of a packet that is longer than it may be: its beginning, and the length of the rest."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from random import Random

import pytest

from terrazzo_adapters.bridge.long_packets import LongPackets

MOST = 1_000


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    near, far = socket.socketpair()
    yield near, far
    near.close()
    far.close()


def read(sock: socket.socket, size: int) -> tuple[bytes, int]:
    """As paho reads a packet of so many bytes: what it has kept, and the sum of the lengths."""
    kept, left = bytearray(), size
    while left:
        data = sock.recv(left)
        left -= len(data)
        kept += data
    return bytes(kept), size - left


def test_packets_come_out_whole_or_cut_off_whatever_their_lengths(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    packets, random = LongPackets(MOST), Random(3)
    packets.bound(near)
    for number in range(300):
        body = random.randbytes(random.choice((1, 2, 999, 1_000, 1_001, 1_002, random.randrange(1, 30_000))))
        far.sendall(b"\x30" + body)
        assert near.recv(1) == b"\x30", f"packet {number} begins where the one before it ended"
        assert read(near, len(body)) == (body[:MOST], len(body))
        assert packets.kept == 0


def test_a_new_connection_begins_anew(pair: tuple[socket.socket, socket.socket]) -> None:
    near, far = pair
    packets = LongPackets(MOST)
    packets.bound(near)
    far.sendall(bytes(5_000))
    near.recv(100_000)
    assert packets.kept == MOST
    again, other = socket.socketpair()
    with again, other:
        packets.bound(again)
        other.sendall(b"\x30" + bytes(20))
        assert again.recv(1) == b"\x30"
        assert read(again, 20) == (bytes(20), 20)
