"""Live frames as bytes: entries, gaps and ends as JSON, and their framing for TCP and WebSocket."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

import msgspec

Framing = Callable[[bytes], bytes]
"""Wraps one frame for a transport: ``as_line`` or ``as_message``."""

_TEXT = 0x81  # FIN and opcode 1 [RFC 6455, 5.2]
_encode = msgspec.json.Encoder().encode


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


class _GapFrame(msgspec.Struct):
    resp: str
    subscription: int
    gap: Gap


class _EndFrame(msgspec.Struct):
    resp: str
    subscription: int
    end: End


class FrameEntry:
    """One publication in a feed; its JSON is encoded when it is first sent, once for all subscribers."""

    __slots__ = ("_data", "_encoded", "_tail", "framed", "kind", "seq", "size", "style")

    def __init__(self, kind: str, data: Callable[[], Any] | None, *, size: int, encoded: bytes = b"") -> None:
        self.kind = kind
        self.seq = 0  # set when it is published
        self.size = size  # bytes, roughly: what a feed counts
        self._data = data
        self._encoded = encoded
        self._tail: bytes | None = None
        self.style: Style | None = None  # of ``framed``
        self.framed = b""  # as it was last sent: most subscribers are sent the same

    @classmethod
    def of(cls, kind: str, data: Any) -> FrameEntry:
        """An entry whose data is encoded now, because it may change afterwards."""
        encoded = _encode(data)
        return cls(kind, None, size=len(encoded) + 100, encoded=encoded)

    @property
    def tail(self) -> bytes:
        """The frame's bytes after the number of the subscription: kind, number and data, the same for everybody."""
        if self._tail is None:
            data = self._encoded if self._data is None else _encode(self._data())
            self._tail = b',"kind":"%b","seq":%d,"data":%b}' % (self.kind.encode(), self.seq, data)
            self._data, self._encoded = None, b""
        return self._tail


class Style(NamedTuple):
    """What makes one subscriber's frames differ from another's."""

    label: int  # the number of the subscription
    framing: Framing

    def frame(self, entry: FrameEntry) -> bytes:
        """An entry as a frame of this style; the entry keeps it for the next subscriber of the same style."""
        entry.framed = self.framing(b'{"resp":"live","subscription":%d' % self.label + entry.tail)
        entry.style = self
        return entry.framed


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
