"""What stands at the front of a segment: counts, names, and the checksums of its other parts."""

from __future__ import annotations

import zlib

import msgspec

from terrazzo_adapters.columns.name_tally import HourTally
from terrazzo_adapters.segments.packing import Damaged

MAGIC = b"TZS"
VERSION = 1
MOST_RECORDS = 65_536
"""The most records in a segment: what a reader makes room for."""


MOST_TEMPLATES = 64
"""Of a segment."""


class Head(msgspec.Struct, array_like=True):
    """The head of a segment. Times are UTC microseconds.

    ``names``: what the records carry, sorted; None where that isn't kept, and bodies are decoded instead.
    ``tally``: None where there are too many sets. ``parts``: CRC-32 by name. ``chunks``: bodies in each.
    ``templates``: how many there are.
    """

    count: int
    first_us: int
    first_arrival: int
    last_us: int
    last_arrival: int
    is_mosaic: bool
    names: list[str] | None
    tally: HourTally | None
    chunks: list[int]
    templates: int
    parts: dict[bytes, int]


_decoder = msgspec.msgpack.Decoder(Head)


def encode_head(head: Head) -> bytes:
    """The head as bytes, with its own checksum at the end."""
    data = MAGIC + bytes([VERSION]) + msgspec.msgpack.encode(head)
    return data + zlib.crc32(data).to_bytes(4, "little")


def decode_head(data: bytes) -> Head:
    """The reverse of ``encode_head``.

    Raises:
        Damaged: it is no head, or of a later version.
    """
    if data[: len(MAGIC)] != MAGIC or len(data) < len(MAGIC) + 5:
        raise Damaged("no segment")
    if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "little"):
        raise Damaged("checksum")
    if data[len(MAGIC)] != VERSION:
        raise Damaged(f"version {data[len(MAGIC)]}, this one reads {VERSION}")
    try:
        head = _decoder.decode(data[len(MAGIC) + 1 : -4])
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Damaged(str(error)) from error
    if not 0 <= head.templates <= MOST_TEMPLATES:
        raise Damaged("templates that don't fit")
    if not 0 < head.count <= MOST_RECORDS or any(count < 1 for count in head.chunks) or sum(head.chunks) > head.count:
        raise Damaged("counts that don't fit")
    return head
