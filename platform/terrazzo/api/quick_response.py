"""The most frequent response by far, at a third of the cost: 200 with JSON on a connection that stays."""

from __future__ import annotations

import time
from email.utils import formatdate

from aiohttp import HttpVersion11, web
from aiohttp.abc import AbstractStreamWriter

MOST_BYTES = 64 * 1024  # of a body that is worth copying behind its head


def may_be_quick(request: web.BaseRequest, body: bytes) -> bool:
    """Whether ``QuickResponse`` can answer this request."""
    return request.version == HttpVersion11 and request.keep_alive and len(body) <= MOST_BYTES


class QuickResponse(web.StreamResponse):
    """Head and body in one write, without the tables of headers that responses in general need."""

    _heads: tuple[int, bytes] = (0, b"")  # of this second

    def __init__(self, body: bytes) -> None:
        super().__init__()
        self._json = body
        self._connection: web.BaseRequest | None = None

    @property
    def keep_alive(self) -> bool:
        """Others get another response."""
        return True

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Nothing leaves before the body does."""
        self._connection = request
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Writes all of it, and waits for a peer that is slow to read.

        Raises:
            ConnectionResetError: the peer is gone.
        """
        request = self._connection
        transport = None if request is None else request.transport
        if request is None or transport is None or transport.is_closing():
            raise ConnectionResetError("the peer is gone")
        transport.write(b"%b%d\r\n\r\n%b" % (self._head(), len(self._json), self._json))
        if transport.get_write_buffer_size():
            await request.writer.drain()

    @classmethod
    def _head(cls) -> bytes:
        """As far as the length."""
        now_s = int(time.time())
        second, head = cls._heads
        if second != now_s:
            date = formatdate(now_s, usegmt=True)
            head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nDate: {date}\r\nContent-Length: ".encode()
            cls._heads = (now_s, head)
        return head
