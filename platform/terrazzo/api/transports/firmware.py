"""Stored files for terminals: signed addresses instead of tokens, byte ranges, so that a download can be resumed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from http import HTTPStatus
from typing import BinaryIO

from aiohttp import web
from aiohttp.typedefs import Handler

from terrazzo.api.kernel.envelope import NOT_FOUND, NOT_PERMITTED, UNREAD, Failure
from terrazzo.api.kernel.services import FirmwareService
from terrazzo.api.transports.byte_ranges import ByteRange, choose_range
from terrazzo.api.transports.connection import connection_of
from terrazzo.campaigns.download_links import Ticket
from terrazzo.domain.stored_file import StoredFile
from terrazzo.errors import NotFound, NotPermitted
from terrazzo.memory_shares import NOBODY
from terrazzo.reasons import say

_PIECE = 256 * 1024


def firmware_handler(firmware: FirmwareService) -> Handler:
    """What stands at ``FIRMWARE_PATH``."""

    async def handle_firmware(request: web.Request) -> web.StreamResponse:
        try:
            file = await firmware.redeem(_ticket(request), request.query.get("signature", ""))
        except NotPermitted as error:
            return _refuse(Failure(NOT_PERMITTED, str(error), HTTPStatus.FORBIDDEN))
        except NotFound as error:
            return _refuse(Failure(NOT_FOUND, str(error), HTTPStatus.NOT_FOUND))
        connection = connection_of(request)
        if connection is not None and connection.slot is not None:
            connection.slot.prove(NOBODY)  # a signed address is as good as a token
        return await _send(request, file)

    return handle_firmware


def _ticket(request: web.Request) -> Ticket:
    """What the address says; whatever isn't ours has no good signature."""
    path, query = request.match_info, request.query
    try:
        company_id, expires_s = int(path["company_id"]), int(query.get("expires", ""))
    except ValueError:
        raise NotPermitted(say("signature_wrong")) from None
    return Ticket(company_id, path["file"], path["name"], query.get("terminal", ""), expires_s)


def _refuse(failure: Failure) -> web.Response:
    answer = UNREAD.failure(failure)
    return web.Response(body=answer.body, status=answer.status, content_type="application/json")


async def _send(request: web.Request, file: StoredFile) -> web.StreamResponse:
    span = choose_range(request.headers, size=file.size, etag=file.etag, method=request.method)
    response = web.StreamResponse(status=span.status, headers=_headers(file, span))
    if span.status in (HTTPStatus.OK, HTTPStatus.PARTIAL_CONTENT):
        response.content_length = span.end - span.start
    source = await asyncio.to_thread(file.path.open, "rb")
    try:
        await response.prepare(request)
        if request.method != "HEAD":
            async for piece in _pieces(source, span):
                await response.write(piece)  # waits while the terminal takes nothing
    except ConnectionError:
        return response  # the terminal has gone; it comes back with a range
    finally:
        source.close()
    return response


def _headers(file: StoredFile, span: ByteRange) -> dict[str, str]:
    headers = {"ETag": f'"{file.etag}"', "Accept-Ranges": "bytes", "Cache-Control": "private, no-cache"}
    headers["Content-Type"] = "application/octet-stream"
    headers["X-Content-Type-Options"] = "nosniff"
    if span.status == HTTPStatus.PARTIAL_CONTENT:
        headers["Content-Range"] = f"bytes {span.start}-{span.end - 1}/{file.size}"
    elif span.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE:
        headers["Content-Range"] = f"bytes */{file.size}"
    return headers


async def _pieces(source: BinaryIO, span: ByteRange) -> AsyncGenerator[bytes, None]:
    at = span.start
    await asyncio.to_thread(source.seek, at)
    while at < span.end:
        piece = await asyncio.to_thread(source.read, min(_PIECE, span.end - at))
        if not piece:
            raise ConnectionError("the file is shorter than its record says")
        yield piece
        at += len(piece)
