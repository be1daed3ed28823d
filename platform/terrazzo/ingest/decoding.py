"""Arrivals whose next payloads a decoder has to read: companies take turns, a piece at a time."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from collections.abc import Callable

from terrazzo.domain.payload import PointLimits
from terrazzo.domain.payloads.stored import is_pack
from terrazzo.ingest.arrival import Arrival, DecodedPayload
from terrazzo.ingest.decoders import PayloadDecoders, ToDecode
from terrazzo.ingest.long_reports import read_long
from terrazzo.ingest.opening import let_go
from terrazzo.ingest.turns import Lane
from terrazzo.sparse_log import SparseLog

_PIECE = 64  # payloads
_PIECE_BYTES = 256 * 1024
_PIECE_S = 0.05
_AWAY_S = 1.0  # until the process is tried again that can't be started

_log = logging.getLogger(__name__)


class DecodingQueue:
    """The lanes that wait for a piece of their first arrival to be decoded; ``work`` does it.

    ``on_decoded`` is called with each lane whose first arrival can go on. One of which everything is refused waits
    longer from piece to piece.
    """

    def __init__(
        self, decoders: PayloadDecoders, on_decoded: Callable[[Lane], None], limits: PointLimits | None = None
    ) -> None:
        self._limits = limits or PointLimits()
        self._decoders = decoders
        self._on_decoded = on_decoded
        self._waiting: OrderedDict[str, deque[Lane]] = OrderedDict()  # by company, whose turn it is first
        self._wake = asyncio.Event()
        self._sparse_log = SparseLog(_log)

    def submit(self, lane: Lane) -> None:
        """Has the next piece of the lane's first arrival decoded."""
        self._waiting.setdefault(lane.owner, deque()).append(lane)
        self._wake.set()

    async def work(self) -> None:
        """The task; a failure leaves the lane at hand first in line."""
        while True:
            self._wake.clear()
            while self._waiting:
                await self._decode_next()
            await self._wake.wait()

    async def _decode_next(self) -> None:
        lanes = next(iter(self._waiting.values()))
        lane = lanes[0]
        if lane.arrivals:  # else it was given up
            arrival = lane.arrivals[0]
            try:
                is_any_good = await self._decode_piece(arrival)
            except OSError as error:
                self._sparse_log.error("no decoder can be started, and reports wait for it: %r", error)
                await asyncio.sleep(_AWAY_S)
                return
        owner, lanes = self._waiting.popitem(last=False)
        lanes.popleft()
        if lanes:
            self._waiting[owner] = lanes  # at the end
        if lane.arrivals:
            let_go(lane, self._on_decoded, is_any_good=is_any_good)
        else:
            self._on_decoded(lane)

    async def _decode_piece(self, arrival: Arrival) -> bool:
        """Whether any of the next payloads is good."""
        first = arrival.batch.messages[arrival.next].tag
        if first.form is None or not first.form.decoder:
            return await self._read_long(arrival, arrival.opened_of(arrival.next, first))
        done = piece_of(arrival)
        asked = {index: each for index, each in done.items() if isinstance(each, ToDecode)}
        found = await self._decoders.decode(list(asked.values()), within_s=_PIECE_S)
        decoded = {index: each for index, each in done.items() if isinstance(each, DecodedPayload)}
        for (index, each), its in zip(asked.items(), found, strict=False):  # the rest is of the next piece
            decoded[index] = DecodedPayload(each.payload, its)
        arrival.decoded = decoded
        return any(isinstance(each, bytes) for each in found)

    async def _read_long(self, arrival: Arrival, payload: bytes) -> bool:
        """Whether the next payload, which is a long object of points, or an array of values, is good."""
        message, is_mapped = arrival.batch.messages[arrival.next], arrival.is_mapped
        is_told = bool(message.correlation_data) and message.tag.answers and is_pack(payload)  # JSON is told as it is
        names = () if message.tag.form is None else message.tag.form.names
        found = await read_long(
            self._decoders, payload, self._limits, is_mapped=is_mapped, is_told=is_told, names=names
        )
        arrival.decoded = {arrival.next: DecodedPayload(payload, found)}
        return not isinstance(found, Exception)


def piece_of(arrival: Arrival) -> dict[int, ToDecode | DecodedPayload]:
    """The next payloads of an arrival that decoders have to read, by index; some don't even open."""
    messages = arrival.batch.messages
    found: dict[int, ToDecode | DecodedPayload] = {}
    size = 0
    for index in range(arrival.next, len(messages)):
        tag, payload = messages[index].tag, messages[index].payload
        if tag.form is None or not tag.form.decoder:
            continue
        if tag.seal is not None:
            if tag.seal.is_slow and not arrival.is_opened(index):
                break
            try:
                payload = arrival.open(index, tag, payload)
            except Exception as error:  # noqa: BLE001 - raised again where the message is decoded
                found[index] = DecodedPayload(payload, error)
                continue
        found[index] = ToDecode(tag.form.decoder, tuple(tag.topic.split("/")), payload)
        size += len(payload)
        if len(found) == _PIECE or size >= _PIECE_BYTES:
            break
    return found
