"""``PeerLink``: what this node tells another one: which filters its clients have, and messages for the other's.

One frame is in flight; what comes meanwhile is the next. What waits is bounded for each company and for all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable

import msgspec

from terrazzo.ports.stream import Calls, LogUnavailable
from terrazzo.replication.node_message import NodeMessageDamaged
from terrazzo.replication.peer_frame import (
    VERSION,
    PeerFrame,
    PeerMessage,
    PeerState,
    decode_peer_answer,
    encode_peer_frame,
    peer_calls,
)
from terrazzo.retry import Attempts, Retry
from terrazzo.sparse_log import SparseLog

_log = logging.getLogger(__name__)

_AGAIN = Retry(first_s=0.02, most_s=0.5)
_ANSWER_S = 2.0
_FRAME_BYTES = 256 << 10  # of messages in a frame, unless one alone has more
_FRAME_FILTERS = 2_000


class PeerStats(msgspec.Struct):
    """Counters since the start, and the state now, of all links of a node together."""

    nodes: int = 0  # that are known
    filters: int = 0  # that clients at other nodes have
    frames: int = 0  # that others have taken
    sent: int = 0  # messages in these
    received: int = 0  # messages from others, each frame once
    unheard: int = 0  # of these: nobody was there any more
    again: int = 0  # attempts without an answer, or that found no room
    anew: int = 0  # times that all filters were named
    waiting_bytes: int = 0
    dropped_qos0: int = 0  # messages for which there was no room
    dropped: int = 0  # the same at QoS 1 and 2
    lost: int = 0  # messages that waited for a node, or were on their way, when it was gone


class PeerLimits(msgspec.Struct, frozen=True):
    """What may wait for one node, in bytes: of one company, of all. At QoS 0 the half of both."""

    owner_bytes: int
    all_bytes: int = 32 << 20


class PeerLink:
    """What goes to one node.

    Args:
        name: of the other node.
        epoch: which of its starts is known.
        own: this node's name, and which of its starts it is.
        filters: names all filters that clients here have.
    """

    def __init__(
        self,
        calls: Calls,
        name: str,
        epoch: int,
        *,
        own: tuple[str, int],
        filters: Callable[[], Iterable[tuple[str, str]]],
        stats: PeerStats,
        limits: PeerLimits,
    ) -> None:
        self.name = name
        self.epoch = epoch
        self.is_gone = False
        self._calls = calls
        self._own = own
        self._filters = filters
        self._stats = stats
        self._limits = limits
        self._number = time.monotonic_ns() // 1000  # so that another link of this start goes on behind this one
        self._in_flight: PeerFrame | None = None
        self._is_whole_due = True  # all filters are to be named
        self._begins = self._is_naming = False  # the next frame begins to name them; frames do it now
        self._changes: dict[tuple[str, str], bool] = {}  # bounded as subscriptions are
        self._queues: OrderedDict[str, deque[PeerMessage]] = OrderedDict()  # by owner, whose turn is next comes first
        self._bytes: Counter[str] = Counter()  # that wait or are on their way, by owner
        self._all_bytes = 0
        self._offered: Counter[str] = Counter()  # at QoS 1 and 2, by owner
        self._taken: Counter[str] = Counter()  # of these
        self._waiters: dict[str, deque[tuple[int, Callable[[], None]]]] = {}
        self._wake = asyncio.Event()
        self._failure_log = SparseLog(_log)

    # What is to be told

    def change(self, owner: str, pattern: str, is_heard: bool) -> None:
        """Clients here have a filter from now on, or no more."""
        self._changes[owner, pattern] = is_heard
        self._wake.set()

    def name_all(self) -> None:
        """Has all filters named: the other node has begun anew."""
        self._is_whole_due = True
        self._wake.set()

    def offer(self, message: PeerMessage) -> bool:
        """Takes a message for clients at the other node; False, and counted: there is no room."""
        owner, size, limits = message.owner, message.size, self._limits
        part = 1 if message.qos else 2
        has_room = self._bytes[owner] + size <= limits.owner_bytes // part
        if not has_room or self._all_bytes + size > limits.all_bytes // part:
            self._stats.dropped += bool(message.qos)
            self._stats.dropped_qos0 += not message.qos
            return False
        self._count_bytes(owner, size)
        self._offered[owner] += bool(message.qos)
        self._queues.setdefault(owner, deque()).append(message)
        self._wake.set()
        return True

    def owes(self, owner: str) -> bool:
        """Whether the other node doesn't have yet what an owner's clients published at QoS 1 and 2."""
        return self._taken[owner] != self._offered[owner]

    def when_taken(self, owner: str, then: Callable[[], None]) -> None:
        """Calls ``then`` once, when the other node has what was offered so far, or is gone."""
        self._waiters.setdefault(owner, deque()).append((self._offered[owner], then))

    def end(self) -> list[PeerMessage]:
        """The node is gone, and nothing is owed to it any more: the messages that it may not have got."""
        self.is_gone = True
        left = list(self._in_flight.messages) if self._in_flight is not None else []
        left = [each for each in left if each.qos < 2]  # at QoS 2 nobody may get what another may have got
        left += [message for queue in self._queues.values() for message in queue]
        self._in_flight = None
        self._queues.clear()
        self._stats.lost += len(left)
        self._count_bytes("", -self._all_bytes)
        for waiters in list(self._waiters.values()):
            while waiters:
                waiters.popleft()[1]()
        self._wake.set()
        return left

    async def taken(self) -> None:
        """Returns when the other node has what was offered so far at QoS 1 and 2, or is gone."""
        for owner in [each for each in self._offered if self.owes(each)]:
            done = asyncio.Event()
            self.when_taken(owner, done.set)
            await done.wait()

    # Telling it

    async def work(self) -> None:
        """Tells the other node, until it is gone."""
        attempts = Attempts(_AGAIN)
        while not self.is_gone:
            self._wake.clear()
            frame = self._in_flight = self._in_flight or self._next()
            if frame is None:
                await self._wake.wait()
            elif await self._tell(frame):
                attempts.succeeded()
            elif not self.is_gone:
                self._stats.again += 1
                await asyncio.sleep(attempts.failed() or 0)

    async def _tell(self, frame: PeerFrame) -> bool:
        """Tells a frame; False: try again in a while."""
        try:
            body = await self._calls.ask(peer_calls(self.name), encode_peer_frame(frame), timeout_s=_ANSWER_S)
            answer = decode_peer_answer(body)
        except (LogUnavailable, NodeMessageDamaged) as error:
            self._failure_log.warning("the node %s is not told what its clients are to have: %s", self.name, error)
            return False
        if self.is_gone:
            return True
        if answer.state == PeerState.TAKEN:
            self._on_taken(frame)
        elif answer.state == PeerState.ANEW:
            self.epoch = answer.epoch
            self._is_whole_due = True
            self._in_flight = self._next(frame.messages)
        return answer.state in (PeerState.TAKEN, PeerState.ANEW)

    def _on_taken(self, frame: PeerFrame) -> None:
        self._in_flight = None
        self._stats.frames += 1
        self._stats.sent += len(frame.messages)
        owners = set()
        for message in frame.messages:
            self._count_bytes(message.owner, -message.size)
            self._taken[message.owner] += bool(message.qos)
            owners.add(message.owner)
        for owner in owners:
            self._call_waiters(owner)
            if not self._bytes[owner] and not self.owes(owner):
                del self._bytes[owner], self._taken[owner], self._offered[owner]

    def _call_waiters(self, owner: str) -> None:
        waiters, taken = self._waiters.get(owner), self._taken[owner]
        while waiters and waiters[0][0] <= taken:
            waiters.popleft()[1]()
        if not waiters:
            self._waiters.pop(owner, None)

    def _count_bytes(self, owner: str, size: int) -> None:
        self._bytes[owner] += size
        self._all_bytes += size
        self._stats.waiting_bytes += size

    def _next(self, again: list[PeerMessage] | None = None) -> PeerFrame | None:
        """The next frame, with messages that are sent again or those that wait; None: there is nothing to tell."""
        if self._is_whole_due:
            self._is_whole_due = False
            self._begins = self._is_naming = True
            self._changes = dict.fromkeys(self._filters(), True)
            self._stats.anew += 1
        heard, unheard = self._next_filters()
        messages = self._next_messages() if again is None else again
        if not (heard or unheard or messages or self._begins):
            return None
        self._number += 1
        begins, ends = self._begins, self._is_naming and not self._changes
        self._begins = False
        self._is_naming = self._is_naming and not ends
        return PeerFrame(VERSION, *self._own, self.epoch, self._number, begins, ends, heard, unheard, messages)

    def _next_filters(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        heard: list[tuple[str, str]] = []
        unheard: list[tuple[str, str]] = []
        while self._changes and len(heard) + len(unheard) < _FRAME_FILTERS:
            key, is_heard = self._changes.popitem()
            (heard if is_heard else unheard).append(key)
        return heard, unheard

    def _next_messages(self) -> list[PeerMessage]:
        """Messages of the owners in turn, each owner's in their order."""
        found: list[PeerMessage] = []
        left = _FRAME_BYTES
        while self._queues and (left > 0 or not found):
            owner, queue = self._queues.popitem(last=False)
            message = queue.popleft()
            found.append(message)
            left -= message.size
            if queue:
                self._queues[owner] = queue
        return found
