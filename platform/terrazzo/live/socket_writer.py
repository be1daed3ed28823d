"""Writes live frames to the sockets of connections."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress

UNSENT_BYTES = 64 * 1024  # that wait to be sent before live frames have to wait


class SocketWriter:
    """Writes to a connection's socket directly while nothing is buffered; the transport sends what doesn't fit.

    An event loop may defer a transport's writes to its next turn, where their cost could not be measured.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        socket = transport.get_extra_info("socket")
        is_plain = os.name == "posix" and socket is not None and transport.get_extra_info("ssl_object") is None
        self._fd = socket.fileno() if is_plain else -1

    @property
    def has_room(self) -> bool:
        """Whether fewer than ``UNSENT_BYTES`` wait to be sent."""
        return self._transport.get_write_buffer_size() < UNSENT_BYTES

    def write(self, data: bytes) -> None:
        """Sends bytes, without waiting."""
        transport, sent = self._transport, 0
        if self._fd >= 0 and not transport.get_write_buffer_size() and not transport.is_closing():
            with suppress(OSError):  # no room, which the transport waits for; or broken, which it finds itself
                sent = os.write(self._fd, data)
        if sent < len(data):
            transport.write(memoryview(data)[sent:])  # many may share it
