"""How far the leader is in what fronts have taken: a note of its store, in the commit of what follows from it."""

from __future__ import annotations

from heapq import nlargest

import msgspec

from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.stream import LogState, LogWentBack

MOST_WRITERS = 1_000
"""Fronts of which a position knows the last frame: those that started last. It is written with each commit."""

IN_NOTE = "cluster/in"
"""The note of the store that has the position, written in the commit of the records."""


class InPosition(msgspec.Struct, frozen=True, array_like=True):
    """All frames up to ``sequence`` of the log of reports that was made at ``created`` are stored.

    ``writers``: of each front, the epoch and number of the last of its frames among these; so a frame that is in the
    log twice is stored once. ``begun``: of later frames, how many messages of each of their batches are stored.
    """

    created: str
    sequence: int
    writers: dict[str, tuple[int, int]] = {}
    begun: dict[int, list[int]] = {}

    def encode(self) -> bytes:
        """As a note's value."""
        return msgspec.msgpack.encode(self)


def newest_writers(writers: dict[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
    """At most ``MOST_WRITERS`` of them; epochs are times of starts, so that a front that is gone is left out first.

    What a front sends twice it sends within minutes: of one that is left out nothing comes any more.
    """
    if len(writers) <= MOST_WRITERS:
        return writers
    return dict(nlargest(MOST_WRITERS, writers.items(), key=lambda each: each[1]))


async def read_in_position(store: TimeSeriesStore, log: LogState) -> InPosition:
    """Where the store goes on in the log of reports.

    Raises:
        LogWentBack: it isn't the one that it was, or has lost frames; says what to do.
        StoreUnavailable: the store doesn't answer.
    """
    note = (await store.notes(IN_NOTE)).get(IN_NOTE)
    return join_in(None if note is None else note, log)


def join_in(note: bytes | None, log: LogState) -> InPosition:
    """The position of a note in a log; of no note, that before its first frame. Raises as ``read_in_position``."""
    if note is None:
        position = InPosition(log.created, 0)
    else:
        try:
            position = msgspec.msgpack.decode(note, type=InPosition)
        except msgspec.MsgspecError as error:
            raise LogWentBack(f"the store's position in the fronts' log can't be read ({error}); {_WAY_OUT}") from None
    if position.created != log.created:
        raise LogWentBack(
            f"the fronts' log was made at {log.created}, and this node has stored one that was made at"
            f" {position.created}: it was deleted or is another one; {_WAY_OUT}"
        )
    if log.last < position.sequence:
        raise LogWentBack(
            f"the fronts' log ends at frame {log.last:,}, and {position.sequence:,} are stored: it has lost frames;"
            f" {_WAY_OUT}"
        )
    if log.first > position.sequence + 1:
        raise LogWentBack(
            f"the fronts' log begins at frame {log.first:,}, and frame {position.sequence + 1:,} is not stored yet;"
            f" {_WAY_OUT}"
        )
    return position


_WAY_OUT = "docs/scaling.md says what to do"
