"""The hooks of a front's broker: as the platform's, and the leader is told who is connected."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
from mqtt5 import ConnAckReasonCode
from msgspec.structs import replace

from terrazzo.embedded.bus import EmbeddedBus
from terrazzo.embedded.front_drain import FrontDrain
from terrazzo.embedded.front_log import FrontLog
from terrazzo.embedded.hooks import PlatformHooks
from terrazzo.embedded.sessions.takeover import SessionTakeover
from terrazzo.ports.bus import DeliveryFate
from terrazzo.ports.stream import LogFull, LogUnavailable, LogUnusable
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
from terrazzo.replication.holders import Holders, HolderSilent
from terrazzo.sparse_log import SparseLog
from terrazzo.terminals.link import TerminalLink
from terrazzo.terminals.presence import PresenceRegister
from terrazzo_broker.hooks import Accept, Challenge, Client, ConnectRequest, Refuse, Verdict
from terrazzo_broker.topics.names import matches

_log = logging.getLogger(__name__)

_REASON_CHARS = 200

_decode_request: Callable[[bytes], FrontRequest] = msgspec.msgpack.Decoder(FrontRequest).decode


class FrontHooks(PlatformHooks):
    """Terminals log in, report, are commanded and hear each other. The leader is told who is connected."""

    def __init__(
        self, *, log: FrontLog, holders: Holders, sessions: SessionTakeover, bus: EmbeddedBus, **parts: Any
    ) -> None:
        super().__init__(bus=bus, **parts)
        self._sessions = sessions
        self._log = log
        self._holders = holders
        self._own_bus = bus
        self._failure_log = SparseLog(_log)

    async def authenticate(self, request: ConnectRequest) -> Verdict:
        """As the platform's; whoever is let in is connected to no other front any more."""
        return await self._alone(request, await super().authenticate(request))

    async def _alone(self, request: ConnectRequest, verdict: Verdict) -> Verdict:
        """Has a client id taken over before it is accepted; refuses it where that isn't certain."""
        if isinstance(verdict, Challenge):
            return Challenge(verdict.data, lambda data: self._proceed(request, verdict, data))
        if not isinstance(verdict, Accept):
            return verdict
        if not isinstance(verdict.identity, TerminalLink):  # of whom nothing is kept
            return replace(verdict, session_expiry_s=0)
        if request.reauthentication:
            return verdict
        refusal = await take_over(self._holders, request.client_id, self._failure_log)
        return refusal or await self._with_session(request, verdict)

    async def _with_session(self, request: ConnectRequest, verdict: Accept) -> Verdict:
        """Has the client's session here before it is let in, wherever it was."""
        try:
            await self._sessions.take(request.client_id, clean=request.clean_start, owner=verdict.owner)
        except (LogFull, LogUnavailable, LogUnusable) as error:
            self._failure_log.warning("%s can't log in: %s", request.client_id, error)
            return Refuse(ConnAckReasonCode.SERVER_UNAVAILABLE, "it isn't known what waits for this client")
        return verdict

    async def _proceed(self, request: ConnectRequest, challenge: Challenge, data: bytes) -> Verdict:
        return await self._alone(request, await challenge.proceed(data))

    def on_connected(self, client: Client) -> None:
        """As the platform's."""
        super().on_connected(client)
        if isinstance(client.identity, TerminalLink):
            self._log.tell(connected(client))
            if not self._holders.holds(client.client_id):  # another front has taken it over in the meantime
                self._own_bus.end_taken_over(client.client_id)

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


async def take_over(holders: Holders, client_id: str, failure_log: SparseLog) -> Refuse | None:
    """Makes a client id this front's; the refusal where that isn't certain."""
    try:
        await holders.take(client_id)
    except (HolderSilent, LogFull, LogUnavailable) as error:
        failure_log.warning("%s can't log in: %s", client_id, error)
        why = "it isn't known where else this client id is connected"
        if isinstance(error, LogFull):
            why = "there is no room to note where this client id is connected"
        return Refuse(ConnAckReasonCode.SERVER_UNAVAILABLE, why)
    return None


def connected(client: Client) -> Connected:
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
    )


def _hears_commands(client_id: str, filters: Iterable[str]) -> bool:
    """Whether one of a terminal's filters is that of its commands, or matches them."""
    return any(not each.startswith("$") and matches(each, f"p2p/{client_id}") for each in filters)


def roll(presence: PresenceRegister) -> Iterator[Connected]:
    """All terminals that are connected."""
    return (connected(client) for client in presence.clients() if isinstance(client.identity, TerminalLink))


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
