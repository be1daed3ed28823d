"""Answers to commands as they are stored beside the grid: with their Correlation Data, in the same commit.

The grid has what a terminal said; which command it was about is known here, so that after a crash no command is sent
again whose answer was acknowledged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Set

import msgspec

from terrazzo.ports.store import Record, StoreUnavailable, TimeSeriesStore
from terrazzo.times import LATEST_US

_AT_ONCE = 1_000  # series, and records of a page


class CommandAnswer(msgspec.Struct, frozen=True):
    """A publish on channel ``n`` with Correlation Data: what a terminal says to a command."""

    uid: str
    correlation: bytes
    body: bytes


class _Body(msgspec.Struct):
    correlation: bytes
    payload: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Body).decode


def answer_record(answer: CommandAnswer, arrived_us: int) -> Record:
    """What is kept of an answer besides its grid record."""
    return Record(_series(answer.uid), arrived_us, _encode(_Body(answer.correlation, answer.body)))


class StoredAnswers:
    """Reads them back."""

    def __init__(self, store: TimeSeriesStore) -> None:
        self._store = store

    async def since(self, time_us: int, terminals: Set[str]) -> AsyncIterator[CommandAnswer]:
        """Those of these terminals that arrived then or later. Raises StoreUnavailable."""
        names = sorted(map(_series, terminals))
        if names and not self._store.is_whole:
            raise StoreUnavailable("records wait for the server")
        for start in range(0, len(names), _AT_ONCE):
            async for record in self._records(names[start : start + _AT_ONCE], time_us):
                body = _decode(record.body)
                yield CommandAnswer(record.series.removeprefix("c/"), body.correlation, body.payload)

    async def _records(self, series: list[str], time_us: int) -> AsyncIterator[Record]:
        offset, total = 0, 1
        while offset < total:
            page = await self._store.page(series, time_us, LATEST_US, offset=offset, limit=_AT_ONCE)
            offset, total = offset + _AT_ONCE, page.total
            for record in page.records:
                yield record


def _series(uid: str) -> str:
    return f"c/{uid}"
