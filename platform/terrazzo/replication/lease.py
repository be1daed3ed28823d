"""Who leads: one record with the leader's name and epoch, changed by compare-and-set only.

A leader writes the record again and again. Another node takes it when it has seen the same revision for as long as the
lease, looking all the while: what it couldn't read doesn't count, so that a log that chooses a leader expires nobody.
Clocks of different machines are never compared.
"""

from __future__ import annotations

import msgspec

from terrazzo.ports.stream import LogUnavailable, RecordChanged, Records, Revision

KEY = "leader"


class LeaseRecord(msgspec.Struct, frozen=True):
    """The record. ``run`` names one start of the node's process; ``is_free``: it was given back."""

    node: str
    run: str
    epoch: int
    beat: int = 0
    is_free: bool = False
    successor: str = ""  # with ``is_free``: the node for which it was given back; others let it have it
    url: str = ""  # where its HTTP port is reached


class LeaseLost(Exception):
    """Another node has the lease; ``str()`` says which."""


def decode_lease(found: Revision) -> LeaseRecord:
    """The record of a revision; one that can't be read is of nobody, and of epoch 0."""
    try:
        return msgspec.json.decode(found.value, type=LeaseRecord)
    except msgspec.MsgspecError:
        return LeaseRecord("?", "?", 0)


class LeaseWatch:
    """Decides when a lease may be taken, from what is read of it at which times (``now_s``, of one steady clock)."""

    def __init__(self, lease_s: float, node: str = "") -> None:
        """``node``: who wants it."""
        self._lease_s = lease_s
        self._node = node
        self._revision = -1
        self._since_s = 0.0
        self._looked_s = 0.0

    def may_take(self, found: Revision | None, now_s: float) -> bool:
        """Takes what was read just now; whether the lease may be taken."""
        if found is None:
            return True
        record = decode_lease(found)
        if record.is_free and record.successor in ("", self._node):
            return True
        is_new = found.revision != self._revision
        was_away = now_s - self._looked_s > self._lease_s / 2
        if is_new or was_away:
            self._revision, self._since_s = found.revision, now_s
        self._looked_s = now_s
        return now_s - self._since_s >= self._lease_s

    def forget(self) -> None:
        """Nothing could be read: what was seen so far doesn't count."""
        self._revision = -1


class Lease:
    """The lease as this process has or wants it."""

    def __init__(self, records: Records, *, node: str, run: str, url: str = "") -> None:
        self._records = records
        self._own = LeaseRecord(node, run, 0, url=url)
        self._revision = 0

    @property
    def epoch(self) -> int:
        """Of this node's lease; 0: it has none."""
        return self._own.epoch

    async def look(self) -> Revision | None:
        """The record now.

        Raises:
            LogUnavailable: nobody knows.
        """
        return await self._records.get(KEY)

    async def take(self, found: Revision | None) -> bool:
        """Takes it in place of what was found, with the next epoch; whether it is this node's now.

        Raises:
            LogUnavailable: unknown; look again.
        """
        epoch = decode_lease(found).epoch + 1 if found else 1
        wanted = LeaseRecord(self._own.node, self._own.run, epoch, url=self._own.url)
        try:
            self._revision = await self._write(wanted, found.revision if found else 0)
        except RecordChanged:
            return False
        self._own = wanted
        return True

    async def renew(self) -> None:
        """Shows that this node lives.

        Raises:
            LeaseLost: another node has it.
            LogUnavailable: unknown.
        """
        own = msgspec.structs.replace(self._own, beat=self._own.beat + 1)
        try:
            self._revision = await self._write(own, self._revision)
        except RecordChanged:
            await self._find_again()
            return
        self._own = own

    async def give_back(self, successor: str = "") -> None:
        """Lets another node take it at once, this one if it is named; what can't be written runs out by itself."""
        if not self.epoch:
            return
        try:
            await self._write(msgspec.structs.replace(self._own, is_free=True, successor=successor), self._revision)
        except (RecordChanged, LogUnavailable):
            return

    async def _find_again(self) -> None:
        """Goes on with a record of this node's that was written without an answer."""
        found = await self.look()
        record = None if found is None else decode_lease(found)
        if found is None or record is None or (record.run, record.epoch) != (self._own.run, self._own.epoch):
            raise LeaseLost(f"the node {record.node!r} leads now" if record else "the lease is gone")
        self._revision, self._own = found.revision, record

    async def _write(self, record: LeaseRecord, revision: int) -> int:
        return await self._records.put(KEY, msgspec.json.encode(record), revision=revision)
