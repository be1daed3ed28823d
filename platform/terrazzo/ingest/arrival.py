"""``Arrival``: a batch of publishes on its way through the pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from terrazzo.domain.payload import Points, decode, has_many_values
from terrazzo.domain.payloads.stored import marked_raw
from terrazzo.ingest.report_tag import ReportTag
from terrazzo_broker.hooks import Batch

LONG = 16 * 1024
"""Bytes of a payload that may have so many values that it is decoded elsewhere."""


class FlatPoints(dict[str, Any]):
    """The points of a payload, flat and within the limits already. ``text``: the payload as JSON, where it is told."""

    text: bytes = b""


class LongPayload(NamedTuple):
    """What was read elsewhere of a long payload: its ``Time``, and its points where anything maps them."""

    stamp: Any
    points: FlatPoints


class DecodedPayload(NamedTuple):
    """A payload as a decoder got it, and what it made of that: a JSON object of points, or why it doesn't.

    None: it was to be read elsewhere, and could not.
    """

    payload: bytes
    found: bytes | LongPayload | Exception | None


class Arrival(msgspec.Struct):
    """A batch in the pipeline: its size, how far it is decoded, and which of its messages were rejected and why.

    ``next`` is the index of the next message to decode; ``refusals`` are MQTT reason codes by index; ``opened``: what
    was sealed and is opened already, or why it doesn't open; ``waits``: what is next has to be opened first;
    ``decoded``: what a decoder has read already; ``undecoded``: what is next has to be read by one first. Most have
    none of these.
    """

    batch: Batch
    size: int  # payload bytes
    share: Any = None  # its owner's in the backlog
    next: int = 0
    refusals: dict[int, int] | None = None
    opened: dict[int, bytes | Exception] | None = None
    waits: bool = False
    decoded: dict[int, DecodedPayload] | None = None
    undecoded: bool = False
    unplanned: str = ""  # a terminal whose plans have to be made first
    is_held: bool = False  # nothing more is read from its connection until it is decoded
    connection: Any = None  # among those that take turns
    is_mapped: bool = False  # what is next goes into objects

    @property
    def is_stuck(self) -> bool:
        """Whether what is next has to wait for something that is done elsewhere."""
        return self.waits or self.undecoded or bool(self.unplanned)

    def hold(self) -> None:
        """Nothing more is read from its connection until it is decoded."""
        if not self.is_held:
            self.is_held = True
            self.batch.hold()

    def release(self) -> None:
        """Its connection is read again."""
        if self.is_held:
            self.is_held = False
            self.batch.release()

    def refuse(self, index: int, reason: int) -> None:
        """Has a message answered with a reason code."""
        if self.refusals is None:
            self.refusals = {}
        self.refusals[index] = reason

    def add_opened(self, opened: Mapping[int, bytes | Exception]) -> None:
        """Takes what was sealed, or why it doesn't open, by index."""
        self.opened = {**(self.opened or {}), **opened}

    def is_decoded(self, index: int) -> bool:
        """Whether a decoder has read a payload already."""
        return self.decoded is not None and index in self.decoded

    def take_decoded(self, index: int) -> DecodedPayload:
        """What a decoder has made of a payload that ``is_decoded``."""
        assert self.decoded is not None
        return self.decoded.pop(index)

    def has_all_of(self, index: int, tag: ReportTag) -> bool:
        """Whether a payload is opened and decoded as far as that is done elsewhere; if not, it says what is first."""
        if self.is_decoded(index):
            return True
        if tag.seal is not None and tag.seal.is_slow and not self.is_opened(index):
            self.waits = True
        elif tag.form is not None and tag.form.decoder:
            self.undecoded = True
        else:
            self.undecoded = has_many_values(self.opened_of(index, tag))
        return not (self.waits or self.undecoded)

    def read(self, index: int, tag: ReportTag, payload: bytes) -> tuple[bytes, Points, Any]:
        """The body to store of a payload that has a form or is long, its points, and its ``Time``; raises what is wrong
        with it."""
        if self.is_decoded(index):
            payload, found = self.take_decoded(index)
            if isinstance(found, Exception):
                try:
                    raise found
                finally:
                    del found  # else it would keep this frame, and the payload, until the collector comes
            if isinstance(found, LongPayload):
                return payload.lstrip(), found.points, found.stamp
            if found is not None:
                points = decode(found)
                return marked_raw(payload), points, points.get("Time")
        elif tag.seal is not None:
            payload = self.open(index, tag, payload)
        points = decode(payload) if tag.form is None else tag.form.read_array(payload)
        return payload.lstrip(), points, points.get("Time")

    def opened_of(self, index: int, tag: ReportTag) -> bytes:
        """A payload, opened where it was sealed; empty where it doesn't open, of which ``open`` says why."""
        payload = self.batch.messages[index].payload
        if tag.seal is None:
            return payload
        try:
            opened = self.open(index, tag, payload)
        except Exception as error:  # noqa: BLE001 - raised again by ``open``
            self.add_opened({index: error})
            return b""
        self.add_opened({index: opened})
        return opened

    def is_opened(self, index: int) -> bool:
        """Whether a sealed payload is opened already."""
        return self.opened is not None and index in self.opened

    def open(self, index: int, tag: ReportTag, sealed: bytes) -> bytes:
        """The payload inside a sealed one; raises what ``Seal.open`` raises."""
        found = None if self.opened is None else self.opened.pop(index, None)
        if found is None:
            assert tag.seal is not None
            return tag.seal.open(sealed)
        if isinstance(found, Exception):
            try:
                raise found
            finally:
                del found
        return found
