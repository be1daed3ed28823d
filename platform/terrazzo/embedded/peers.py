"""``Peers``: clients at several nodes hear each other. Each node tells the others which topic filters its clients have,
and is handed what matches: a message goes to a node where somebody listens, and to no other."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

import msgspec

from terrazzo.embedded.held_batch import HeldBatch
from terrazzo.embedded.peer_link import PeerLimits, PeerLink, PeerStats
from terrazzo.ports.stream import Calls, LogUnavailable, RecordChanged, Records, Revision
from terrazzo.replication.front_events import leader_calls
from terrazzo.replication.front_lease import FRONT_PREFIX, decode_front, fronts_of
from terrazzo.replication.lease import KEY, LeaseWatch, decode_lease
from terrazzo.replication.node_message import NodeMessageDamaged
from terrazzo.replication.peer_frame import (
    PeerAnswer,
    PeerFrame,
    PeerMessage,
    PeerState,
    decode_peer_frame,
    encode_peer_answer,
)
from terrazzo.sparse_log import SparseLog
from terrazzo_broker.broker import Broker
from terrazzo_broker.elsewhere.nodes import Elsewhere, NodeSubscriber
from terrazzo_broker.hooks import Batch
from terrazzo_broker.message import ApplicationMessage

_log = logging.getLogger(__name__)

_ARRIVED_BYTES = 32 << 20  # of messages from others that aren't delivered yet; more have to wait there
_OWN_TOPICS = ("p2p", "$SYS")  # first levels of topics on which nobody here hears what is published elsewhere


class _Peer:
    """Another node: what goes there, and what is known of it."""

    __slots__ = ("epoch", "filters", "is_known", "link", "number", "stale", "subscribers", "watch")

    def __init__(self, link: PeerLink, watch: LeaseWatch) -> None:
        self.link = link
        self.watch = watch
        self.epoch = 0  # of what it has told
        self.number = 0  # of the last frame that was taken
        self.is_known = False  # it has begun to name its filters
        self.filters: set[tuple[str, str]] = set()
        self.stale: set[tuple[str, str]] = set()  # that it had before it began to name them anew
        self.subscribers: dict[tuple[str, str], NodeSubscriber] = {}  # by owner, and filter of a shared subscription


class Peers:
    """The other nodes that terminals connect to.

    Args:
        calls: requests from node to node.
        records: of fronts, and of who leads.
        name: this node's.
        epoch: which of its starts.
        lease_s: for so long a node may not show that it lives.
        clock: seconds of one steady clock.
    """

    def __init__(
        self,
        calls: Calls,
        records: Records,
        *,
        name: str,
        epoch: int,
        lease_s: float,
        clock: Callable[[], float],
        stats: PeerStats,
        limits: PeerLimits,
    ) -> None:
        self.stats = stats
        self._calls = calls
        self._records = records
        self._own = (name, epoch)
        self._lease_s = lease_s
        self._clock = clock
        self._limits = limits
        self._peers: dict[str, _Peer] = {}  # bounded by the number of nodes
        self._elsewhere: Elsewhere | None = None
        self._arrived_bytes = 0
        self._is_looked_for = False
        self._new: list[PeerLink] = []  # that nobody works for yet
        self._wake = asyncio.Event()
        self._failure_log = SparseLog(_log)

    def attach(self, broker: Broker) -> None:
        """Names the broker; called once."""
        self._elsewhere = Elsewhere(broker.core, self._on_filter)
        for each in self._peers.values():
            each.link.name_all()

    # What goes to others

    def hold(self, batch: Batch) -> Batch:
        """The same batch, settled no earlier than the nodes where its company's clients listen have what they are to
        have of it."""
        owner = batch.client.owner
        behind = [partial(each.link.when_taken, owner) for each in self._peers.values() if each.link.owes(owner)]
        return HeldBatch(batch, behind) if behind else batch

    def _on_filter(self, owner: str, pattern: str, is_heard: bool) -> None:
        if _is_routed(pattern):
            for each in self._peers.values():
                each.link.change(owner, pattern, is_heard)

    def _filters(self) -> list[tuple[str, str]]:
        filters = () if self._elsewhere is None else self._elsewhere.filters()
        return [(owner, pattern) for owner, pattern in filters if _is_routed(pattern)]

    async def tell_last(self, timeout_s: float) -> bool:
        """Waits until the others have what was published at QoS 1 and 2; False: not in time."""
        try:
            async with asyncio.timeout(timeout_s):
                for each in list(self._peers.values()):
                    await each.link.taken()
        except TimeoutError:
            return False
        return True

    async def work(self) -> None:
        """Tells the others, until it is cancelled."""
        self._new = [each.link for each in self._peers.values()]
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                while self._new:
                    link = self._new.pop()
                    group.create_task(link.work(), name=f"what the node {link.name} is told")
                await self._wake.wait()

    def _add(self, name: str, epoch: int) -> _Peer:
        link = PeerLink(
            self._calls,
            name,
            epoch,
            own=self._own,
            filters=self._filters,
            stats=self.stats,
            limits=self._limits,
        )
        peer = self._peers[name] = _Peer(link, LeaseWatch(self._lease_s))
        self.stats.nodes = len(self._peers)
        self._new.append(link)
        self._wake.set()
        return peer

    # What comes from others

    def answer(self, body: bytes) -> bytes:
        """Answers what another node tells."""
        try:
            frame = decode_peer_frame(body)
        except NodeMessageDamaged as error:
            self._failure_log.warning("%s", error)
            return self._answer(PeerState.REFUSED)
        if frame.to_epoch != self._own[1]:
            return self._answer(PeerState.ANEW)
        peer = self._peers.get(frame.node) or self._add(frame.node, frame.epoch)
        if frame.epoch < peer.epoch:
            return self._answer(PeerState.REFUSED)
        if frame.epoch > peer.epoch:
            self._begin(peer, frame)
        elif frame.number <= peer.number:
            return self._answer(PeerState.TAKEN)  # its answer was lost
        if not frame.begins and (not peer.is_known or frame.number != peer.number + 1):
            return self._answer(PeerState.ANEW)
        if self._elsewhere is None or self._arrived_bytes > _ARRIVED_BYTES:
            return self._answer(PeerState.LATER)
        self._take(peer, frame, self._elsewhere)
        return self._answer(PeerState.TAKEN)

    def _answer(self, state: PeerState) -> bytes:
        return encode_peer_answer(PeerAnswer(state, self._own[1]))

    def _begin(self, peer: _Peer, frame: PeerFrame) -> None:
        """Another start of a node: it has to be told everything anew, too."""
        if peer.link.epoch != frame.epoch:
            peer.link.epoch = frame.epoch
            peer.link.name_all()
        peer.epoch, peer.number, peer.is_known = frame.epoch, 0, False

    def _take(self, peer: _Peer, frame: PeerFrame, elsewhere: Elsewhere) -> None:
        peer.number = frame.number
        if frame.begins:
            peer.is_known = True
            peer.stale = set(peer.filters)
        for key in frame.heard:
            self._hear(elsewhere, peer, *key)
        for key in (*frame.unheard, *(peer.stale if frame.ends else ())):
            self._unhear(elsewhere, peer, *key)
        peer.stale = set() if frame.ends else peer.stale
        self.stats.filters = sum(len(each.filters) for each in self._peers.values())
        self.stats.received += len(frame.messages)
        for message in frame.messages:
            self._deliver(elsewhere, message)

    def _hear(self, elsewhere: Elsewhere, peer: _Peer, owner: str, pattern: str) -> None:
        peer.stale.discard((owner, pattern))
        if (owner, pattern) not in peer.filters:
            peer.filters.add((owner, pattern))
            elsewhere.add(self._subscriber(peer, owner, _shared(pattern)), pattern)

    def _unhear(self, elsewhere: Elsewhere, peer: _Peer, owner: str, pattern: str) -> None:
        if (owner, pattern) in peer.filters:
            peer.filters.discard((owner, pattern))
            elsewhere.remove(self._subscriber(peer, owner, _shared(pattern)), pattern)
            if _shared(pattern):
                del peer.subscribers[owner, pattern]

    def _subscriber(self, peer: _Peer, owner: str, shared: str) -> NodeSubscriber:
        found = peer.subscribers.get((owner, shared))
        if found is None:

            def take(message: ApplicationMessage) -> bool:
                return peer.link.offer(_outbound(message, owner, shared))

            found = peer.subscribers[owner, shared] = NodeSubscriber(f"node:{peer.link.name}", take, owner)
        return found

    def _deliver(self, elsewhere: Elsewhere, message: PeerMessage, *, own_only: bool = True) -> None:
        """Hands a message to whom it is for; those of one owner in their order."""

        def on_delivered(is_heard: bool) -> None:
            self._arrived_bytes -= message.size
            self.stats.unheard += not is_heard

        self._arrived_bytes += message.size
        elsewhere.deliver(
            ApplicationMessage(
                topic=message.topic,
                payload=message.payload,
                qos=message.qos,
                retain=message.retain,
                properties=message.properties,
                expires_us=message.expires_us,
            ),
            message.owner,
            shared=message.shared,
            own_only=own_only,
            on_delivered=on_delivered,
        )

    # Who is there

    async def look(self) -> None:
        """Finds out which nodes are there, once, and which are gone, each time."""
        try:
            if not self._is_looked_for:
                await self._look_for()
                self._is_looked_for = True  # who comes later tells it
            for name, peer in list(self._peers.items()):
                await self._look_at(name, peer)
        except LogUnavailable as error:
            for peer in self._peers.values():
                peer.watch.forget()
            self._failure_log.warning("which nodes are there is not known: %s", error)

    async def _look_for(self) -> None:
        records = await self._records.all()
        found = {each.node: each.epoch for each in fronts_of(records) if not each.is_free}
        leader = await self._records.get(KEY)
        if leader is not None and not decode_lease(leader).is_free:
            record = decode_lease(leader)
            found[leader_calls(record.node)] = record.epoch
        for name, epoch in found.items():
            if name != self._own[0] and name not in self._peers:
                self._add(name, epoch)

    async def _look_at(self, name: str, peer: _Peer) -> None:
        is_front = not name.startswith(leader_calls(""))
        key = FRONT_PREFIX + name if is_front else KEY
        found = await self._records.get(key)
        is_same = found is not None and _is_start(found, name, peer.link.epoch, is_front=is_front)
        if is_same and not peer.watch.may_take(found, self._clock()):
            return
        if is_same and is_front and found is not None and not await self._declare_dead(key, found):
            return
        self._on_gone(name, peer)

    async def _declare_dead(self, key: str, found: Revision) -> bool:
        """Makes certain that a front whose lease is over serves no client any more; False: it lives."""
        dead = msgspec.structs.replace(decode_front(found.value), is_free=True)
        try:
            await self._records.put(key, msgspec.json.encode(dead), revision=found.revision)
        except RecordChanged:
            return False
        _log.warning("the front %s has not shown for %g s that it lives", dead.node, self._lease_s)
        return True

    def _on_gone(self, name: str, peer: _Peer) -> None:
        """What shared subscriptions' members there were to have others get."""
        if self._peers.get(name) is not peer:
            return
        del self._peers[name]
        left, elsewhere = peer.link.end(), self._elsewhere
        if elsewhere is not None:
            for key in list(peer.filters):
                self._unhear(elsewhere, peer, *key)
            for message in left:
                if message.shared:
                    self.stats.lost -= 1
                    self._deliver(elsewhere, message, own_only=False)
        self.stats.nodes = len(self._peers)
        self.stats.filters = sum(len(each.filters) for each in self._peers.values())


def _is_start(found: Revision, name: str, epoch: int, *, is_front: bool) -> bool:
    """Whether a record is of this start of a node, which hasn't ended."""
    if is_front:
        front = decode_front(found.value)
        return (front.epoch, front.is_free) == (epoch, False)
    lease = decode_lease(found)
    return (leader_calls(lease.node), lease.epoch, lease.is_free) == (name, epoch, False)


def _is_routed(pattern: str) -> bool:
    """Whether what others publish may match a filter."""
    levels = pattern.split("/", 3)
    first = levels[2] if levels[0] == "$share" and len(levels) > 2 else levels[0]
    return first not in _OWN_TOPICS


def _shared(pattern: str) -> str:
    return pattern if pattern.startswith("$share/") else ""


def _outbound(message: ApplicationMessage, owner: str, shared: str) -> PeerMessage:
    return PeerMessage(
        owner,
        message.topic,
        message.payload,
        message.qos,
        message.retain,
        message.properties,
        message.expires_us,
        shared,
    )
