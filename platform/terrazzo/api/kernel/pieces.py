"""Files that are made while they are sent: in turns by company, and counted piece by piece."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, aclosing

from terrazzo.memory_shares import Holding

_COPIES = 2  # of a piece: what it is made of, and itself


async def in_turn(
    pieces: AsyncGenerator[bytes, None], turn: AbstractAsyncContextManager[None], holding: Holding
) -> AsyncGenerator[bytes, None]:
    """The pieces, made in the company's turn, which lasts until the last is taken, or whoever asked has gone.

    ``holding`` has the bytes of one piece, until the next is made.

    Raises:
        Throttled: too many wait for their turn; or the company has too much in memory to begin.
    """
    async with turn, aclosing(pieces) as made:
        with holding:
            async for piece in made:
                holding.resize(_COPIES * len(piece))
                yield piece


async def begun(pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The same pieces, of which the first is made now, so that what goes wrong with it can still be answered."""
    first = await anext(pieces, b"")
    return _from_first(first, pieces)


async def _from_first(first: bytes, rest: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    async with aclosing(rest) as pieces:
        yield first
        async for piece in pieces:
            if piece:
                yield piece
