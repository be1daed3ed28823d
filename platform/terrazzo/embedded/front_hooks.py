"""The hooks of a front's broker: as the platform's, and the leader is told who is connected."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec

from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.front_drain import FrontDrain
from terrazzo.embedded.front_log import FrontLog
from terrazzo.embedded.hooks import PlatformHooks
from terrazzo.ports.bus import DeliveryFate
from terrazzo.replication.front_events import (
    Connected,
    Disconnected,
    DrainRequest,
    EndRequest,
    Fate,
    FrontAnswer,
    FrontRequest,
    Ready,
    SendRequest,
)
from terrazzo.replication.holders import Holders
from terrazzo.terminals.link import TerminalLink
from terrazzo.terminals.presence import PresenceRegister
from terrazzo_broker.hooks import Client
from terrazzo_broker.topics.names import matches

_REASON_CHARS = 200
_NOT_ANY_MORE = -1  # another node has taken the client id meanwhile

_decode_request: Callable[[bytes], FrontRequest] = msgspec.msgpack.Decoder(FrontRequest).decode


class FrontHooks(PlatformHooks):
    """Terminals log in, report, are commanded and hear each other. The leader is told who is connected."""

    def __init__(self, *, log: FrontLog, **parts: Any) -> None:
        super().__init__(**parts)
        self._log = log

    def note_connected(self, client: Client) -> None:
        """Tells the leader."""
        assert self._shared is not None  # as of each front
        self._log.tell(connected(client, self._shared.holders))

    def on_disconnected(self, client: Client, reason: str) -> None:
        """As the platform's."""
        super().on_disconnected(client, reason)
        if isinstance(client.identity, TerminalLink):
            last_us = client.last_packet_us or client.connected_us
            reason = reason[:_REASON_CHARS]
            self._log.tell(Disconnected(client.client_id, client.connected_us, reason, last_us, client.messages_in))

    def on_subscribed(self, client: Client, filters: Sequence[str]) -> None:
        """As the platform's."""
        super().on_subscribed(client, filters)
        if isinstance(client.identity, TerminalLink) and _hears_commands(client.client_id, filters):
            self._log.tell(Ready(client.client_id))


def connected(client: Client, holders: Holders) -> Connected:
    """A connection, as the leader is told of it."""
    return Connected(
        uid=client.client_id,
        session=client.connected_us,
        connected_us=client.connected_us,
        address=client.address,
        port=client.port,
        protocol=client.protocol,
        listener=client.listener,
        username=client.username or "",
        keep_alive_s=client.keep_alive_s,
        is_ready=_hears_commands(client.client_id, client.filters),
        claim=holders.claim(client.client_id) or _NOT_ANY_MORE,
    )


def _hears_commands(client_id: str, filters: Iterable[str]) -> bool:
    """Whether one of a terminal's filters is that of its commands, or matches them."""
    return any(not each.startswith("$") and matches(each, f"p2p/{client_id}") for each in filters)


def roll(presence: PresenceRegister, holders: Holders) -> Iterator[Connected]:
    """All terminals that are connected."""
    return (connected(client, holders) for client in presence.clients() if isinstance(client.identity, TerminalLink))


class FrontAnswers:
    """Does what others ask for: sends the leader's messages, whose fate it is told; ends connections that another front
    takes over, and all of them where an operator has it drained."""

    def __init__(self, bus: EmbeddedBus, log: FrontLog, holders: Holders, drain: FrontDrain) -> None:
        self._bus = bus
        self._drain = drain
        self._log = log
        self._holders = holders
        self._epoch = 0  # of the newest leader that has asked
        self._sent: set[tuple[str, bytes]] = set()  # of which the fate is not known: bounded by what sessions hold

    def answer(self, body: bytes) -> bytes:
        """Answers a request; one that can't be read is not done."""
        try:
            request = _decode_request(body)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return _answer(is_done=False)
        if isinstance(request, EndRequest):
            self._holders.let_go(request.uid)
            self._bus.end_taken_over(request.uid)
            return _answer(is_done=True)
        if isinstance(request, DrainRequest):
            self._drain.begin()
            return msgspec.msgpack.encode(FrontAnswer(self._drain.clients == 0, self._drain.clients))
        if request.epoch < self._epoch:
            return _answer(is_done=False)
        self._epoch = request.epoch
        key = request.uid, request.correlation
        return _answer(is_done=key in self._sent or self._send(request, key))

    def _send(self, request: SendRequest, key: tuple[str, bytes]) -> bool:
        def on_fate(fate: DeliveryFate) -> None:
            self._sent.discard(key)
            self._log.tell(Fate(request.uid, request.correlation, fate.value))

        self._sent.add(key)  # first, as its fate may be known before it returns
        is_sent = self._bus.send(request.uid, request.payload, correlation=request.correlation, on_fate=on_fate)
        if not is_sent:
            self._sent.discard(key)
        return is_sent


def _answer(*, is_done: bool) -> bytes:
    return msgspec.msgpack.encode(FrontAnswer(is_done))
