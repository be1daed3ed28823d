"""Frames of what fronts have taken, as the leader stores it. docs/format/in-frame.md describes the bytes.

A frame is one MessagePack array behind a header with the front's epoch, the number of the frame in it, and a checksum.
"""

from __future__ import annotations

import struct
from itertools import chain
from typing import NamedTuple

import msgspec

from terrazzo.replication.checked_bytes import HEAD_BYTES, FrameDamaged, check_bytes, checked_bytes
from terrazzo.replication.front_events import FrontEvent

VERSION = 1
MOST_BYTES = 64 << 20  # of a frame that is read

_MAGIC = b"TZi"
_REST = struct.Struct(">QQ")  # epoch, number
HEADER_BYTES = HEAD_BYTES + _REST.size
_FRAME_BYTES = 512  # of a frame without batches, its node's name among them
_PARTS_BYTES = 64  # of a batch or a tag without its texts
_MESSAGE_BYTES = 32  # of a message beside its bytes
_CHARACTER_BYTES = 4
_TEXTS_BYTES = 64 << 10  # of the names, the reason and the like of one report
_TOPIC_TIMES = 3 * _CHARACTER_BYTES  # how often a byte of a topic counts: it is in full, in the series, in the channel


class InTopic(msgspec.Struct, frozen=True, array_like=True):
    """A topic that reports came on, with what was worked out of it when its terminal was authorized."""

    topic: str  # in full
    series: str
    uid: str  # whose reports these are
    channel: str
    rejects: str  # the series of the terminal's rejects
    answers: bool  # whether Correlation Data here names a command


class InMessage(NamedTuple):
    """A report: its payload as it is opened, or, with ``reject``, as it came and why it can't become a record."""

    topic: InTopic
    payload: bytes
    correlation: bytes | None = None
    reject: str | None = None


class InBatch(msgspec.Struct, array_like=True):
    """Reports that arrived together on one connection, in their order.

    ``topics``: of each message, its place in the frame's ``topics``; ``correlations`` and ``rejects`` by index.
    """

    client_id: str
    owner: str  # the company's id
    session: int  # tells connections of one client id apart: when it was made, UTC microseconds
    arrived_us: int
    topics: list[int] = []
    payloads: list[bytes] = []
    correlations: dict[int, bytes] = {}
    rejects: dict[int, str] = {}


class InFrame(msgspec.Struct, array_like=True):
    """One frame of a front."""

    node: str
    topics: list[InTopic] = []
    batches: list[InBatch] = []
    events: list[FrontEvent] = []  # came before the reports


class Numbered(NamedTuple):
    """A frame with the epoch of its front and its number in it, from 1 on."""

    epoch: int
    number: int
    frame: InFrame


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(InFrame)


def encode_in_frame(numbered: Numbered) -> bytes:
    """The bytes of a frame."""
    return checked_bytes(_MAGIC, VERSION, _REST.pack(numbered.epoch, numbered.number) + _encode(numbered.frame))


def decode_in_frame(data: bytes) -> Numbered:
    """A frame of its bytes.

    Raises:
        FrameDamaged, FrameTooNew: says why.
    """
    check_bytes(data, magic=_MAGIC, version=VERSION, least=HEADER_BYTES)
    epoch, number = _REST.unpack_from(data, HEAD_BYTES)
    try:
        frame = _decoder.decode(memoryview(data)[HEADER_BYTES:])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise FrameDamaged(f"what a front has taken can't be read: {error}") from None
    of_batches = [batch.topics for batch in frame.batches]
    places = set(chain.from_iterable(of_batches))
    is_named = not places or 0 <= min(places) <= max(places) < len(frame.topics)
    if not is_named or list(map(len, of_batches)) != [len(batch.payloads) for batch in frame.batches]:
        raise FrameDamaged("what a front has taken has a report of a topic that it doesn't name")
    return Numbered(epoch, number, frame)


