"""Reads the bodies that are kept as they are."""

from __future__ import annotations

from terrazzo_adapters.segments.chunks import decode_chunk
from terrazzo_adapters.segments.parts import HEAD, Parts, SegmentDamaged, body_part


class KeptBodies:
    """The bodies in chunks, counted from 0."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._last: tuple[int, list[bytes]] = (-1, [])  # readers go forward

    def between(self, start: int, stop: int) -> list[bytes]:
        """The bodies from ``start`` to ``stop``, exclusive."""
        found: list[bytes] = []
        first = 0
        for number, count in enumerate(self._parts.head.chunks):
            if first < stop and start < first + count:
                found += self._chunk(number, count)[max(0, start - first) : stop - first]
            first += count
        if len(found) != stop - start:
            raise SegmentDamaged(HEAD, "counts that don't fit")
        return found

    def _chunk(self, number: int, count: int) -> list[bytes]:
        if self._last[0] != number:
            self._last = number, self._parts.decoded(body_part(number), lambda data: decode_chunk(data, count))
        return self._last[1]
