"""Finds consecutive packets of one kind in the bytes of one read, in one pass; no I/O, no state."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from itertools import repeat
from typing import Generic, NamedTuple, Protocol, TypeVar

from .wire import parse_frame

QOS0, QOS1, QOS2 = 0x30, 0x32, 0x34  # the first byte of a PUBLISH without DUP and RETAIN
ACK_BYTES = 4  # a PUBACK, PUBREC, PUBREL or PUBCOMP without a reason
_CHUNK_BYTES = 4096  # looked at in one go


class TopicRoute(Protocol):
    """A route (``delivery.routing.Route``), as scanning needs it."""

    @property
    def fan(self) -> object:
        """The receivers: the same object in routes that lead to the same ones."""
        ...


R = TypeVar("R", bound=TopicRoute)


class PublishRun(NamedTuple, Generic[R]):
    """Consecutive publishes of one kind to the same receivers: where each one's payload starts and ends, its route."""

    starts: list[int]
    ends: list[int]
    routes: list[R]


def scan_publishes(
    data: bytes, position: int, field: bytes, routes: Mapping[bytes, R], *, version: int, limit: int, most: int
) -> PublishRun[R]:
    """The publishes from ``position`` on that start with the same byte and go where those of ``field`` go.

    ``routes`` has them by topic field, the two bytes of its length included.

    Ends before the first that has properties, isn't complete or isn't well formed, or is larger than ``limit``;
    and after ``most`` of them.
    """
    starts: list[int] = []
    ends: list[int] = []
    found: list[R] = []
    route = routes[field]
    fan = route.fan
    size, width, header = len(data), len(field), data[position]
    skip = 0 if header == QOS0 else 2
    has_properties = version == 5
    for _ in repeat(None, most):
        if size - position <= 3 or data[position] != header:
            break
        length, start = data[position + 1], position + 2
        if length > 127:
            if not 0 < data[start] < 128:
                frame = parse_frame(data, position)
                if frame is None:
                    break
                start, length = frame[0], frame[1] - frame[0]
            else:
                length = length & 127 | data[start] << 7
                start += 1
        payload, end = start + width + skip, start + length
        if end > size or end - position > limit or length < 2:
            break
        if data[start : start + width] != field:
            field = data[start : start + 2 + (data[start] << 8 | data[start + 1])]
            other = routes.get(field)
            if other is None or other.fan is not fan:
                break
            route, width = other, len(field)
            payload = start + width + skip
        if has_properties:
            if payload >= end or data[payload]:
                break
            payload += 1
        elif payload > end:
            break
        starts.append(payload)
        ends.append(end)
        found.append(route)
        position = end
    return PublishRun(starts, ends, found)


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
