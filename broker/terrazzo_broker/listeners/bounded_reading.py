"""Bounds what a peer may send over HTTP and WebSocket before it has logged in, ahead of aiohttp, which buffers more."""

from __future__ import annotations

import asyncio
from typing import Protocol, cast

from ..admission.half_open import Peer
from ..admission.limits import Admission
from .proxy_protocol import Address


class Visited(Protocol):
    """The listener whose sockets these are."""

    def new_handler(self) -> asyncio.Protocol:
        """What reads HTTP on one socket; it is handed the socket's transport and its bytes."""

    def on_connected(self, reading: BoundedReading) -> None:
        """Told of a socket that is set up."""

    def on_excess(self, reading: BoundedReading) -> None:
        """Told that a request head goes on beyond its bound."""

    def on_gone(self, reading: BoundedReading) -> None:
        """Told that a socket is closed, where that was before the login."""


class BoundedReading(asyncio.Protocol):
    """Hands what a socket brings on to a handler of HTTP; after the login it is out of the way.

    The handler is made when the first byte comes: who says nothing costs little, and leaves nothing for the garbage
    collector. Beyond ``head_bytes`` of a request head the listener is told. What comes early, behind the head, waits
    here, and the socket isn't read from then on.
    """

    __slots__ = (
        "_admission",
        "_early",
        "_handler",
        "_head",
        "_left",
        "_listener",
        "_passed",
        "deadline",
        "peer",
        "source",
        "transport",
    )

    def __init__(
        self, listener: Visited, peer: Peer, source: Address, *, admission: Admission, head_bytes: int
    ) -> None:
        self.peer = peer
        self.source = source
        self.transport: asyncio.Transport
        self.deadline: asyncio.TimerHandle | None = None  # of the upgrade; the listener's
        self._listener = listener
        self._handler: asyncio.Protocol | None = None
        self._admission = admission
        self._left = head_bytes
        self._head: bytearray | None = bytearray()  # what came until the upgrade
        self._passed = 0
        self._early = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer.on_logged_in = self._step_aside
        self._listener.on_connected(self)

    def on_upgrade(self, most_bytes: int) -> None:
        """Lets so many bytes through from now on, until the login."""
        self._left, self._head, self._passed = most_bytes, None, 0
        self._proceed()

    def _step_aside(self) -> None:
        assert self._handler is not None, "nobody logs in without a word"
        self.transport.set_protocol(self._handler)
        self._left = len(self._early)
        self._proceed()

    def _proceed(self) -> None:
        early, self._early = self._early, b""
        if early and not self.transport.is_closing():
            self.transport.resume_reading()
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        taken, early = data[: self._left], data[self._left :]
        self._left -= len(taken)
        self._passed += len(taken)
        if self._head is not None:
            self._head += taken
        if early:
            if self._head is not None and b"\r\n\r\n" not in self._head:
                return self._listener.on_excess(self)
            self._early += early
            self.transport.pause_reading()
        if self.peer.is_half_open:
            self._admission.hold(self.peer, self._passed + len(self._early))
        return self._hand_on(taken) if taken else None

    def _hand_on(self, data: bytes) -> None:
        if self._handler is None:
            self._handler = self._listener.new_handler()
            self._handler.connection_made(self.transport)
        self._handler.data_received(data)

    def eof_received(self) -> bool | None:
        return self._handler.eof_received() if self._handler is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        if self._handler is not None:
            self._handler.connection_lost(exc)
        self._listener.on_gone(self)

    def pause_writing(self) -> None:
        if self._handler is not None:
            self._handler.pause_writing()

    def resume_writing(self) -> None:
        if self._handler is not None:
            self._handler.resume_writing()
