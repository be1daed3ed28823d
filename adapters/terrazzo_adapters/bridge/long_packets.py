"""Keeps packets of a remote broker that are too long out of memory: paho would buffer up to 256 MiB of each.

paho asks a socket for all that a packet still lacks, and counts what it gets by its length. So of a packet that is
longer than it may be the first bytes are handed on, among them its topic, and of the rest nothing but its length: the
packet is read to its end, comes out cut off, and is refused by its size like any other.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

_AT_ONCE = 64 << 10  # bytes of a long packet that are read into memory


class _Counted(bytes):
    """The first of some bytes that were read; its length is that of all of them."""

    read = 0

    def __len__(self) -> int:
        return self.read


class LongPackets:
    """Bounds what is kept of each packet of one connection. ``most_bytes``: of a packet without its fixed header."""

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self.kept = 0  # of the long packet that is being read
        self._is_inside = False
        self._kinds: dict[type, type] = {}

    def bound(self, sock: socket.socket) -> None:
        """Has a connection's socket read by these rules from now on."""
        self.kept, self._is_inside = 0, False
        sock.__class__ = self._kind(type(sock))

    def _kind(self, kind: type) -> type:
        """Such sockets as this kind, but bounded."""
        if kind not in self._kinds:
            made = type(f"Bounded{kind.__name__}", (_Bounded, kind), {"__slots__": (), "packets": self})
            self._kinds[kind] = made
        return self._kinds[kind]

    def is_long(self, size: int) -> bool:
        """Whether what is read next, of which ``size`` bytes are to come, belongs to a long packet."""
        return self._is_inside or size > self.most_bytes

    def take(self, data: bytes, size: int) -> bytes:
        """What paho gets of ``data``, when ``size`` bytes of the packet were to come."""
        room = max(0, self.most_bytes - self.kept)
        self._is_inside = len(data) < size
        counted = _Counted(data[:room])
        counted.read = len(data)
        self.kept = self.kept + min(room, len(data)) if self._is_inside else 0
        return counted


class _Bounded(socket.socket if TYPE_CHECKING else object):  # type: ignore[misc]
    """A socket as ``LongPackets.bound`` makes it."""

    __slots__ = ()
    packets: LongPackets

    def recv(self, size: int, flags: int = 0) -> bytes:
        """As any socket's; ``size`` is what a packet still lacks."""
        is_long = self.packets.is_long(size)
        data: bytes = super().recv(min(size, _AT_ONCE) if is_long else size, flags)
        return self.packets.take(data, size) if is_long else data
