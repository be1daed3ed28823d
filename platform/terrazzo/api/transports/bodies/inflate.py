"""Compressed bodies, inflated step by step, in threads, company by company."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator
from weakref import WeakValueDictionary

from terrazzo.reasons import say

CODINGS = ("gzip", "deflate")  # RFC 9110, 8.4.1
STEP_BYTES = 256 * 1024  # inflated at a time
_THREADS = 2
_DEFLATE = 8  # the method in the low bits of zlib's first byte [RFC 1950, 2.2]


class BadCoding(Exception):
    """The body is not in the coding that its head says."""


class Inflater:
    """One body of a coding. Each ``step`` costs at most ``STEP_BYTES`` of output, whatever the input promises.

    Args:
        coding: one of ``CODINGS``.
    """

    def __init__(self, coding: str) -> None:
        self._coding = coding
        self._stream = zlib.decompressobj(16 + zlib.MAX_WBITS) if coding == "gzip" else None
        self._rest = b""

    @property
    def has_more(self) -> bool:
        """Whether a ``step`` without new data has something to do."""
        return bool(self._rest)

    def step(self, data: bytes = b"") -> bytes:
        """Takes more data, and inflates some of it.

        Raises:
            BadCoding: it is none, or goes on behind its end.
        """
        data = self._rest + data
        if self._stream is None:
            if not data:
                return b""
            self._stream = zlib.decompressobj(zlib.MAX_WBITS if data[0] & 15 == _DEFLATE else -zlib.MAX_WBITS)
        try:
            inflated = self._stream.decompress(data, STEP_BYTES)
        except zlib.error as error:
            raise BadCoding(say("coding_wrong", coding=self._coding, why=error)) from None
        self._rest = self._stream.unconsumed_tail
        if self._stream.unused_data:
            raise BadCoding(say("coding_goes_on", coding=self._coding))
        return inflated

    def end(self) -> None:
        """Everything has come.

        Raises:
            BadCoding: something is missing.
        """
        if self._stream is None or not self._stream.eof:
            raise BadCoding(say("coding_ends_early", coding=self._coding))


class InflateThreads:
    """Where bodies are inflated: two steps at a time, of one company one at a time."""

    def __init__(self) -> None:
        self._slots = asyncio.Semaphore(_THREADS)
        self._turns: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()

    async def inflate(self, inflater: Inflater, data: bytes, company_id: int) -> AsyncGenerator[bytes, None]:
        """What ``data`` inflates to, in pieces; raises ``BadCoding``."""
        turn = self._turns.setdefault(company_id, asyncio.Lock())
        while True:
            async with turn, self._slots:
                piece = await asyncio.to_thread(inflater.step, data)
            if piece:
                yield piece
            data = b""
            if not inflater.has_more:
                return
