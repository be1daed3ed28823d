"""The nodes of a cluster: each writes a record of itself, by which the log is trimmed and operators see how it is."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import msgspec

from terrazzo.ports.stream import LogState, RecordChanged, Records

PREFIX = "node."
LINEAGE = "lineage"


class Member(msgspec.Struct, frozen=True):
    """One node as it last described itself. ``seen_us``: by its own clock, for people to read."""

    node: str
    run: str
    version: str
    sequence: int  # the last frame that its store has
    leads: bool
    seen_us: int
    sync: str = ""  # what it knows of whether the log syncs
    has_ended: bool = False  # in order
    url: str = ""  # where its HTTP port is reached
    reads: bool = False  # it answers reads, though it doesn't lead
    age_s: float = -1.0  # all that was acknowledged so long before is in its store; -1: not known
    fronts_sequence: int = -1  # of the leader: the frame of fronts up to which all is stored; -1: not known


class NodeTaken(Exception):
    """Another process runs under this node's name."""


class OwnRecord:
    """This node's record; nobody else writes it, unless two nodes have one name."""

    def __init__(self, records: Records, node: str) -> None:
        self._records = records
        self._key = PREFIX + node
        self._node = node
        self._revision = 0
        self._writing = asyncio.Lock()

    async def claim(self, watch_s: float) -> None:
        """Takes over the record of an earlier start, if nobody writes it for a while.

        Raises:
            NodeTaken: somebody does.
            LogUnavailable: unknown.
        """
        before = await self._records.get(self._key)
        if before is None:
            return
        await asyncio.sleep(watch_s)
        found = await self._records.get(self._key)
        if found is not None and found.revision != before.revision:
            raise NodeTaken(f"cluster.node: another process runs as {self._node!r}: each node needs a name of its own")
        self._revision = found.revision if found is not None else 0

    async def write(self, member: Member) -> None:
        """Writes it.

        Raises:
            NodeTaken: somebody else has written it since.
            LogUnavailable: unknown.
        """
        value = msgspec.json.encode(member)
        async with self._writing:
            try:
                self._revision = await self._records.put(self._key, value, revision=self._revision)
            except RecordChanged:
                found = await self._records.get(self._key)
                if found is not None and _member(found.value).run != member.run:
                    raise NodeTaken(f"cluster.node: another process runs as {self._node!r}") from None
                self._revision = found.revision if found is not None else 0


def members_of(records: Mapping[str, bytes]) -> list[Member]:
    """The nodes among all records, by name."""
    return [_member(value) for key, value in sorted(records.items()) if key.startswith(PREFIX)]


def _member(value: bytes) -> Member:
    try:
        return msgspec.json.decode(value, type=Member)
    except msgspec.MsgspecError:
        return Member("?", "?", "?", 0, leads=False, seen_us=0)


def trim_before(log: LogState, members: list[Member]) -> int:
    """The frame before which the log may be trimmed, 0 for not at all.

    All is kept while the log is not half full, so that a node can come from a backup; then what all nodes have goes,
    as far as it has to.
    """
    count = log.last - log.first + 1
    if log.most <= 0 or log.size <= log.most // 2 or count <= 0 or not members:
        return 0
    needless = -(-count * (log.size - log.most // 2) // log.size)
    before = min(log.first + needless, min(member.sequence for member in members) + 1)
    return before if before > log.first else 0