def most_in_frame(packet_bytes: int, topic_bytes: int) -> int:
    """The bytes that a frame needs for the largest report, by the limits of packets and of topics in them."""
    return packet_bytes + _TOPIC_TIMES * topic_bytes + _TEXTS_BYTES


class InFrames:
    """Puts reports together in frames of at most ``most_bytes`` each."""

    def __init__(self, node: str, most_bytes: int) -> None:
        self.done: list[InFrame] = []
        self._node = node
        self._room = most_bytes - HEADER_BYTES - _FRAME_BYTES
        self._begin()

    def begin_batch(self, client_id: str, owner: str, session: int, arrived_us: int) -> None:
        """What is added from now on has arrived together on one connection."""
        self._batch = InBatch(client_id, owner, session, arrived_us, [], [], {}, {})
        self._is_listed = False

    def add(self, message: InMessage) -> None:
        """Adds a report to the batch that was begun.

        Raises:
            ValueError: it is larger than a frame may be.
        """
        size = self._size(message)
        if size > self._left:
            if size > self._room:
                raise ValueError(
                    f"a report of {len(message.payload):,} bytes is larger than the log takes in one piece"
                )
            self._begin()
            before = self._batch
            self.begin_batch(before.client_id, before.owner, before.session, before.arrived_us)
        self._left -= size
        if not self._is_listed:
            self._frame.batches.append(self._batch)
            self._is_listed = True
        self._put(message)

    def add_batch(self, batch: InBatch, topic: InTopic) -> None:
        """Adds a batch of reports of one topic that have nothing but payloads; its ``topics`` are set here.

        It is as if each was added to it; the payloads are the batch's own.
        """
        payloads, count = batch.payloads, len(batch.payloads)
        size = len(payloads[0]) if count == 1 else sum(map(len, payloads))
        size += _MESSAGE_BYTES * count + (len(batch.client_id) + len(batch.owner)) * _CHARACTER_BYTES + _PARTS_BYTES
        if id(topic) not in self._places:
            size += _topic_size(topic)
        if size > self._left:  # where a frame ends, each is looked at
            self.begin_batch(batch.client_id, batch.owner, batch.session, batch.arrived_us)
            for payload in payloads:
                self.add(InMessage(topic, payload))
            return
        self._left -= size
        batch.topics = [self._place(topic)] * count
        self._frame.batches.append(batch)

    def _place(self, topic: InTopic) -> int:
        """The topic's place in the frame, which has it then; found by its identity, as comparing takes longer."""
        place = self._places.get(id(topic))
        if place is None:
            place = self._places[id(topic)] = len(self._frame.topics)
            self._frame.topics.append(topic)
        return place

    def _put(self, message: InMessage) -> None:
        batch, place = self._batch, self._place(message.topic)
        index = len(batch.payloads)
        batch.topics.append(place)
        batch.payloads.append(message.payload)
        if message.correlation is not None:
            batch.correlations[index] = message.correlation
        if message.reject is not None:
            batch.rejects[index] = message.reject

    def _begin(self) -> None:
        self._frame = InFrame(self._node, [], [])
        self.done.append(self._frame)
        self._places: dict[int, int] = {}  # of topics, by identity
        self._left = self._room

    def _size(self, message: InMessage) -> int:
        """No less than the bytes by which a report makes the frame longer."""
        size = len(message.payload) + len(message.correlation or b"") + _MESSAGE_BYTES
        size += len(message.reject or "") * _CHARACTER_BYTES
        if id(message.topic) not in self._places:
            size += _topic_size(message.topic)
        if not self._is_listed:
            size += (len(self._batch.client_id) + len(self._batch.owner)) * _CHARACTER_BYTES + _PARTS_BYTES
        return size


def _topic_size(topic: InTopic) -> int:
    """No less than the bytes by which a topic makes the frame longer."""
    texts = (topic.topic, topic.series, topic.uid, topic.channel, topic.rejects)
    return sum(map(len, texts)) * _CHARACTER_BYTES + _PARTS_BYTES
