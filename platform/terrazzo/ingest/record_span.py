"""Which records of a group come from which messages of which arrival."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from terrazzo.ingest.arrival import Arrival


class RecordSpan(msgspec.Struct, frozen=True):
    """Consecutive records of a group that come from consecutive messages of one arrival, one each."""

    start: int  # index of the first one in the group's ``records``
    arrival: Arrival
    first: int  # index of the first message in the arrival's batch


class CountedSpan(NamedTuple):
    """A ``RecordSpan`` with how many records it has."""

    start: int
    arrival: Arrival
    first: int
    records: int


def counted(spans: Sequence[RecordSpan], records: int) -> Iterator[CountedSpan]:
    """Spans, of so many records in all, each with its own number."""
    for span, end in zip(spans, [*(span.start for span in spans[1:]), records], strict=True):
        yield CountedSpan(span.start, span.arrival, span.first, end - span.start)
