"""Answers of any length: pieces that are sent as fast as they are taken, and no faster."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from aiohttp import web

from terrazzo.api.kernel.envelope import BAD_PARAMETER, EMPTY_TEXT, Answer, Failure, GatewayReply

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
            async for piece in opened:
                await response.write(piece)  # waits while the client takes nothing
    except ConnectionError:
        return response  # whoever asked has gone
    except Exception:  # noqa: BLE001 - logged; it is too late for another answer
        _log.exception("export of %s broke off", file_name)
        if request.transport is not None:
            request.transport.abort()
    return response
