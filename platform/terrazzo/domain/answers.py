"""Answers to commands as the store keeps them: series ``c/<uid>``, written in the same commit as the grid record.

The grid has the answer's payload; the Correlation Data kept here says which command it belongs to, so that after a
crash no command is sent again whose answer was acknowledged.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Set

import msgspec

from terrazzo.domain.payload import MANY_BYTES, decode
from terrazzo.domain.payloads.stored import is_pack
from terrazzo.ports.store import Record, StoreUnavailable, TimeSeriesStore
from terrazzo.reasons import say
from terrazzo.times import LATEST_US

_AT_ONCE = 1_000  # series
_SHORT = 16 * 1024  # bytes: they are read in a tenth of a millisecond
_PAGE = 100  # records: each may have a megabyte


class CommandAnswer(msgspec.Struct, frozen=True):
    """A publish on channel ``n`` with Correlation Data (MQTT 5): a terminal's answer to a command.

    ``text``: the body as JSON, where whoever has read it has made that too.
    """

    uid: str
    correlation: bytes
    body: bytes
    text: bytes = b""


class _Body(msgspec.Struct):
    correlation: bytes
    payload: bytes


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Body).decode


def answer_record(answer: CommandAnswer, arrived_us: int) -> Record:
    """The record of an answer in the series ``c/<uid>``; ``arrived_us``: UTC microseconds."""
    return Record(_series(answer.uid), arrived_us, _encode(_Body(answer.correlation, answer.body)))


class StoredAnswers:
    """Reads the stored answers of terminals. ``json_of``: makes JSON of long ones beside the event loop."""

    def __init__(self, store: TimeSeriesStore, json_of: Callable[[bytes], Awaitable[bytes]] | None = None) -> None:
        self._store = store
        self._json_of = json_of

    async def since(self, time_us: int, terminals: Set[str]) -> AsyncIterator[CommandAnswer]:
        """The answers of these terminals that arrived at ``time_us`` or later.

        Raises:
            StoreUnavailable: the store can't answer, or records still wait for its server.
        """
        names = sorted(map(_series, terminals))
        if names and not self._store.is_whole:
            raise StoreUnavailable(say("records_wait_for_server"))
        for start in range(0, len(names), _AT_ONCE):
            async for record in self._records(names[start : start + _AT_ONCE], time_us):
                body = _decode(record.body)
                is_long = len(body.payload) > MANY_BYTES and is_pack(body.payload)
                text = await self._json_of(body.payload) if is_long and self._json_of is not None else b""
                yield CommandAnswer(record.series.removeprefix("c/"), body.correlation, body.payload, text)

    async def _records(self, series: list[str], time_us: int) -> AsyncIterator[Record]:
        offset, total = 0, 1
        while offset < total:
            page = await self._store.page(series, time_us, LATEST_US, offset=offset, limit=_PAGE)
            offset, total = offset + _PAGE, page.total
            for record in page.records:
                yield record


def answer_text(body: bytes, text: bytes = b"") -> str:
    """An answer's payload as JSON. A long one that is JSON stays as it came: reading it again would hold the loop."""
    if text:
        return text.decode()
    if len(body) > _SHORT and body.startswith(b"{"):
        return body.decode()
    return msgspec.json.encode(decode(body)).decode()


def _series(uid: str) -> str:
    return f"c/{uid}"
