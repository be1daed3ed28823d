"""What nodes tell each other or keep for one another: MessagePack arrays that name their version first."""

from __future__ import annotations

from typing import Generic, Protocol, TypeVar

import msgspec


class NodeMessageDamaged(ValueError):
    """Bytes that are no such message, or one of a later version; ``str()`` says why."""


class Versioned(Protocol):
    """A message that says of which version it is."""

    @property
    def version(self) -> int:
        """The version in which it was written."""
        ...


T = TypeVar("T")
V = TypeVar("V", bound=Versioned)

_encode = msgspec.msgpack.Encoder().encode


class NodeMessages(Generic[T]):
    """Messages of one kind to bytes and back. ``what`` names the kind in errors."""

    __slots__ = ("_decode", "_what")

    def __init__(self, kind: type[T], what: str) -> None:
        self._decode = msgspec.msgpack.Decoder(kind).decode
        self._what = what

    def encode(self, message: T) -> bytes:
        """The bytes of a message."""
        return _encode(message)

    def decode(self, data: bytes) -> T:
        """A message of its bytes.

        Raises:
            NodeMessageDamaged: says why.
        """
        try:
            return self._decode(data)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:  # nested without end
            raise NodeMessageDamaged(f"{self._what} can't be read: {error}") from None


class VersionedMessages(NodeMessages[V]):
    """Messages that name their version; ``newest``: the one that this program reads."""

    __slots__ = ("_newest",)

    def __init__(self, kind: type[V], what: str, newest: int) -> None:
        super().__init__(kind, what)
        self._newest = newest

    def decode(self, data: bytes) -> V:
        """A message of its bytes, of no later version."""
        found = super().decode(data)
        if found.version > self._newest:
            raise NodeMessageDamaged(f"{self._what} has version {found.version}, and this node reads {self._newest}")
        return found
