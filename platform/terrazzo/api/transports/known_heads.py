"""Requests whose head came before, byte for byte, and which need no second reading of it.

A program that asks the gateway again and again sends the same head each time: the same token, the same length. aiohttp
reads a head once, and everything that it and ``http.py`` checked then is true of the same bytes again. The token is
among them, but not whether it is still good: that is asked for each request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aiohttp import hdrs, web

from terrazzo.api.kernel.envelope import Answer
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.replica.position import POSITION
from terrazzo.api.transports.bodies.reader import UNPROVEN_BYTES
from terrazzo.api.transports.peers.client_address import forwarded_for
from terrazzo.api.transports.request_bounds import HEAD_END
from terrazzo.ports.tracing import HEADER as TRACEPARENT

MOST_HEADS = 4_096  # then all are forgotten: reading one again costs less than to know the oldest
MOST_HEAD_BYTES = 2_048

_TELLING = (
    *(hdrs.CONTENT_ENCODING, hdrs.TRANSFER_ENCODING, hdrs.EXPECT, hdrs.UPGRADE, hdrs.ORIGIN, hdrs.COOKIE),
    TRACEPARENT,  # another one each time
    POSITION,  # the same
)
"""Headers that make more of a request than its head, and so many bytes; or more of the answer."""


class KnownHead(NamedTuple):
    """What a head said."""

    token: str | None
    body_bytes: int
    forwarded_for: tuple[str, ...] = ()  # by whom is told by the connection that it comes on
    action: str = ""  # that the address names


class KnownHeads:
    """The heads of the gateway's requests on all connections, and who answers them.

    Args:
        answer: of a body, for a caller, at the address of an action or of all; never raises.
    """

    def __init__(self, answer: Callable[[bytes, Caller, str], Awaitable[Answer]]) -> None:
        self.answer = answer
        self._heads: dict[bytes, KnownHead] = {}

    def __len__(self) -> int:
        """How many are known."""
        return len(self._heads)

    def find(self, data: bytes) -> tuple[KnownHead, bytes] | None:
        """The known head and the body, where ``data`` is one whole request with such a head."""
        end = data.find(HEAD_END) + len(HEAD_END)
        known = self._heads.get(data[:end])
        if known is None or len(data) - end != known.body_bytes:
            return None
        return known, data[end:]

    def learn(self, data: bytes, request: web.BaseRequest, token: str | None, action: str = "") -> None:
        """Remembers the head of an answered request; ``data`` is all of it and nothing else."""
        body_bytes = request.content_length or 0
        end = len(data) - body_bytes
        if end > MOST_HEAD_BYTES or body_bytes > UNPROVEN_BYTES or data.find(HEAD_END) + len(HEAD_END) != end:
            return
        if any(name in request.headers for name in _TELLING):
            return
        if len(self._heads) >= MOST_HEADS:
            self._heads.clear()
        self._heads[data[:end]] = KnownHead(token, body_bytes, forwarded_for(request), action)


HEADS = web.AppKey("HEADS", KnownHeads)
"""Where an application keeps them."""
