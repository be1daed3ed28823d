"""A simulated network: connections whose bytes arrive late, in pieces, after a standstill or never.

A connection is TCP's: in order and without loss until it ends. What is lost, doubled and reordered above it comes of
connections that end or stand still with packets under way, and of clients that send again.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

_DELAY_S = (0.0005, 0.03)
_HIGH_WATER = 64 << 10


class Timers(Protocol):
    """What has things done later, over the lives of the platform."""

    def later(self, delay_s: float, work: Callable[[], None]) -> None:
        """Does it so many seconds from now."""

    @property
    def now_s(self) -> float:
        """Seconds."""


class Peer(Protocol):
    """The client's side of a connection."""

    def on_bytes(self, link: Link, data: bytes) -> None:
        """What the server said."""

    def on_lost(self, link: Link) -> None:
        """The connection is over."""


class Pipe:
    """One way of a connection; ``take`` gets the bytes, None: the end."""

    def __init__(self, timers: Timers, chance: random.Random, take: Callable[[bytes | None], None]) -> None:
        self._timers, self._chance, self._take = timers, chance, take
        self._under_way: deque[tuple[float, bytes | None]] = deque()
        self._last_s = 0.0
        self.held = 0  # reasons for a standstill
        self.size = 0

    def push(self, data: bytes | None) -> None:
        """Sends bytes, perhaps in two pieces."""
        cut = self._chance.randrange(1, len(data)) if data and len(data) > 1 and self._chance.random() < 0.2 else 0
        for piece in (data[:cut], data[cut:]) if data and cut else (data,):
            self._last_s = max(self._last_s, self._timers.now_s + self._chance.uniform(*_DELAY_S))
            self._under_way.append((self._last_s, piece))
            self.size += len(piece or b"")
            self._timers.later(self._last_s - self._timers.now_s, self.pump)

    def pump(self) -> None:
        """Hands over what has arrived."""
        while self._under_way and not self.held and self._under_way[0][0] <= self._timers.now_s + 1e-9:
            data = self._under_way.popleft()[1]
            self.size -= len(data or b"")
            self._take(data)

    def lose(self) -> None:
        """Loses what is under way."""
        self._under_way.clear()
        self.size = 0


class Link:
    """A connection of a client to the server, from the client's side."""

    def __init__(self, timers: Timers, chance: random.Random, peer: Peer) -> None:
        self._peer = peer
        self.to_server = Pipe(timers, chance, self._at_server)
        self.to_client = Pipe(timers, chance, self._at_client)
        self.transport = SimTransport(self)
        self.is_open = True  # as the client sees it

    def connect(self, loop: asyncio.AbstractEventLoop, factory: Callable[[], Any]) -> None:
        """Has the server accept it."""
        protocol = factory()
        self.transport.begin(loop, protocol)
        protocol.connection_made(self.transport)

    def send(self, data: bytes) -> None:
        """The client's bytes."""
        if self.is_open:
            self.to_server.push(data)

    def close(self) -> None:
        """The client closes: what it sent arrives before the end."""
        if self.is_open:
            self.is_open = False
            self.to_client.lose()
            self.to_server.push(None)

    def cut(self, *, server_knows: bool = True) -> None:
        """Both sides lose it with all that is under way; without ``server_knows`` the server goes on as if it stood."""
        was_open, self.is_open = self.is_open, False
        self.to_server.lose()
        self.to_client.lose()
        if server_knows:
            self.transport.lose(ConnectionResetError("cut"))
        else:
            self.to_server.held += 1
            self.to_client.held += 1
        if was_open:
            self._peer.on_lost(self)

    def stall(self, change: int) -> None:
        """Stands still (1), or goes on (-1)."""
        for pipe in (self.to_server, self.to_client):
            pipe.held += change
            pipe.pump()

    def _at_server(self, data: bytes | None) -> None:
        self.transport.arrive(data)

    def _at_client(self, data: bytes | None) -> None:
        if not self.is_open:
            return
        if data is None:
            self.is_open = False
            self._peer.on_lost(self)
        else:
            self._peer.on_bytes(self, data)


class SimTransport(asyncio.Transport):
    """The server's side of a link."""

    def __init__(self, link: Link) -> None:
        super().__init__({"peername": ("10.0.0.1", 50_000)})
        self._link = link
        self._is_closing = self._is_paused = self._is_writing_paused = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._protocol: Any = None

    def begin(self, loop: asyncio.AbstractEventLoop, protocol: Any) -> None:
        """Is accepted."""
        self._loop, self._protocol = loop, protocol

    def arrive(self, data: bytes | None) -> None:
        """Bytes of the client, or its end."""
        if self._is_closing or self._is_dead():
            return
        if data is None:
            self.lose(None)
        else:
            self._protocol.data_received(data)

    def _is_dead(self) -> bool:
        return self._loop is None or bool(getattr(self._loop, "is_dead", False))

    def lose(self, error: Exception | None) -> None:
        """Tells the server that it is over."""
        if not self._is_closing and not self._is_dead():
            self._is_closing = True
            assert self._loop is not None
            self._loop.call_soon(self._protocol.connection_lost, error)

    def write(self, data: Any) -> None:
        """Sends."""
        if not self._is_closing:
            self._link.to_client.push(bytes(data))
            if self._link.to_client.size > _HIGH_WATER and not self._is_writing_paused:
                self._is_writing_paused = True
                self._protocol.pause_writing()
                self._look_again()

    def _look_again(self) -> None:
        if self._is_closing or self._loop is None:
            return
        if self._link.to_client.size > _HIGH_WATER // 4:
            self._loop.call_later(0.05, self._look_again)
        else:
            self._is_writing_paused = False
            self._protocol.resume_writing()

    def writelines(self, list_of_data: Any) -> None:
        """Sends all."""
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """What was written arrives before the end."""
        if not self._is_closing:
            self._link.to_client.push(None)
            self.lose(None)

    def abort(self) -> None:
        """Ends it at once."""
        if not self._is_closing:
            self._link.to_client.lose()
            self._link.to_client.push(None)
            self.lose(None)

    def is_closing(self) -> bool:
        """Whether it is over."""
        return self._is_closing

    def can_write_eof(self) -> bool:
        """Not here."""
        return False

    def pause_reading(self) -> None:
        """The server takes no more."""
        if not self._is_paused:
            self._is_paused = True
            self._link.to_server.held += 1

    def resume_reading(self) -> None:
        """The server takes more."""
        if self._is_paused:
            self._is_paused = False
            self._link.to_server.held -= 1
            assert self._loop is not None
            self._loop.call_soon(self._link.to_server.pump)

    def is_reading(self) -> bool:
        """Whether the server takes more."""
        return not self._is_paused

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """They are fixed here."""

    def get_write_buffer_size(self) -> int:
        """What is under way."""
        return self._link.to_client.size

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Hands it on."""
        self._protocol = protocol

    def get_protocol(self) -> asyncio.BaseProtocol:
        """Who has it."""
        protocol: asyncio.BaseProtocol = self._protocol
        return protocol
