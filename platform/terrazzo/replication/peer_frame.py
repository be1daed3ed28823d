"""What nodes that terminals connect to tell each other: which topic filters their clients have, and messages for these.

A frame goes as a request from one node to another, one at a time, until it is answered; nothing of it is in the log.
"""

from __future__ import annotations

from enum import IntEnum

import msgspec

from terrazzo.replication.node_message import NodeMessages, VersionedMessages

VERSION = 1


class PeerMessage(msgspec.Struct, frozen=True, array_like=True):
    """A message that clients at another node are to have. ``properties``: encoded, as MQTT 5 has them."""

    owner: str  # the company's id
    topic: bytes  # UTF-8
    payload: bytes
    qos: int
    retain: bool = False
    properties: bytes = b""
    expires_us: int = 0  # UTC microseconds, 0 is never
    shared: str = ""  # the shared subscription of which one member is to have it; empty: all that match

    @property
    def size(self) -> int:
        """About how many bytes it takes."""
        return len(self.topic) + len(self.payload) + len(self.properties) + len(self.shared) + 200


class PeerFrame(msgspec.Struct, frozen=True, array_like=True):
    """One frame. ``number`` rises by one with each; ``begins`` to ``ends``: all filters are named anew."""

    version: int
    node: str  # who tells it
    epoch: int  # which of its starts
    to_epoch: int  # of which start of the other it knows
    number: int
    begins: bool = False
    ends: bool = False
    heard: list[tuple[str, str]] = []  # owner and filter that clients of ``node`` have from now on
    unheard: list[tuple[str, str]] = []  # and no more
    messages: list[PeerMessage] = []


class PeerState(IntEnum):
    """What became of a frame."""

    TAKEN = 0  # its messages are delivered, or queued in sessions, in a moment
    ANEW = 1  # nothing is known of what was told before: all filters have to be named
    LATER = 2  # there is no room
    REFUSED = 3  # it can't be read, or is of a former start


class PeerAnswer(msgspec.Struct, frozen=True, array_like=True):
    """What became of a frame, and which start of the node says so."""

    state: int
    epoch: int


_frames = VersionedMessages(PeerFrame, "what another node has told", VERSION)
_answers = NodeMessages(PeerAnswer, "what another node has answered")


def encode_peer_frame(frame: PeerFrame) -> bytes:
    """The bytes of a frame."""
    return _frames.encode(frame)


def decode_peer_frame(data: bytes) -> PeerFrame:
    """A frame of its bytes.

    Raises:
        NodeMessageDamaged: says why.
    """
    return _frames.decode(data)


def encode_peer_answer(answer: PeerAnswer) -> bytes:
    """The bytes of an answer."""
    return _answers.encode(answer)


def decode_peer_answer(data: bytes) -> PeerAnswer:
    """An answer of its bytes.

    Raises:
        NodeMessageDamaged: says why.
    """
    return _answers.decode(data)


def peer_calls(name: str) -> str:
    """Where a node is told such frames; no front's name has a full stop."""
    return f"peer.{name}"
