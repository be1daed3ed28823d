"""Answers of the gateway on the wire: head and body in as few writes as there can be, on a connection that stays."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from math import ceil

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from terrazzo.api.kernel.envelope import Answer

MOST_BYTES = 64 * 1024  # of a body that is worth copying behind its head


class SentResponse(web.StreamResponse):
    """What a handler returns that has sent its answer: aiohttp has nothing to add.

    Args:
        stays: whether the answer said that the connection does.
    """

    def __init__(self, *, stays: bool = True) -> None:
        super().__init__()
        self._stays = stays

    @property
    def keep_alive(self) -> bool:
        """Whether another request may follow."""
        return self._stays

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Nothing is left to do."""
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to do."""


def write_answer(transport: asyncio.Transport, answer: Answer) -> None:
    """Writes a whole HTTP/1.1 response, after which the connection stays."""
    body = answer.body
    head = b"%b%d\r\n\r\n" % (_head(int(time.time()), answer.status, answer.retry_after_s, answer.headers), len(body))
    if len(body) <= MOST_BYTES:
        transport.write(head + body)
    else:
        transport.write(head)
        transport.write(body)


@lru_cache(maxsize=16)
def _head(now_s: int, status: int, retry_after_s: float | None, headers: tuple[tuple[str, str], ...]) -> bytes:
    """As far as the length of the body, which comes last."""
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        *([] if retry_after_s is None else [f"Retry-After: {ceil(retry_after_s)}"]),
        *(f"{name}: {value}" for name, value in headers),
        f"Date: {formatdate(now_s, usegmt=True)}",
        "Content-Length: ",
    ]
    return "\r\n".join(lines).encode()
