"""How much of a body is read for whom: little without a good token, the rest after it, inflated or not.

The token is that of the header. It is looked at before a long or compressed body is asked for, read or inflated.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import ExitStack, aclosing, asynccontextmanager
from typing import NamedTuple

from aiohttp import HttpVersion11, hdrs, web

from terrazzo.api.kernel.envelope import BAD_PARAMETER, FAILURE, NOT_AUTHENTICATED
from terrazzo.api.kernel.identity import identify
from terrazzo.api.kernel.operation import Caller
from terrazzo.api.kernel.services import TokenService
from terrazzo.api.transports.bodies.inflate import CODINGS, BadCoding, Inflater, InflateThreads
from terrazzo.api.transports.refusals import refused_with
from terrazzo.errors import NotAuthenticated, Throttled
from terrazzo.memory_shares import Holding, MemoryShares
from terrazzo.reasons import say, told_by

_COPIES = 4  # of each byte: as it came, as text, and the values that are made of it
UNPROVEN_BYTES = 16 * 1024
"""Of a body that is read without a good token, which a login and what else needs none fit into."""


class BodyRefused(Exception):
    """A body that is not read (any further). ``str()`` is the ``info`` of the answer.

    Attributes:
        status: of HTTP.
        code: of the envelope.
        retry_after_s: when it may be sent again.
    """

    def __init__(
        self, status: int, info: str, code: int = BAD_PARAMETER, *, retry_after_s: float | None = None
    ) -> None:
        super().__init__(info)
        self.status = status
        self.code = code
        self.retry_after_s = retry_after_s


class BodyBound(NamedTuple):
    """How long a body may be when it is inflated, the configuration key that says so, and what may be around it."""

    most_bytes: int
    key: str = "limits.body_bytes"
    slack_bytes: int = 0

    def check(self, size: int) -> None:
        """Raises ``BodyRefused`` for a body that is longer."""
        if size > self.most_bytes + self.slack_bytes:
            raise BodyRefused(413, say("body_too_long", most=self.most_bytes, key=self.key))


class BodyReader:
    """Reads the bodies of requests.

    Args:
        memory: where long bodies count as long as they are kept.
        timeout_s: for a whole body.
    """

    def __init__(self, tokens: TokenService, memory: MemoryShares, *, timeout_s: float) -> None:
        self._tokens = tokens
        self._memory = memory
        self._timeout_s = timeout_s
        self._threads = InflateThreads()

    @asynccontextmanager
    async def whole(self, request: web.Request, caller: Caller, bound: BodyBound) -> AsyncIterator[bytes]:
        """All of a body; a long one counts as its company's memory as long as the context lasts.

        Raises:
            BodyRefused: it is too long, in no coding that is known, long or compressed without a good token, or its
                company has too much in memory.
            HTTPRequestTimeout: it doesn't come.
        """
        with ExitStack() as held:
            yield await self._whole(request, caller, bound, held)

    async def _whole(self, request: web.Request, caller: Caller, bound: BodyBound, held: ExitStack) -> bytes:
        content = request.content
        if content.is_eof() and hdrs.CONTENT_ENCODING not in request.headers:  # it is here
            body = content.read_nowait()
            bound.check(len(body))
            if len(body) > UNPROVEN_BYTES:
                self._grow(held.enter_context(await self._holding(caller)), len(body))
            return body
        try:
            async with asyncio.timeout(self._timeout_s), aclosing(self.pieces(request, caller, bound)) as pieces:
                return await self._join(pieces, caller, held)
        except TimeoutError:
            raise refused_with(web.HTTPRequestTimeout(), say("body_late", seconds=self._timeout_s)) from None

    async def _join(self, pieces: AsyncIterator[bytes], caller: Caller, held: ExitStack) -> bytes:
        found, size = [], 0
        holding: Holding | None = None
        async for piece in pieces:
            found.append(piece)
            size += len(piece)
            if holding is not None:
                self._grow(holding, len(piece))
            elif size > UNPROVEN_BYTES:
                holding = held.enter_context(await self._holding(caller))
                self._grow(holding, size)
        return b"".join(found)

    async def _holding(self, caller: Caller) -> Holding:
        return self._memory.holding("bodies", await self._prove(caller, 413, _LONG))

    @staticmethod
    def _grow(holding: Holding, size: int) -> None:
        try:
            holding.grow(_COPIES * size)
        except Throttled as error:
            raise BodyRefused(429, told_by(error), FAILURE, retry_after_s=error.retry_after_s) from None

    async def pieces(self, request: web.Request, caller: Caller, bound: BodyBound) -> AsyncGenerator[bytes, None]:
        """A body as it comes, inflated; nothing is timed. Raises ``BodyRefused`` as ``whole`` does."""
        coding = _coding_of(request)
        bound.check(request.content_length or 0)
        company_id: int | None = None
        if coding:
            company_id = await self._prove(caller, 415, "compressed")
        elif (request.content_length or 0) > UNPROVEN_BYTES:
            company_id = await self._prove(caller, 413, _LONG)
        _ask_for(request)
        inflater = Inflater(coding) if coding else None
        sent = taken = 0
        while data := await _next(request):
            sent += len(data)
            bound.check(sent)
            if company_id is None and sent > UNPROVEN_BYTES:
                company_id = await self._prove(caller, 413, _LONG)
            if inflater is None:
                yield data
                continue
            assert company_id is not None
            async for piece in self._inflate(inflater, data, company_id):
                taken += len(piece)
                bound.check(taken)
                yield piece
        if inflater is not None:
            _end(inflater)

    async def _prove(self, caller: Caller, status: int, what: str) -> int:
        """Whose the caller's token is; raises ``BodyRefused`` where it isn't good.

        Who shows one that has expired is answered as everywhere, with status 200.
        """
        try:
            return identify(self._tokens, caller).company_id
        except NotAuthenticated as error:
            if caller.token:
                raise BodyRefused(200, told_by(error), NOT_AUTHENTICATED) from None
            raise BodyRefused(status, say("body_needs_token", what=what, reason=error), NOT_AUTHENTICATED) from None

    async def _inflate(self, inflater: Inflater, data: bytes, company_id: int) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self._threads.inflate(inflater, data, company_id)) as pieces:
                async for piece in pieces:
                    yield piece
        except BadCoding as error:
            raise _undecodable(error) from None


_LONG = f"longer than {UNPROVEN_BYTES} bytes"


def _coding_of(request: web.Request) -> str:
    """The coding to undo, empty where there is none."""
    coding = request.headers.get(hdrs.CONTENT_ENCODING, "").strip().lower()
    if coding in ("", "identity"):
        return ""
    if coding not in CODINGS:
        raise BodyRefused(415, say("expected_coding", expected=" or ".join(CODINGS), got=coding[:50]))
    return coding


def _ask_for(request: web.Request) -> None:
    """Has a peer send its body that waits to be asked for it [RFC 9110, 10.1.1]."""
    is_waiting = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
    if is_waiting and request.version == HttpVersion11 and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


async def on_expect(request: web.Request) -> None:
    """aiohttp's handler of ``Expect``: ``BodyReader`` asks for a body when it is to be read.

    Raises:
        HTTPExpectationFailed: something else is expected.
    """
    expected = request.headers.get(hdrs.EXPECT, "")
    if request.version == HttpVersion11 and expected.lower() != "100-continue":
        raise refused_with(web.HTTPExpectationFailed(), say("expect_unknown", got=expected[:50]))


async def _next(request: web.Request) -> bytes:
    try:
        return await request.content.readany()
    except web.RequestPayloadError as error:
        raise _undecodable(error) from None
    except ConnectionError as error:
        raise BodyRefused(400, say("body_ended_early", why=error)) from None


def _end(inflater: Inflater) -> None:
    try:
        inflater.end()
    except BadCoding as error:
        raise _undecodable(error) from None


def _undecodable(error: Exception) -> BodyRefused:
    """Not in the coding that its head promised: compressed otherwise, or no chunks."""
    return BodyRefused(400, f"body: {' '.join(told_by(error).split())[:200]}")
