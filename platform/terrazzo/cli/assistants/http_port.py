"""The port of ``terrazzo mcp --http-port``: who says nothing or promises what doesn't come keeps nobody out."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, ClassVar, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

MOST_AT_ONCE = 32  # requests that are whole
MOST_BYTES = 64 * 1024  # of a body
_MOST_SILENT = 256  # sockets that have not sent a head yet; beyond, the oldest makes room
_HEAD_S, _BODY_S = 10.0, 10.0


class PatientProtocol(H11Protocol):
    """Uvicorn's, with a deadline for a head, which it has only between two requests."""

    _silent: ClassVar[dict[PatientProtocol, None]] = {}  # the oldest first
    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """A peer is there; it has ten seconds, and less where many are silent."""
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """A head that is whole ends the wait; one that comes in drops doesn't, the first one or a later one."""
        super().data_received(data)
        if self.conn.their_state is not h11.IDLE:
            self._forget_deadline()
        elif self._deadline is None and not self.transport.is_closing():
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """The peer is gone."""
        self._forget_deadline()
        super().connection_lost(exc)

    def _await_head(self) -> None:
        self._silent[self] = None
        self._deadline = self.loop.call_later(_HEAD_S, self.transport.close)
        if len(self._silent) > _MOST_SILENT:
            oldest = next(iter(self._silent))
            oldest._forget_deadline()
            oldest.transport.close()

    def _forget_deadline(self) -> None:
        self._silent.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def bounded(app: ASGIApp) -> ASGIApp:
    """Reads a request before it counts: of the whole ones so many are answered at a time, the others 503.

    A body that is long is answered 413, one that doesn't come 408, and what is no POST 405: nothing is streamed here.
    """
    at_once = 0

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        nonlocal at_once
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        if scope["method"] != "POST":
            await _refuse(send, 405, (b"allow", b"POST"))
            return
        try:
            async with asyncio.timeout(_BODY_S):
                body = await _whole_body(receive)
        except TimeoutError:
            await _refuse(send, 408, (b"connection", b"close"))
            return
        if body is None or at_once >= MOST_AT_ONCE:
            await _refuse(send, 413 if body is None else 503, (b"connection", b"close"))
            return
        at_once += 1
        try:
            await app(scope, _again(body, receive), send)
        finally:
            at_once -= 1

    return answer


async def _whole_body(receive: Receive) -> bytes | None:
    """A body; None: it is too long."""
    found = bytearray()
    while True:
        message = await receive()
        found += cast(bytes, message.get("body", b""))
        if len(found) > MOST_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(found)


def _again(body: bytes, receive: Receive) -> Receive:
    """What was read, and then what comes."""
    is_given = False

    async def receive_again() -> Message:
        nonlocal is_given
        if is_given:
            return await receive()
        is_given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive_again


async def _refuse(send: Send, status: int, header: tuple[bytes, bytes]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [header, (b"content-length", b"0")]})
    await send({"type": "http.response.body", "body": b""})
