"""Long reports, read by the decoders' process: one of a megabyte takes 40 ms, which the event loop has not."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from terrazzo.domain.payload import MANY_BYTES, PointLimits, Reject, RejectKind
from terrazzo.domain.payloads.stored import is_pack, json_payload
from terrazzo.ingest.arrival import FlatPoints, LongPayload
from terrazzo.ingest.decoders import JSON, POINTS, PayloadDecoders, ToDecode
from terrazzo.loop_pauses import LoopPauses
from terrazzo.reasons import Reason, retold

_Fault = tuple[str, str, Reason | None]
_decode_answer = msgspec.msgpack.Decoder(tuple[Any, tuple[bytes, ...], _Fault | None, bytes]).decode
_decode_points = msgspec.msgpack.Decoder(dict[str, Any]).decode


async def read_long(
    decoders: PayloadDecoders,
    payload: bytes,
    limits: PointLimits,
    *,
    is_mapped: bool,
    is_told: bool = False,
    names: Sequence[str] = (),
) -> LongPayload | Reject | None:
    """What a long payload says, or what is wrong with it; None where the process could not read it.

    Args:
        is_told: has it say all of the points as JSON, too.
        names: of the values, where the payload may be an array.

    Raises:
        OSError: the process can't be started.
    """
    asked = map(str, (limits.name_chars, limits.points, limits.text_chars, int(is_mapped), int(is_told)))
    (answer,) = await decoders.decode([ToDecode(POINTS, (*asked, *names), payload)])
    return None if isinstance(answer, Reject) else await _taken_up(answer)


async def _taken_up(answer: bytes) -> LongPayload | Reject:
    """What the process has read, taken up a piece at a time: others have their turn in between."""
    stamp, pieces, fault, text = _decode_answer(answer)
    if fault is not None:
        kind, reason, told = fault
        return Reject(RejectKind(kind), retold(reason, msgspec.UNSET if told is None else told))
    points, pauses = FlatPoints(), LoopPauses()
    for piece in pieces:
        points.update(_decode_points(piece))
        await pauses.pause()
    points.text = text
    return LongPayload(stamp, points)


def is_long_pack(body: bytes) -> bool:
    """Whether it takes more than some 3 ms to say a stored body as JSON: JSON itself is told as it is."""
    return len(body) > MANY_BYTES and is_pack(body)


async def json_of_long(decoders: PayloadDecoders, body: bytes) -> bytes:
    """A stored body of MessagePack as JSON; made on a thread where the process can't."""
    try:
        (answer,) = await decoders.decode([ToDecode(JSON, (), body)])
    except OSError:
        answer = Reject(RejectKind.DECODER, "")
    if isinstance(answer, Reject):
        return await asyncio.to_thread(lambda: msgspec.json.encode(json_payload(body)))
    return answer
