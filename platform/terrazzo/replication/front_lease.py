"""A front's record: which of its starts it is, and that it lives. Changed by compare-and-set only.

Each start takes the next epoch, which its frames name. A front that writes its record no more for as long as the lease
is dead, to whoever looks at it all the while (``lease.LeaseWatch``); one that is declared so can't write it any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

import msgspec

from terrazzo.ports.stream import LogUnavailable, RecordChanged, Records, Revision
from terrazzo.replication.members import NodeTaken

FRONT_PREFIX = "front."
FOLLOWED = "fronts-followed"
"""The record that a leader writes when it begins to follow what fronts tell: they name all of their terminals then."""


class FrontRecord(msgspec.Struct, frozen=True):
    """A front as it last described itself. ``run`` names one start; ``is_free``: it ended, or was declared dead."""

    node: str
    run: str
    epoch: int
    version: str = ""
    seen_us: int = 0  # by its own clock, for people to read
    clients: int = 0  # terminals that are connected
    frames: int = 0  # that the log has acknowledged to it
    is_free: bool = False
    drains: bool = False  # it lets no terminal in any more


def decode_front(value: bytes) -> FrontRecord:
    """The record of its bytes; one that can't be read is of nobody, and of epoch 0."""
    try:
        return msgspec.json.decode(value, type=FrontRecord)
    except msgspec.MsgspecError:
        return FrontRecord("?", "?", 0)


def fronts_of(records: Mapping[str, bytes]) -> list[FrontRecord]:
    """The fronts among all records, by name."""
    return [decode_front(value) for key, value in sorted(records.items()) if key.startswith(FRONT_PREFIX)]


class FrontLease:
    """This front's record.

    Args:
        clock: seconds of one steady clock.
    """

    def __init__(self, records: Records, *, node: str, run: str, lease_s: float, clock: Callable[[], float]) -> None:
        self._records = records
        self._key = FRONT_PREFIX + node
        self._own = FrontRecord(node, run, 0)
        self._lease_s = lease_s
        self._clock = clock
        self._revision = 0
        self._renewed_s = 0.0  # when the last writing that succeeded began

    @property
    def epoch(self) -> int:
        """Of this start; 0: it has none yet."""
        return self._own.epoch

    @property
    def is_held(self) -> bool:
        """Whether nobody can have declared this front dead by now."""
        return bool(self.epoch) and self._clock() - self._renewed_s < self._lease_s

    async def claim(self, now_us: int) -> None:
        """Takes the next epoch, once nobody has written the record of an earlier start for as long as the lease.

        ``now_us``: by this machine's clock. No epoch is lower: so it is a later one where the record was deleted.

        Raises:
            NodeTaken: somebody writes it.
            LogUnavailable: unknown.
        """
        least = now_us
        while True:
            found, epoch = await self._ended()
            least, began_s = max(least, epoch + 1), self._clock()
            wanted = msgspec.structs.replace(self._own, epoch=least)
            try:
                self._revision = await self._records.put(
                    self._key, msgspec.json.encode(wanted), revision=0 if found is None else found.revision
                )
            except RecordChanged:
                continue  # declared dead at this very moment, or another start of it was faster: it is looked at again
            self._own, self._renewed_s = wanted, began_s
            return

    async def _ended(self) -> tuple[Revision | None, int]:
        """The record once no earlier start has it any more, None where there is none; and the epoch of the last one."""
        found = await self._records.get(self._key)
        epoch = 0
        while found is not None:
            record = decode_front(found.value)
            epoch = max(epoch, record.epoch)
            if record.is_free:
                break
            await asyncio.sleep(self._lease_s)
            again = await self._records.get(self._key)
            if again is not None and again.revision == found.revision:
                break
            if again is not None and not decode_front(again.value).is_free:
                raise NodeTaken(self._taken)
            found = again  # declared dead, or forgotten
        return found, epoch

    async def renew(self, *, version: str, seen_us: int, clients: int, frames: int, drains: bool = False) -> None:
        """Shows that this front lives, and how it is.

        Raises:
            NodeTaken: it was declared dead, or another process has its name.
            LogUnavailable: unknown.
        """
        began_s = self._clock()
        found = {"version": version, "seen_us": seen_us, "clients": clients, "frames": frames, "drains": drains}
        wanted = msgspec.structs.replace(self._own, **found)
        self._revision = await self._put(wanted, self._revision)
        self._own, self._renewed_s = wanted, began_s

    async def give_back(self) -> None:
        """Says that it ended; what can't be written runs out by itself."""
        if not self.epoch:
            return
        try:
            await self._put(msgspec.structs.replace(self._own, is_free=True), self._revision)
        except (NodeTaken, LogUnavailable):
            return

    async def _put(self, wanted: FrontRecord, revision: int) -> int:
        """Writes the record, also where an earlier writing, whose answer was lost, is there: that one shows no longer
        than from its own time on that this front lives."""
        value = msgspec.json.encode(wanted)
        while True:
            try:
                return await self._records.put(self._key, value, revision=revision)
            except RecordChanged:
                revision = await self._find_own(wanted)

    async def _find_own(self, wanted: FrontRecord) -> int:
        """The revision of the record as this front has written it before.

        Raises:
            NodeTaken: it isn't this front's any more.
        """
        found = await self._records.get(self._key)
        record = None if found is None else decode_front(found.value)
        if found is None or record is None or record.is_free:
            raise NodeTaken(f"cluster.node: the front {self._own.node!r} was declared dead") from None
        if (record.run, record.epoch) != (wanted.run, wanted.epoch):
            raise NodeTaken(self._taken) from None
        return found.revision

    @property
    def _taken(self) -> str:
        return f"cluster.node: another process runs as the front {self._own.node!r}: each needs a name of its own"
