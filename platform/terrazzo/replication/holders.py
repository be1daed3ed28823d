"""Which node holds a client id: a record for each, changed by compare-and-set, so that one connection is there.

Whoever takes a client id over asks its holder to end the connection first. A holder that doesn't answer is waited for
until its lease is over. A front is declared dead then: it can acknowledge nothing any more. A leader may go on where no
other node has taken its lease: it ends what it has of the client id when it hears that it is connected elsewhere.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

import msgspec

from terrazzo.ports.stream import RecordChanged, Records, Revision
from terrazzo.replication.front_events import leader_calls
from terrazzo.replication.front_lease import FRONT_PREFIX, decode_front
from terrazzo.replication.lease import KEY, LeaseWatch, decode_lease

_LOOK_S = 0.2  # or a tenth of the lease
_ANSWER_S = 1.0  # or a quarter of it, within which a holder ends a connection: a lease is looked at all the while
_MOST_LEASES = 2.0  # so many leases long the holder is waited for

End = Callable[[str, str, float], Awaitable[bool]]
"""Has a node end its connection of a client id within so many seconds; False where it doesn't answer."""


class Holder(msgspec.Struct, frozen=True, array_like=True):
    """The front, or the leader (``leader_calls``), and which of its starts."""

    node: str
    epoch: int


class HolderSilent(Exception):
    """Who holds a client id neither ends its connection nor is dead; ``str()`` says who."""


class Holders:
    """The client ids that this node has, among those of all.

    Args:
        clients: the records of client ids.
        nodes: those of fronts, and of the leader.
        own: this node.
        clock: seconds of one steady clock.
    """

    def __init__(
        self,
        clients: Records,
        nodes: Records,
        end: End,
        *,
        own: Holder,
        lease_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._clients = clients
        self._nodes = nodes
        self._end = end
        self._own = own
        self._lease_s = lease_s
        self._clock = clock
        self._held: dict[str, int] = {}  # revisions of records that name this node: bounded by the number of terminals
        self._look_s, self._answer_s = min(_LOOK_S, lease_s / 10), min(_ANSWER_S, lease_s / 4)
        self._asked: dict[str, int] = {}  # that are being taken: how often another front has asked for them meanwhile
        self._taking: Counter[str] = Counter()  # how many connections take each

    def holds(self, uid: str) -> bool:
        """Whether a client id is this front's, as nobody has asked for it since it was taken."""
        return uid in self._held

    def claim(self, uid: str) -> int:
        """The revision by which a client id is this front's, higher than that of whoever had it before; 0: it isn't."""
        return self._held.get(uid, 0)

    def let_go(self, uid: str) -> None:
        """Another front has it from now on."""
        self._held.pop(uid, None)
        if uid in self._asked:
            self._asked[uid] += 1

    async def take(self, uid: str) -> None:
        """Makes a client id this front's; no other front has a connection of it then.

        Raises:
            HolderSilent: it may have.
            LogFull: there is no room to say so.
            LogUnavailable: nobody knows.
        """
        self._taking[uid] += 1
        self._asked.setdefault(uid, 0)
        try:
            revision = await self._take(uid)
            self._held[uid] = max(revision, self._held.get(uid, 0))
        finally:
            self._taking[uid] -= 1
            if not self._taking[uid]:
                del self._taking[uid], self._asked[uid]

    async def _take(self, uid: str) -> int:
        key, watch = uid.encode().hex(), LeaseWatch(self._lease_s)
        ends_s = self._clock() + _MOST_LEASES * self._lease_s
        while True:
            asked = self._asked[uid]
            found = await self._clients.get(key)
            holder = None if found is None else _holder(found)
            if holder is not None and holder != self._own and not await self._has_let_go(uid, holder, watch):
                if self._clock() > ends_s:
                    raise HolderSilent(f"{_words(holder)} doesn't answer, and its lease isn't over")
                await asyncio.sleep(self._look_s)
                continue
            revision = found.revision if found is not None else 0
            try:
                if holder != self._own or uid not in self._held:  # who has asked for it finds another revision then
                    revision = await self._clients.put(key, msgspec.msgpack.encode(self._own), revision=revision)
            except RecordChanged:
                continue  # another front was faster: it is asked
            if asked == self._asked[uid]:
                return revision

    async def _has_let_go(self, uid: str, holder: Holder, watch: LeaseWatch) -> bool:
        """Whether a holder has no connection of a client id any more, or is dead."""
        if holder.node == self._own.node:
            return True  # an earlier start of this front
        if holder.node.startswith(leader_calls("")):
            return await self._leader_has_let_go(uid, holder, watch)
        found = await self._nodes.get(FRONT_PREFIX + holder.node)
        record = None if found is None else decode_front(found.value)
        if found is None or record is None or record.is_free or record.epoch != holder.epoch:
            return True
        is_over = watch.may_take(found, self._clock())
        if await self._end(holder.node, uid, self._answer_s):
            return True
        if not is_over:
            return False
        dead = msgspec.structs.replace(record, is_free=True)
        try:
            await self._nodes.put(FRONT_PREFIX + holder.node, msgspec.json.encode(dead), revision=found.revision)
        except RecordChanged:
            return False  # it lives
        return True

    async def _leader_has_let_go(self, uid: str, holder: Holder, watch: LeaseWatch) -> bool:
        found = await self._nodes.get(KEY)
        lease = None if found is None else decode_lease(found)
        if lease is None or lease.is_free or (leader_calls(lease.node), lease.epoch) != (holder.node, holder.epoch):
            return True
        is_over = watch.may_take(found, self._clock())
        return await self._end(holder.node, uid, self._answer_s) or is_over


def _words(holder: Holder) -> str:
    name = holder.node.removeprefix(leader_calls(""))
    return f"the front {name}" if name == holder.node else f"the node {name}, which leads,"


def _holder(found: Revision) -> Holder | None:
    """The holder that a record names; None for one that can't be read."""
    try:
        return msgspec.msgpack.decode(found.value, type=Holder)
    except msgspec.MsgspecError:
        return None
