"""Answers of any length: pieces that are sent as fast as they are taken, and no faster."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from typing import Any

from aiohttp import web

from terrazzo.api.kernel.envelope import BAD_PARAMETER, EMPTY_TEXT, Answer, Failure, GatewayReply
from terrazzo.api.transports.connection import connection_of
from terrazzo.ports import at_work
from terrazzo.ports.at_work import Work

_log = logging.getLogger(__name__)


class StreamReply:
    """Keeps what a successful operation answered; a failure is answered as everywhere."""

    bad_parameter = BAD_PARAMETER

    def __init__(self, name: str) -> None:
        self._envelope = GatewayReply(name, EMPTY_TEXT)
        self.not_found = self._envelope.not_found
        self.result: Any = None

    def present(self, result: Any) -> Any:
        """As it is."""
        return result

    def success(self, result: Any) -> Answer:
        """Keeps the result."""
        self.result = result
        return Answer(b"")

    def failure(self, failure: Failure) -> Answer:
        """An envelope."""
        return self._envelope.failure(failure)


@contextmanager
def answering_in_pieces(request: web.Request, name: str) -> Iterator[None]:
    """What is made meanwhile is made for the company that asked, and ends when the connection is lost.

    A piece may take long until there is something to write. Raises ``ConnectionError`` where it is lost already.
    """
    connection = connection_of(request)
    slot = None if connection is None else connection.slot
    if slot is None:
        raise ConnectionResetError("the peer is gone")
    work = slot.reading = at_work.begin(Work(name, slot.company_id, ends_with_client=True))
    try:
        yield
    finally:
        slot.reading = None
        at_work.end(work)


async def send_stream(
    request: web.Request, pieces: AsyncGenerator[bytes, None], *, media_type: str, file_name: str
) -> web.StreamResponse:
    """A file. What fails on the way breaks the connection off: half a file must not look like a whole one."""
    headers = {"Content-Type": media_type, "Content-Disposition": f'attachment; filename="{file_name}"'}
    response = web.StreamResponse(headers=headers)
    try:
        async with aclosing(pieces) as opened:
            await response.prepare(request)
            if request.method == "HEAD":
                return response
            with answering_in_pieces(request, file_name):
                async for piece in opened:
                    await response.write(piece)  # waits while the client takes nothing
    except ConnectionError:
        return response  # whoever asked has gone
    except Exception:  # noqa: BLE001 - logged; it is too late for another answer
        _log.exception("export of %s broke off", file_name)
        if request.transport is not None:
            request.transport.abort()
    return response
