"""When a peer no longer takes what it is sent."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Callable


class UnreadClock:
    """Calls back once when a peer took nothing for ``timeout_s``. Who takes little, however slowly, is waited for.

    Args:
        on_stuck: ends the connection.
    """

    __slots__ = ("_on_stuck", "_pending", "_timeout_s", "_timer", "_transport")

    def __init__(self, transport: asyncio.Transport, timeout_s: float, on_stuck: Callable[[], None]) -> None:
        self._transport = transport
        self._timeout_s = timeout_s
        self._on_stuck = on_stuck
        self._pending = _pending(transport)
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self._look)

    def stop(self) -> None:
        """Never calls back."""
        self._timer.cancel()

    def _look(self) -> None:
        before, self._pending = self._pending, _pending(self._transport)
        if self._pending >= before:
            self._on_stuck()
        else:
            self._timer = asyncio.get_running_loop().call_later(self._timeout_s, self._look)


def _pending(transport: asyncio.Transport) -> int:
    """Bytes that the peer has not acknowledged: here, and in the system's buffer, where a slow one has megabytes."""
    size = transport.get_write_buffer_size()
    try:
        unsent = fcntl.ioctl(transport.get_extra_info("socket").fileno(), termios.TIOCOUTQ, bytes(4))
    except (OSError, AttributeError, ValueError):  # it is gone, or the system doesn't tell
        return size
    return size + int(struct.unpack("i", unsent)[0])
