"""Frames of the log: what a store does, as each replica does it. docs/format/out-frame.md describes the bytes.

An operation is one MessagePack array, cut into as many frames as the log's servers need. Each frame has a header with
the writer's epoch, the number of the operation and a checksum.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from terrazzo.ports.store import Record, Seen
from terrazzo.replication.checked_bytes import HEAD_BYTES, FrameDamaged, check_bytes, checked_bytes

VERSION = 1
MOST_BYTES = 256 << 20  # of one operation
MOST_PARTS = 4_096

_MAGIC = b"TZo"
_REST = struct.Struct(">QQHH")  # epoch, number, part, parts
HEADER_BYTES = HEAD_BYTES + _REST.size


class Began(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """A node leads from here on: what older epochs left unfinished is nothing."""

    node: str
    version: str  # of the program


class Appended(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Records in the order of their arrival, each with the place of its series in ``series``, and notes."""

    series: list[str]
    records: list[tuple[int, int, bytes]]  # place, time_us, body
    notes: dict[str, bytes | None] = {}


class Replaced(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The records of a range of one series, if those of ``given`` have ``total`` records there."""

    series: str
    start_us: int
    end_us: int
    records: list[tuple[int, bytes]]  # time_us, body
    given: list[str]
    total: int


class Dropped(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """All records that are earlier are deleted."""

    before_us: int


class DroppedSeries(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """All records of these series that are earlier are deleted. A node of before can't read it, and stops."""

    before_us: int
    series: list[str]


Operation = Began | Appended | Replaced | Dropped | DroppedSeries

_encode = msgspec.msgpack.Encoder().encode
_decoder: msgspec.msgpack.Decoder[Operation] = msgspec.msgpack.Decoder(Operation)


class Frame(NamedTuple):
    """One frame: ``part`` of the ``parts`` of an operation, from 0 on."""

    epoch: int
    number: int
    part: int
    parts: int
    body: bytes


def appended(records: Sequence[Record], notes: dict[str, bytes | None]) -> Appended:
    """The operation that appends records."""
    places: dict[str, int] = {}
    found = [(places.setdefault(each.series, len(places)), each.time_us, each.body) for each in records]
    return Appended(list(places), found, notes)


def records_of(operation: Appended) -> list[Record]:
    """The records that an operation appends."""
    names = operation.series
    return [Record(names[place], time_us, body) for place, time_us, body in operation.records]


def replaced(series: str, start_us: int, end_us: int, records: Sequence[Record], given: Seen) -> Replaced:
    """The operation that replaces a range.

    Raises:
        ValueError: a record is of another series.
    """
    for record in records:
        if record.series != series:
            raise ValueError(f"{record.series}: expected records of {series}")
    found = [(record.time_us, record.body) for record in records]
    return Replaced(series, start_us, end_us, found, list(given.series), given.total)


def encode_frames(operation: Operation, *, epoch: int, number: int, most_bytes: int) -> list[bytes]:
    """An operation as frames of at most ``most_bytes``.

    Raises:
        ValueError: it is larger than an operation may be.
    """
    body = _encode(operation)
    room = most_bytes - HEADER_BYTES
    parts = max(1, -(-len(body) // room))
    if len(body) > MOST_BYTES or parts > MOST_PARTS:
        raise ValueError(f"a change of {len(body):,} bytes is larger than the log takes in one piece")
    return [
        encode_frame(Frame(epoch, number, part, parts, body[part * room : (part + 1) * room])) for part in range(parts)
    ]


def encode_frame(frame: Frame) -> bytes:
    """The bytes of a frame."""
    rest = _REST.pack(frame.epoch, frame.number, frame.part, frame.parts) + frame.body
    return checked_bytes(_MAGIC, VERSION, rest)


def decode_frame(data: bytes) -> Frame:
    """A frame of its bytes.

    Raises:
        FrameDamaged, FrameTooNew: says why.
    """
    check_bytes(data, magic=_MAGIC, version=VERSION, least=HEADER_BYTES)
    epoch, number, part, parts = _REST.unpack_from(data, HEAD_BYTES)
    if not part < parts <= MOST_PARTS:
        raise FrameDamaged(f"a frame says to be part {part} of {parts}")
    return Frame(epoch, number, part, parts, data[HEADER_BYTES:])


def decode_operation(body: bytes) -> Operation:
    """An operation of all its parts' bytes.

    Raises:
        FrameDamaged: says why.
    """
    try:
        operation: Operation = _decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameDamaged(f"an operation can't be read: {error}") from None
    if isinstance(operation, Appended):
        places = [place for place, _, _ in operation.records]
        if places and not 0 <= min(places) <= max(places) < len(operation.series):
            raise FrameDamaged("an operation has a record of a series that it doesn't name")
    return operation


class Assembly:
    """Puts operations together again, frame by frame in the log's order."""

    def __init__(self) -> None:
        self._waiting: list[Frame] = []  # the parts so far of an operation that isn't whole

    def add(self, frame: Frame) -> Operation | None:
        """The operation that a frame completes; None while parts are missing.

        Parts of a writer that was replaced before it sent the last one are dropped.

        Raises:
            FrameDamaged: the frame doesn't follow the one before.
        """
        if frame.part == 0:
            if self._waiting and frame.epoch == self._waiting[0].epoch:
                raise FrameDamaged(f"operation {frame.number} begins before {self._waiting[0].number} is whole")
            self._waiting = []
        elif not self._waiting or not _follows(self._waiting[-1], frame):
            raise FrameDamaged(f"part {frame.part} of operation {frame.number} follows no part before it")
        self._waiting.append(frame)
        if frame.part + 1 < frame.parts:
            return None
        parts, self._waiting = self._waiting, []
        return decode_operation(b"".join(each.body for each in parts) if len(parts) > 1 else frame.body)


def _follows(before: Frame, frame: Frame) -> bool:
    expected = (before.epoch, before.number, before.part + 1, before.parts)
    return expected == (frame.epoch, frame.number, frame.part, frame.parts)
