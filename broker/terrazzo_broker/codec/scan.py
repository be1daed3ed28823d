"""Finds consecutive packets of one kind in the bytes of one read, in one pass; no I/O, no state."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import repeat
from typing import Generic, NamedTuple, Protocol, TypeVar

from .wire import parse_frame

RUNS = QOS0, QOS1, QOS2 = 0x30, 0x32, 0x34  # the first byte of a PUBLISH without DUP and RETAIN
ACK_BYTES = 4  # a PUBACK, PUBREC, PUBREL or PUBCOMP without a reason
_SHORTEST_BYTES = 5  # of a PUBLISH with a topic
_CHUNK_BYTES = 4096  # looked at in one go


class TopicRoute(Protocol):
    """A route (``delivery.routing.Route``), as scanning needs it."""

    @property
    def fan(self) -> object:
        """The receivers: the same object in routes that lead to the same ones."""
        ...

    @property
    def run_messages(self) -> int:
        """How many publishes are taken at once."""
        ...


R = TypeVar("R", bound=TopicRoute)


class PublishRun(NamedTuple, Generic[R]):
    """Consecutive publishes of one kind to the same receivers: where each one's payload starts and ends, its route."""

    starts: list[int]
    ends: list[int]
    routes: list[R]


def scan_publishes(
    data: bytes, position: int, routes: Mapping[bytes, R], *, version: int, limit: int
) -> PublishRun[R] | None:
    """The publishes from ``position`` on that start with the same byte and go where the first one goes.

    ``routes`` has them by topic field, the two bytes of its length included. None: the first is on none of them.

    Ends before the first that has properties, isn't complete or isn't well formed, or is larger than ``limit``;
    and after as many as its route takes at once.
    """
    size, last = len(data), len(data) - _SHORTEST_BYTES
    frame = _body(data, position) if position <= last else None
    if frame is None:
        return None
    start, end = frame
    field = data[start : start + 2 + (data[start] << 8 | data[start + 1])]
    route = routes.get(field)
    if route is None:
        return None
    starts: list[int] = []
    ends: list[int] = []
    found: list[R] = []
    fan, width, header, has_properties = route.fan, len(field), data[position], version == 5
    skip = (header != QOS0) * 2 + has_properties  # between topic and payload
    for _ in repeat(None, route.run_messages):
        payload = start + width + skip
        if end > size or end - position > limit or payload > end or (has_properties and data[payload - 1]):
            break
        starts.append(payload)
        ends.append(end)
        found.append(route)
        position = end
        if position > last or data[position] != header:
            break
        start = position + 2
        length = data[position + 1]
        if length < 128:
            end = start + length
        elif 0 < data[start] < 128:
            start += 1
            end = start + (length & 127 | data[start - 1] << 7)
        else:
            frame = _body(data, position)
            if frame is None:
                break
            start, end = frame
        here = data[start : start + width]
        if here != field:
            other = routes.get(here)  # topics that alternate often have one length
            if other is None:
                here = data[start : start + 2 + (data[start] << 8 | data[start + 1])]
                other, width = routes.get(here), len(here)
            if other is None or other.fan is not fan:
                break
            route, field = other, here
    return PublishRun(starts, ends, found)


def _body(data: bytes, position: int) -> tuple[int, int] | None:
    """Where a packet's body starts and ends; None while its length and two bytes of it haven't all arrived.

    At ``position`` there are ``_SHORTEST_BYTES`` at least.
    """
    length, more = data[position + 1], data[position + 2]
    if length < 128:
        return position + 2, position + 2 + length
    if 0 < more < 128:
        return position + 3, position + 3 + (length & 127 | more << 7)
    frame = parse_frame(data, position)
    return None if frame is None or len(data) - frame[0] < 2 else frame


def scan_acks(data: bytes, position: int) -> tuple[int, ...]:
    """The packet identifiers of acknowledgements from ``position`` on that are like the first and have no reason."""
    if not data.startswith(data[position : position + 2], position + ACK_BYTES):
        return (data[position + 2] << 8 | data[position + 3],)
    whole = min(len(data) - position, _CHUNK_BYTES) // ACK_BYTES * ACK_BYTES
    chunk = data[position : position + whole]
    kinds = chunk[0::ACK_BYTES]
    count = len(kinds) - len(kinds.lstrip(chunk[:1]))
    lengths = chunk[1 : count * ACK_BYTES : ACK_BYTES]
    count = len(lengths) - len(lengths.lstrip(b"\x02"))
    identifiers: tuple[int, ...] = struct.unpack(f">{count * 2}H", chunk[: count * ACK_BYTES])[1::2]
    return identifiers
