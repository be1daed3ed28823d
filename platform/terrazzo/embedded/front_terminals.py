"""``FrontTerminals``: the leader's knowledge of who is connected to fronts, and its way to send them messages."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

import msgspec

from terrazzo.domain.registry import Registry
from terrazzo.ports.bus import DeliveryFate, Presence
from terrazzo.ports.stream import Calls, LogUnavailable, NobodyAnswers
from terrazzo.replication.front_events import (
    Connected,
    Disconnected,
    EndRequest,
    Fate,
    FrontAnswer,
    FrontEvent,
    Ready,
    RollBegins,
    RollEnds,
    SendRequest,
)
from terrazzo.sparse_log import SparseLog
from terrazzo.terminals.link import TerminalLink
from terrazzo.terminals.presence import PROTOCOLS, PresenceRegister
from terrazzo_broker.hooks import Client

_log = logging.getLogger(__name__)

_ANSWER_S = 3.0  # within which a front says whether it has sent a message
_AGAIN_S = 5.0  # after which one is tried again of which it didn't say
_AT_ONCE = 64  # requests to a front that are under way at a time: one that is slow keeps none from the others
_NOT_NAMED = "its front doesn't name it any more"

_encode = msgspec.msgpack.Encoder().encode
_decode_answer = msgspec.msgpack.Decoder(FrontAnswer).decode


class FrontTerminalsStats(msgspec.Struct):
    """Counters since this node leads, and how many terminals are connected to fronts."""

    connected: int = 0
    sent: int = 0  # messages that fronts have written to sockets
    absent: int = 0  # whose terminals were not there any more
    unanswered: int = 0  # of which no front has said whether they were sent


class _Elsewhere(msgspec.Struct):
    """A terminal at a front."""

    node: str
    session: int
    client: Client
    is_ready: bool
    is_named: bool = True  # in the roll that the front calls


class _Request(NamedTuple):
    """What a front is asked: to send a message, or to end a connection (without ``on_fate``)."""

    node: str
    uid: str
    body: bytes  # a ``FrontRequest``
    correlation: bytes
    on_sent: Callable[[bool], None]
    on_fate: Callable[[DeliveryFate], None] | None


class FrontTerminals:
    """Follows the events of fronts into the presence register, and asks fronts to send (``TerminalsElsewhere``).

    Args:
        epoch: of this node's lease, by which fronts know a leader of former times.
        stats: what is counted.
        end_older: ends this node's own connection of a terminal if it is older than one at a front; False: it is not.
        on_ready: is told of a terminal that has subscribed to its commands.
        on_late_fate: is told what became of a message that this object knows nothing of: an earlier leader has sent
            it, or nobody said in time that it was sent.
        is_alone: who logs in at this node has been ended at fronts before.
    """

    def __init__(
        self,
        calls: Calls,
        *,
        epoch: int,
        stats: FrontTerminalsStats,
        registry: Registry,
        presence: PresenceRegister,
        end_older: Callable[[Connected], bool],
        on_ready: Callable[[str], None],
        on_late_fate: Callable[[str, bytes, DeliveryFate], None],
        is_alone: bool = False,
    ) -> None:
        self.stats = stats
        self._calls = calls
        self._epoch = epoch
        self._registry = registry
        self._presence = presence
        self._on_ready = on_ready
        self._end_older = end_older
        presence.changes.listen(self._on_presence)
        self._on_late_fate = on_late_fate
        self._is_alone = is_alone
        self._terminals: dict[str, _Elsewhere] = {}
        self._waiting: dict[str, dict[bytes, Callable[[DeliveryFate], None]]] = {}  # by uid: one or two of each
        self._requests: dict[str, deque[_Request]] = {}  # the same, by front
        self._under_way: Counter[str] = Counter()  # of these, by front
        self._wake = asyncio.Event()
        self._failure_log = SparseLog(_log)

    # Presence

    def nodes(self) -> set[str]:
        """The fronts that have terminals."""
        return {each.node for each in self._terminals.values()}

    def on_events(self, node: str, events: Iterable[FrontEvent]) -> None:
        """A front has told what has happened."""
        for event in events:
            if isinstance(event, Connected):
                self._on_connected(node, event)
            elif isinstance(event, Disconnected):
                found = self._terminals.get(event.uid)
                if found is not None and (found.node, found.session) == (node, event.session):
                    client = found.client
                    client.last_packet_us, client.messages_in = event.last_packet_us, event.messages_in
                    self._end(event.uid, found, event.reason)
            elif isinstance(event, Ready):
                self._on_subscribed(node, event.uid)
            elif isinstance(event, Fate):
                self._on_fate(event)
            elif isinstance(event, RollBegins):
                for each in self._terminals.values():
                    each.is_named = each.is_named and each.node != node
            elif isinstance(event, RollEnds):
                self._forget(node, _NOT_NAMED, named=False)

    def on_reports(self, uid: str, count: int, arrived_us: int) -> None:
        """Reports of a terminal have come."""
        found = self._terminals.get(uid)
        if found is not None:
            found.client.messages_in += count
            found.client.last_packet_us = max(found.client.last_packet_us, arrived_us)

    def on_front_gone(self, node: str) -> None:
        """A front is dead, and so are the connections of its terminals."""
        self._forget(node, f"the front {node} is gone")

    def _forget(self, node: str, reason: str, *, named: bool = True) -> None:
        gone = [uid for uid, each in self._terminals.items() if each.node == node and (named or not each.is_named)]
        for uid in gone:
            self._end(uid, self._terminals[uid], reason)

    def _on_connected(self, node: str, event: Connected) -> None:
        terminal, found = self._registry.terminal(event.uid), self._terminals.get(event.uid)
        if found is not None and (found.node, found.session) == (node, event.session):
            found.is_named, found.is_ready = True, event.is_ready
            return
        if terminal is None or event.protocol not in PROTOCOLS:
            return  # deleted meanwhile: its front ends the connection
        if not self._end_older(event):
            self._have_ended(node, event.uid)
            return
        if found is not None:
            self._lose(event.uid)
        client = Client(
            client_id=event.uid,
            username=event.username,
            protocol=event.protocol,
            address=event.address,
            port=event.port,
            listener=event.listener,
            connected_us=event.connected_us,
            keep_alive_s=event.keep_alive_s,
            identity=TerminalLink(terminal, self._registry),
            owner=terminal.owner,
            last_packet_us=event.connected_us,
        )
        self._terminals[event.uid] = _Elsewhere(node, event.session, client, event.is_ready)
        self.stats.connected = len(self._terminals)
        self._presence.on_connected(client)
        if event.is_ready:
            self._on_ready(event.uid)

    def _on_presence(self, client: Client, presence: Presence) -> None:
        """A terminal that was at a front has connected to this node."""
        found = self._terminals.get(client.client_id)
        if presence.online and found is not None and found.client is not client:
            self._have_ended(found.node, client.client_id)

    def _on_subscribed(self, node: str, uid: str) -> None:
        found = self._terminals.get(uid)
        if found is not None and found.node == node:
            found.is_ready = True
            self._on_ready(uid)

    def _end(self, uid: str, found: _Elsewhere, reason: str) -> None:
        del self._terminals[uid]
        self.stats.connected = len(self._terminals)
        self._presence.on_disconnected(found.client, reason)
        if self._registry.terminal(uid) is None:
            self._presence.forget(uid)
        self._lose(uid)

    def _lose(self, uid: str) -> None:
        """What was on its way to a terminal whose connection has ended is lost."""
        for on_fate in self._waiting.pop(uid, {}).values():
            on_fate(DeliveryFate.LOST)

    def _take(self, uid: str, correlation: bytes) -> Callable[[DeliveryFate], None] | None:
        """Who waits for the fate of a message, and no longer does."""
        of_terminal = self._waiting.get(uid, {})
        on_fate = of_terminal.pop(correlation, None)
        if not of_terminal:
            self._waiting.pop(uid, None)
        return on_fate

    # Messages

    def holds(self, uid: str) -> bool:
        """As ``TerminalsElsewhere`` says."""
        found = self._terminals.get(uid)
        return found is not None and found.is_ready and self._presence.client(uid) is found.client

    def send(
        self,
        uid: str,
        payload: bytes,
        *,
        correlation: bytes,
        on_sent: Callable[[bool], None],
        on_fate: Callable[[DeliveryFate], None],
    ) -> None:
        """As ``TerminalsElsewhere`` says."""
        found = self._terminals.get(uid)
        if found is None:
            on_sent(False)
            return
        self._waiting.setdefault(uid, {})[correlation] = on_fate
        body = _encode(SendRequest(self._epoch, uid, payload, correlation))
        self._request(_Request(found.node, uid, body, correlation, on_sent, on_fate))

    def _have_ended(self, node: str, uid: str) -> None:
        """Has a front end a connection, as the terminal is connected to this node by now."""
        if not self._is_alone:
            self._request(_Request(node, uid, _encode(EndRequest(uid)), b"", lambda is_done: None, None))

    def _request(self, request: _Request) -> None:
        self._requests.setdefault(request.node, deque()).append(request)
        self._wake.set()

    async def work(self) -> None:
        """Asks fronts to send what is to be sent."""
        async with asyncio.TaskGroup() as group:
            while True:
                self._wake.clear()
                for node, waiting in list(self._requests.items()):
                    while waiting and self._under_way[node] < _AT_ONCE:
                        self._under_way[node] += 1
                        group.create_task(self._ask_counted(waiting.popleft()), name=f"request to the front {node}")
                    if not waiting:
                        del self._requests[node]
                await self._wake.wait()

    async def _ask_counted(self, request: _Request) -> None:
        try:
            if self._is_wanted(request):
                await self._ask(request)
        finally:
            self._under_way[request.node] -= 1
            if not self._under_way[request.node]:
                del self._under_way[request.node]
            self._wake.set()

    def _is_wanted(self, request: _Request) -> bool:
        """Whether somebody waits for this very request, and not for another one of the same message, or for none."""
        if request.on_fate is None:
            return True
        return self._waiting.get(request.uid, {}).get(request.correlation) is request.on_fate

    async def _ask(self, request: _Request) -> None:
        try:
            answer = _decode_answer(await self._calls.ask(request.node, request.body, timeout_s=_ANSWER_S))
        except NobodyAnswers:
            answer = FrontAnswer(is_done=False)
        except (LogUnavailable, msgspec.MsgspecError) as error:
            self._on_unanswered(request, error)
            return
        if request.on_fate is None or not self._is_wanted(request):
            return  # the connection has ended, or it was acknowledged, before the front's answer came
        if not answer.is_done:
            self._take(request.uid, request.correlation)
        self.stats.sent += answer.is_done
        self.stats.absent += not answer.is_done
        request.on_sent(answer.is_done)

    def _on_unanswered(self, request: _Request, error: Exception) -> None:
        """Nobody knows whether it was sent: it counts as lost, and its terminal has to be asked again in a while."""
        self.stats.unanswered += 1
        self._failure_log.warning("a message to %s: %s", request.uid, error)
        if request.on_fate is not None and self._is_wanted(request):
            self._take(request.uid, request.correlation)
            request.on_fate(DeliveryFate.LOST)
            asyncio.get_running_loop().call_later(_AGAIN_S, self._ready_again, request.uid)

    def _ready_again(self, uid: str) -> None:
        if self.holds(uid):
            self._on_ready(uid)

    def _on_fate(self, event: Fate) -> None:
        try:
            fate = DeliveryFate(event.fate)
        except ValueError:
            return  # of a later version
        on_fate = self._take(event.uid, event.correlation)
        if on_fate is not None:
            on_fate(fate)
        else:
            self._on_late_fate(event.uid, event.correlation, fate)
