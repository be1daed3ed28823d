"""Bounds what a peer may send over HTTP and WebSocket before it has logged in, ahead of aiohttp, which buffers more."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from ..admission.half_open import Peer
from ..admission.limits import Admission


class BoundedReading(asyncio.Protocol):
    """Hands what a socket brings on to ``protocol``; after the login it is out of the way.

    Beyond ``head_bytes`` of a request head, ``on_excess`` is called. What comes early, behind the head, waits here, and
    the socket isn't read from then on.
    """

    def __init__(self, protocol: asyncio.Protocol, peer: Peer, admission: Admission, head_bytes: int) -> None:
        self.protocol = protocol
        self.on_excess: Callable[[], None] = _nothing_yet
        self._peer = peer
        self._admission = admission
        self._left = head_bytes
        self._head: bytearray | None = bytearray()  # what came until the upgrade
        self._passed = 0
        self._early = b""
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._peer.on_logged_in = self._step_aside
        self.protocol.connection_made(transport)

    def on_upgrade(self, most_bytes: int) -> None:
        """Lets so many bytes through from now on, until the login."""
        self._left, self._head, self._passed = most_bytes, None, 0
        self._proceed()

    def _step_aside(self) -> None:
        self._transport.set_protocol(self.protocol)
        self._left = len(self._early)
        self._proceed()

    def _proceed(self) -> None:
        early, self._early = self._early, b""
        if early and not self._transport.is_closing():
            self._transport.resume_reading()
            self.data_received(early)

    def data_received(self, data: bytes) -> None:
        taken, early = data[: self._left], data[self._left :]
        self._left -= len(taken)
        self._passed += len(taken)
        if self._head is not None:
            self._head += taken
        if early:
            if self._head is not None and b"\r\n\r\n" not in self._head:
                return self.on_excess()
            self._early += early
            self._transport.pause_reading()
        if self._peer.is_half_open:
            self._admission.hold(self._peer, self._passed + len(self._early))
        return self.protocol.data_received(taken) if taken else None

    def eof_received(self) -> bool | None:
        return self.protocol.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self.protocol.connection_lost(exc)

    def pause_writing(self) -> None:
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self.protocol.resume_writing()


def _nothing_yet() -> None:
    """For a connection that isn't made yet."""
