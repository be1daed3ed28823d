"""Live frames as bytes: entries, gaps and ends as JSON, and their framing for TCP and WebSocket."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import msgspec

from terrazzo.live.selector import EVERY_KEY, LiveKind
from terrazzo.reasons import Reason

Framing = Callable[[bytes], bytes]
"""Wraps one frame for a transport: ``as_line`` or ``as_message``."""

_TEXT = 0x81  # FIN and opcode 1 [RFC 6455, 5.2]
ENTRY_BYTES = 180
"""What an entry takes of memory beside its data, and beside its frames."""

_FRAME_BYTES = 110  # what a frame takes beside the data in it

_encode = msgspec.json.Encoder().encode
_values_of = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Lost(Enum):
    """The ``reason`` of a gap: why frames can't be sent."""

    SLOW = "slow"  # the client takes less than happens
    FORGOTTEN = "forgotten"  # older than what is kept for those who come back
    RESTART = "restart"  # the number is from before this platform's start
    UNKNOWN = "unknown"  # the number is none that this platform has given


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """The frames after number ``since``, up to and including ``seq``, are missing and will not be sent."""

    since: int
    seq: int
    lost: int | None  # how many frames; None where that isn't known
    reason: Lost


class End(msgspec.Struct, frozen=True, kw_only=True):
    """Why the platform ended a subscription; ``code`` is one of the gateway's answer codes."""

    code: int
    info: str
    reason: Reason | msgspec.UnsetType = msgspec.UNSET


class _GapFrame(msgspec.Struct):
    resp: str
    subscription: int
    gap: Gap


class _EndFrame(msgspec.Struct):
    resp: str
    subscription: int
    end: End


class FrameEntry:
    """One publication in a feed; its JSON is encoded when it is first sent, once for all subscribers.

    Args:
        size: bytes of the data, roughly.
    """

    __slots__ = (
        "__weakref__",
        "_data",
        "_encoded",
        "_make",
        "_tail",
        "framed",
        "kind",
        "seq",
        "size",
        "style",
        "waits_for",
    )

    def __init__(self, kind: str, data: Callable[[], Any] | None, *, size: int, encoded: bytes = b"") -> None:
        self.kind = kind
        self.seq = 0  # set when it is published
        self.size = size + _FRAME_BYTES  # what a feed counts, once or twice
        self._data = data
        self._encoded = encoded
        self._tail: bytes | None = None
        self.style: Style | None = None  # of ``framed``
        self.framed = b""  # as it was last sent: most subscribers are sent the same
        self.waits_for: bytes | None = None  # of which JSON is made elsewhere: until then it can't be sent
        self._make: Callable[[bytes], Any] | None = None

    @classmethod
    def of_long(cls, kind: str, make: Callable[[bytes], Any], body: bytes, *, size: int) -> FrameEntry:
        """An entry that waits for the JSON of a stored body, of which ``make`` makes its data."""
        entry = cls(kind, None, size=size)
        entry.waits_for, entry._make = body, make
        return entry

    def on_made(self, json: bytes) -> None:
        """What it waits for is there."""
        make = self._make
        assert make is not None
        self._data, self._make, self.waits_for = lambda: make(json), None, None

    @classmethod
    def of(cls, kind: str, data: Any) -> FrameEntry:
        """An entry whose data is encoded now, because it may change afterwards."""
        encoded = _encode(data)
        return cls(kind, None, size=len(encoded), encoded=encoded)

    @property
    def tail(self) -> bytes:
        """The frame's bytes after the number of the subscription: kind, number and data, the same for everybody."""
        if self._tail is None:
            data = self._encoded if self._data is None else _encode(self._data())
            self._tail = b',"kind":"%b","seq":%d,"data":%b}' % (self.kind.encode(), self.seq, data)
            self._data, self._encoded = None, b""
        return self._tail

    def forget_frame(self) -> None:
        """Frees the frame as it was last sent; it is made again where somebody is sent it once more."""
        self.style, self.framed = None, b""


class Selectable:
    """A frame's tail as far as it has to be read to leave variables of a mosaic record out."""

    __slots__ = ("_data", "_frame", "_tail", "_values")

    def __init__(self, entry: FrameEntry) -> None:
        self._tail = entry.tail
        self._values: dict[str, msgspec.Raw] | None = None
        if entry.kind == LiveKind.MOSAIC.value:
            self._frame = _values_of(b'{"resp":"live"' + entry.tail)
            self._data = _values_of(self._frame["data"])
            self._values = _values_of(self._data["value"])

    def select(self, keys: frozenset[str]) -> bytes | None:
        """The tail with only these variables, where it is a mosaic record; None if it has none of them."""
        values = self._values
        if values is None:
            return self._tail
        codes = [code for code in keys if code in values]
        if len(codes) > 1:
            codes = [code for code in values if code in keys]  # in the record's order
        if not codes:
            return None
        data = {**self._data, "value": msgspec.Raw(_encode({code: values[code] for code in codes}))}
        head = {"kind": self._frame["kind"], "seq": self._frame["seq"], "data": msgspec.Raw(_encode(data))}
        return b"," + _encode(head)[1:]


class Style(NamedTuple):
    """What makes one subscriber's frames differ from another's."""

    label: int  # the number of the subscription
    framing: Framing
    keys: frozenset[str] = EVERY_KEY

    def frame(self, entry: FrameEntry) -> bytes:
        """An entry as a frame of this style; the entry keeps it for the next subscriber of the same style."""
        entry.framed = self.framing(b'{"resp":"live","subscription":%d' % self.label + entry.tail)
        entry.style = self
        return entry.framed

    def frame_of(self, tail: bytes) -> bytes:
        """A frame of this style with what all styles have in common."""
        return self.framing(b'{"resp":"live","subscription":%d' % self.label + tail)


def gap_frame(subscription: int, gap: Gap) -> bytes:
    """The frame that tells a subscription of a gap."""
    return _encode(_GapFrame("live", subscription, gap))


def end_frame(subscription: int, end: End) -> bytes:
    """The last frame of a subscription, with the reason for its end."""
    return _encode(_EndFrame("live", subscription, end))


def as_line(frame: bytes) -> bytes:
    """A frame for TCP: one line. A line feed inside can only be white space between JSON tokens."""
    return frame.replace(b"\n", b" ") + b"\n" if b"\n" in frame else frame + b"\n"


def as_message(frame: bytes) -> bytes:
    """A frame for WebSocket: one unmasked text message [RFC 6455, 5.2]."""
    size = len(frame)
    if size < 126:
        return bytes((_TEXT, size)) + frame
    if size < 1 << 16:
        return bytes((_TEXT, 126)) + size.to_bytes(2, "big") + frame
    return bytes((_TEXT, 127)) + size.to_bytes(8, "big") + frame
