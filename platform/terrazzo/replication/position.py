"""How far a store is in which log, and whether it may follow the one that is there: all that is decided about it."""

from __future__ import annotations

import msgspec

from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.stream import LogState, LogWentBack

NOTE = "cluster/position"
"""The note of the store that has its position, written in the commit of what it follows from."""


class Position(msgspec.Struct, frozen=True, array_like=True):
    """Where a store is: it has all that the frames up to ``sequence`` say of the log that was made at ``created``.

    ``lineage`` names what the log's first frame builds on; stores of one lineage and one sequence are equal.
    """

    lineage: str
    created: str
    sequence: int
    epoch: int  # of the writer of that frame

    def encode(self) -> bytes:
        """As a note's value."""
        return msgspec.msgpack.encode(self)


class Lineage(msgspec.Struct, frozen=True):
    """What a cluster's log builds on; a record that its first node makes.

    ``is_seeded``: that node's store had records already, so that nobody can follow from an empty one.
    """

    id: str
    created: str  # the log
    is_seeded: bool


class JoinRefused(Exception):
    """This store may not follow this log; ``str()`` says what to do."""


_COPY = "fill this node's data folder from a backup of another node, as docs/scaling.md says"


def check_next(sequence: int, *, behind: int) -> None:
    """Refuses a frame that doesn't follow the one that was read last.

    Raises:
        LogWentBack: says which.
    """
    if sequence != behind + 1:
        raise LogWentBack(f"frame {sequence:,} of the log came behind {behind:,}: this node begins anew where it was")


async def read_position(store: TimeSeriesStore) -> Position | None:
    """Where a store is; None for one that never was in a cluster.

    Raises:
        JoinRefused: the note can't be read.
    """
    note = (await store.notes(NOTE)).get(NOTE)
    if note is None:
        return None
    try:
        return msgspec.msgpack.decode(note, type=Position)
    except msgspec.MsgspecError as error:
        raise JoinRefused(f"the store's position in the log can't be read ({error}): {_COPY}") from None


def join(position: Position | None, lineage: Lineage | None, log: LogState, *, is_empty: bool, new_id: str) -> Position:
    """Where a store goes on in a log; ``is_empty``: it has neither records nor notes.

    ``lineage`` is the cluster's, None for a cluster that is just made: then ``new_id`` becomes its lineage.

    Raises:
        JoinRefused, LogWentBack: it may not follow; says why and what to do.
    """
    if lineage is None:
        return _first(position, log, new_id)
    if position is not None and position.sequence == 0 and is_empty:
        position = None  # another node was faster to make the cluster
    if log.created != lineage.created:
        raise LogWentBack(
            f"the log was made at {log.created}, and the cluster's at {lineage.created}: it was deleted or is another"
            " one; docs/scaling.md says what to do"
        )
    if position is None:
        return _newcomer(lineage, log, is_empty=is_empty)
    if position.lineage != lineage.id or position.created != lineage.created:
        raise JoinRefused(f"the time series in this data folder are of another cluster: {_COPY}")
    if position.sequence > log.last:
        raise LogWentBack(
            f"the log's last frame is {log.last}, and this node has {position.sequence} already: the log has lost"
            " frames; docs/scaling.md says what to do"
        )
    if position.sequence + 1 < log.first:
        raise JoinRefused(f"the log begins at frame {log.first}, and this node needs {position.sequence + 1}: {_COPY}")
    return position


def _first(position: Position | None, log: LogState, new_id: str) -> Position:
    if position is not None and position.sequence == 0 and position.created == log.created and not log.last:
        return position  # an earlier start ended before it had written down that there is a cluster
    if position is not None:
        raise LogWentBack(
            "the cluster's records are gone from the log's servers, and this node was in a cluster before:"
            " docs/scaling.md says what to do"
        )
    if log.last:
        raise JoinRefused(f"the log has {log.last} frames of nobody's: set cluster.name to another name, or delete it")
    return Position(new_id, log.created, 0, 0)


def _newcomer(lineage: Lineage, log: LogState, *, is_empty: bool) -> Position:
    if not is_empty:
        raise JoinRefused(f"this data folder has time series of its own, and the cluster has others: {_COPY}")
    if lineage.is_seeded:
        raise JoinRefused(f"the cluster began with time series that are not in the log: {_COPY}")
    if log.first > 1:
        raise JoinRefused(f"the log begins at frame {log.first}, and an empty node needs the first: {_COPY}")
    return Position(lineage.id, lineage.created, 0, 0)
