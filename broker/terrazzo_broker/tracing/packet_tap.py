"""Shows the packets of one connection, in both directions, to whoever looks.

A connection at which nobody looks is none the wiser: its reader and its transport are exchanged while it lasts, and
nothing in the packet loop asks for it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from ..codec.errors import PacketError
from ..codec.wire import parse_frame
from ..connection import Connection
from ..limited_log import limited_logger

HEAD_BYTES = 2_048  # of a packet's body

fault_log = limited_logger("terrazzo_broker.faults")


class TappedPacket(NamedTuple):
    """One packet: its first byte, its whole size and the beginning of its body."""

    is_in: bool  # from the client
    header: int
    size: int
    body: bytes  # ``HEAD_BYTES`` at most
    protocol: int  # 3 is MQTT 3.1, 4 is 3.1.1, 5 is 5.0


OnPacket = Callable[[TappedPacket], object]


class _TappedReader:
    """Reads as ``inner`` does, and shows what it has read."""

    __slots__ = ("inner", "on_packet")

    def __init__(self, inner: Callable[[Connection, bytes], None], on_packet: OnPacket) -> None:
        self.inner = inner
        self.on_packet = on_packet

    def __call__(self, connection: Connection, data: bytes) -> None:
        try:
            self.inner(connection, data)
        finally:
            rest = 0 if connection.partial is None else len(connection.partial)  # comes again, with what follows
            _show(self.on_packet, data[: len(data) - rest], connection.level, is_in=True)


class _TappedTransport:
    """Is ``inner``, and shows what is written."""

    __slots__ = ("inner", "level", "on_packet")

    def __init__(self, inner: asyncio.Transport, on_packet: OnPacket, level: int) -> None:
        self.inner = inner
        self.on_packet = on_packet
        self.level = level

    def write(self, data: bytes) -> None:
        self.inner.write(data)
        _show(self.on_packet, data, self.level, is_in=False)

    def writelines(self, pieces: Sequence[bytes]) -> None:
        self.write(b"".join(pieces))  # a packet may be in several

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


def tap(connection: Connection, on_packet: OnPacket) -> None:
    """Has ``on_packet`` called with each packet of a connection that is open, instead of whoever looked before."""
    untap(connection)
    connection.flush()  # what belongs to the time before
    connection.handle_packets = _TappedReader(connection.handle_packets, on_packet)
    connection.transport = cast(asyncio.Transport, _TappedTransport(connection.transport, on_packet, connection.level))


def untap(connection: Connection) -> None:
    """Leaves a connection as it was."""
    reader, transport = connection.handle_packets, cast(object, connection.transport)
    if isinstance(reader, _TappedReader):
        connection.handle_packets = reader.inner
    if isinstance(transport, _TappedTransport):
        connection.transport = transport.inner


def _show(on_packet: OnPacket, data: bytes, level: int, *, is_in: bool) -> None:
    """Shows the whole packets in ``data``; a fault of who looks is no fault of the connection."""
    position, size = 0, len(data)
    try:
        while position < size:
            frame = parse_frame(data, position)
            if frame is None:
                return
            start, end = frame
            body = data[start : min(end, start + HEAD_BYTES)]
            on_packet(TappedPacket(is_in, data[position], end - position, body, level))
            position = end
    except PacketError:
        return  # what can't be read has ended the connection, which says why
    except Exception:  # noqa: BLE001 - as said
        fault_log.exception("a packet can't be shown")
