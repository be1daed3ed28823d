"""Refusals of what no operation has seen: their sentences keep code and parameters on the way through aiohttp."""

from __future__ import annotations

import asyncio
from http import HTTPStatus

from aiohttp import web

from terrazzo.api.kernel.envelope import BAD_PARAMETER, UNREAD, Failure
from terrazzo.reasons import reason_of

GOODBYE_S = 2.0  # for last words to arrive, and for what a refused peer is still sending


def refused_with(refusal: web.HTTPException, told: str) -> web.HTTPException:
    """The same refusal with a sentence, which ``told_by`` finds; aiohttp would keep the text alone."""
    refusal.args = (told,)
    return refusal


def encode_refusal(status: int, info: str) -> bytes:
    """The body that a request gets which no handler has seen."""
    return UNREAD.failure(Failure(BAD_PARAMETER, info, status, reason=reason_of(info))).body


def hang_up(transport: asyncio.Transport, status: int, info: str) -> None:
    """Last words, and this half is closed; the other a little later, so that the words arrive."""
    body = encode_refusal(status, info)
    head = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\nContent-Type: application/json\r\nConnection: close\r\n"
    transport.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    if transport.can_write_eof():
        transport.write_eof()
    else:  # TLS ends as a whole
        transport.close()
    asyncio.get_running_loop().call_later(GOODBYE_S, transport.abort)
