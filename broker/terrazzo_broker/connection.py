"""One network connection: reads bytes and hands them to the packet loop, acknowledges publishes, closes."""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable
from itertools import islice
from typing import SupportsInt, cast

import mqtt5
from mqtt5 import ConnAckReasonCode, DisconnectReasonCode

from .access.certificate_name import common_name
from .admission.half_open import Peer
from .admission.limits import ListenerAdmission
from .codec.errors import PacketError
from .codec.reasons import connack_reason
from .codec.writer import encode_packet
from .connection_state import ConnectionState, ReadHold, Withheld
from .connection_writer import ConnectionWriter
from .connections import Due
from .core import BrokerCore
from .delivery.acknowledgements import Acknowledgements, DurableBatch, Segment
from .delivery.empty import NOTHING
from .delivery.routing import Route
from .hooks import Challenge, ConnectRequest, PublishGrant
from .limited_log import limited_logger
from .refusals import Cause, Refusal, cause_of
from .scheduling.turns import Steps

log = logging.getLogger(__name__)
fault_log = limited_logger("terrazzo_broker.faults")

_DECIDING, _CLOSED = ConnectionState.DECIDING, ConnectionState.CLOSED  # looked up once, not with each read
_ROUTES_LOOKED_AT = 16
BURST_BYTES = 256 << 10  # after so much from one client the others have a turn


class Connection(ConnectionWriter):
    """The ``asyncio.Protocol`` of one socket. ``handle_packets`` is the packet loop; it gets the bytes of each read.

    Its attributes in groups: given at the start; bytes in; the client and its session; caches for its publishes.
    """

    __slots__ = (
        "acks",
        "address",
        "aliases",
        "batch",
        "burst",
        "certificate_name",
        "challenge",
        "due",
        "epoch",
        "grants",
        "handle_packets",
        "holds",
        "is_bridge",
        "is_deciding",
        "is_waiting",
        "keep_alive_s",
        "level",
        "listener",
        "needed",
        "packet_limit",
        "partial",
        "peer",
        "port",
        "request",
        "routes",
        "seen_s",
        "steps",
        "subscriptions",
        "tokens",
        "waiting",
        "will",
    )

    def __init__(
        self, core: BrokerCore, listener: ListenerAdmission, handle_packets: Callable[[Connection, bytes], None]
    ) -> None:
        super().__init__(core)
        self.listener = listener
        self.handle_packets = handle_packets
        self.address = ""
        self.port = 0
        self.certificate_name: str | None = None
        self.peer: Peer | None = None  # as the admission counts it; None: it doesn't

        self.level = 0  # protocol level, 3 to 5: 3.1 has the packets of 3.1.1
        self.is_bridge = False
        self.due: Due | None = None
        self.seen_s = core.clock()
        self.packet_limit = min(core.settings.connect_bytes, core.settings.packet_bytes)  # until it has logged in
        self.partial: bytearray | None = None  # of a packet that hasn't all arrived
        self.needed = 0
        self.burst = 0  # bytes read since the others had their turn
        self.holds = 0
        self.steps: Steps[None] | None = None  # what is left of the work on a packet
        self.is_waiting = False  # for its turn

        self.keep_alive_s = 0
        self.will: mqtt5.Will | None = None
        self.request: ConnectRequest | None = None  # kept for re-authentication, where there may be one
        self.is_deciding = False
        self.challenge: Challenge | None = None

        self.routes: dict[bytes, Route] = NOTHING  # by the topic field as it comes, its length included
        self.grants: dict[bytes, PublishGrant | None] | None = None
        self.subscriptions = core.tree.of("")  # its owner's, by which the routes are stale
        self.epoch = 0
        self.aliases: dict[int, bytes] | None = None  # no longer than the connection [MQTT-3.3.2-7]
        self.acks: list[bytes] | None = None
        self.batch: DurableBatch | None = None
        self.waiting: Acknowledgements | None = None
        self.tokens: float = core.publish_pace.of_client  # publishes that it may still send now, where they are limited

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        peer = transport.get_extra_info("peername")
        if isinstance(peer, tuple) and not self.address:  # else a proxy has named it
            self.address, self.port = str(peer[0]), int(peer[1])
        self.certificate_name = common_name(transport.get_extra_info("peercert"))
        self.core.connections.on_opened(self)

    def data_received(self, data: bytes) -> None:
        core, state, size = self.core, self.state, len(data)
        if state is _CLOSED:
            return None  # [MQTT-3.14.4-2] of 3.1.1
        core.stats.bytes_in += size
        self.burst = burst = self.burst + size
        if burst > BURST_BYTES:
            self._let_others()
        if state is _DECIDING:
            return self._await_decision(data)
        if self.is_waiting:  # the transport had read it already
            return self._append(data)
        if self.partial is not None:
            self.partial += data
            if len(self.partial) < self.needed:
                return self._note_kept()
            data, self.partial = bytes(self.partial), None
        core.reading = self
        try:
            self.process(data)
        finally:
            core.reading = None
            if core.turns.is_inside:
                core.turns.leave()
        return None

    def speak(self, level: int) -> None:
        """Sets the protocol, by its level (3 to 5); 0 where it isn't known."""
        self.level = level
        self.version = max(level, 4) if level else 0

    def _let_others(self) -> None:
        """Pauses reading for one turn of the loop, as uvloop reads one socket up to 32 times before the next one."""
        self.burst = 0
        self.hold(ReadHold.TURN)
        asyncio.get_running_loop().call_soon(self.release, ReadHold.TURN)

    def _await_decision(self, data: bytes) -> None:
        """Keeps what a client sends before its CONNACK (section 3.1.4), up to the limit of this time and one read."""
        self._append(data)
        if self.partial is not None and len(self.partial) > self.packet_limit:
            self.hold(ReadHold.DECIDING)

    def _append(self, data: bytes) -> None:
        self.partial = self.partial or bytearray()
        self.partial += data
        self._note_kept()

    def _note_kept(self) -> None:
        """Has what is kept before the login counted."""
        if self.peer is not None and self.peer.is_half_open:
            self.core.admission.hold(self.peer, len(self.partial or b""))

    def process(self, data: bytes) -> None:
        """Handles all packets in ``data`` and keeps the rest; the one place where errors become answers.

        A slice that it begins is the caller's to end. [MQTT-4.13.1-1]; [MQTT-4.8.0-1] of 3.1.1
        """
        try:
            if self.steps is None or self._do_steps(self.steps):
                self.handle_packets(self, data)
            else:
                self._wait_for_turn(data)
        except PacketError as error:
            self.core.stats.protocol_errors += 1
            self.tell_refused(cause_of(error.reason), error.reason, error.text)
            self.acknowledge_so_far()  # the packets before the bad one count
            self.fail(error.reason, error.text)
        except Exception:  # noqa: BLE001 - a fault of ours ends this connection alone; [MQTT-4.8.0-2] of 3.1.1
            self.core.stats.internal_errors += 1
            fault_log.exception("%s: internal error", self)
            self.tell_refused(Cause.INTERNAL_ERROR, DisconnectReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)
            self.fail(DisconnectReasonCode.IMPLEMENTATION_SPECIFIC_ERROR, "internal error")
        if self.write_paused and self.is_stuck:
            self.hold(ReadHold.ANSWERS)

    def keep(self, rest: bytes, needed: int) -> None:
        """Keeps the start of a packet until ``needed`` bytes are there."""
        if rest and self.state is not ConnectionState.CLOSED:
            self.partial = bytearray(rest)
            self.needed = needed
            self._note_kept()

    def proceed(self) -> None:
        """Handles what arrived while the hooks decided on the client."""
        data, self.partial = self.partial, None
        self.release(ReadHold.DECIDING)
        if data and self.state is not ConnectionState.CLOSED:
            turns = self.core.turns
            was_inside = turns.is_inside
            try:
                self.process(bytes(data))
            finally:
                if turns.is_inside and not was_inside:
                    turns.leave()

    # Work that takes turns

    @property
    def born_s(self) -> float:
        """When it was accepted, until it has logged in; monotonic seconds."""
        return self.seen_s if self.peer is None else self.peer.born_s

    @property
    def owner(self) -> str:
        """Whose it is; empty before the login."""
        return "" if self.client is None else self.client.owner

    def work(self, steps: Steps[None]) -> None:
        """Does the work on a packet, within a slice: as much as it allows, and the rest in later turns of the loop. The
        packets behind it wait, and nothing is read meanwhile."""
        self.steps = steps
        self._do_steps(steps)

    def _do_steps(self, steps: Steps[None]) -> bool:
        """Whether all of it is done, or nobody is left to do it for."""
        for _ in steps:
            if self.steps is not steps:  # the connection has ended
                steps.close()
                return True
            if self.core.turns.is_over:
                return False
        self.steps = None
        return True

    def leave(self, rest: bytes, needed: int, *, is_late: bool, shows_life: bool) -> None:
        """Ends the handling of a read. ``is_late``: the rest, whole packets too, waits for the connection's turn;
        ``shows_life``: there was a whole packet, as part of one shows none. [MQTT-3.1.2-22]"""
        if shows_life:
            self.seen_s = self.core.clock()
        if is_late or self.steps is not None:
            self._wait_for_turn(rest)
        else:
            self.keep(rest, needed)

    def _wait_for_turn(self, rest: bytes) -> None:
        """Goes on with the work, and then with ``rest``, when it is the connection's turn."""
        if self.state is ConnectionState.CLOSED:
            return
        self.keep(rest, 0)
        self.is_waiting = True
        self.hold(ReadHold.WORK)
        self.core.turns.later(self.owner, self._go_on)

    def _go_on(self) -> None:
        self.is_waiting = False
        if self.state is ConnectionState.CLOSED:
            return
        data, self.partial = bytes(self.partial or b""), None
        self.core.reading = self
        try:
            self.process(data)
        finally:
            self.core.reading = None
        if not self.is_waiting:
            self.release(ReadHold.WORK)

    # Acknowledgements of publishes

    def acknowledge(self, data: bytes) -> None:
        """Sends an encoded PUBACK or PUBREC after those of earlier publishes."""
        if self.batch is not None:
            self.batch.trail(data)
        elif self.acks is None:
            self.acks = [data]
        else:
            self.acks.append(data)

    def open_batch(self, now_us: int) -> DurableBatch:
        """The batch that the durable publishes of this read go into."""
        if self.batch is None:
            assert self.client is not None
            self.acknowledge_so_far()
            self.batch = DurableBatch(self.client, now_us, self, self.session)
        return self.batch

    def acknowledge_so_far(self) -> None:
        """Sends the acknowledgements collected in this read."""
        acks, self.acks = self.acks, None
        if not acks:
            return
        data = acks[0] if len(acks) == 1 else b"".join(acks)
        if self.waiting:
            self.waiting.add(Segment(data, ready=True))
        else:
            self.write(data)

    def finish_read(self) -> None:
        """Ends one read: sends its acknowledgements, and hands its batch to the embedding program."""
        self.acknowledge_so_far()
        batch, self.batch = self.batch, None
        if batch is None:
            return
        if self.waiting is None:
            self.waiting = Acknowledgements()
        self.waiting.add(batch)
        if self.waiting.unsettled > self.core.settings.inflight_from_client:
            raise PacketError(DisconnectReasonCode.RECEIVE_MAX_EXCEEDED, "receive maximum exceeded")
        self.core.take(batch)

    def limit_rate(self, count: int, elapsed_s: float) -> None:
        """Takes ``count`` publishes off the buckets of client and owner; without tokens it isn't read for a while."""
        pace = self.core.publish_pace
        rest_s, limit = pace.take(self.owner, count, self.core.clock()), pace.of_client
        if limit:
            self.tokens = min(float(limit), self.tokens + elapsed_s * limit) - count
            rest_s = max(rest_s, -self.tokens / limit)
        if rest_s > 0 and not self.holds & ReadHold.RATE:
            self.core.stats.rate_limited += 1
            self.tell_refused(Cause.PUBLISH_RATE, detail=f"more than {limit or pace.of_owner(self.owner)} a second")
            self.hold(ReadHold.RATE)
            asyncio.get_running_loop().call_later(rest_s, self.release, ReadHold.RATE)

    def settled(self) -> None:
        """Sends the acknowledgements of a batch that is durable, unless earlier batches still wait."""
        if self.state is ConnectionState.CLOSED or self.waiting is None:
            return
        data = self.waiting.release()
        if data:
            self.write(data)

    def feeds(self, subscriber: object) -> bool:
        """Whether messages of this client go to the connection ``subscriber``; only its first routes are looked at."""
        routes = islice(self.routes.values(), _ROUTES_LOOKED_AT)
        return any(target.session.connection is subscriber for route in routes for target in route.targets)

    # Reading on and off

    def hold(self, why: int) -> None:
        """Adds a reason for not reading from the socket."""
        if not self.holds and not self.transport.is_closing():
            self.transport.pause_reading()
        self.holds |= why

    def release(self, why: int) -> None:
        """Removes a reason for not reading; reads again when none is left."""
        if self.holds & why:
            self.holds &= ~why
            self.seen_s = self.core.clock()
            if not self.holds and not self.transport.is_closing():
                self.transport.resume_reading()

    def pause_writing(self) -> None:
        super().pause_writing()
        self.core.connections.unread[self] = None

    def resume_writing(self) -> None:
        self.write_paused = False
        self.core.connections.unread.pop(self, None)
        self.flush()
        if not self.core.back_pressure.is_idle:
            self.core.back_pressure.on_taken(self)
        self.release(ReadHold.ANSWERS)
        if self.session is not None:
            self.pump()

    # The end

    def give_way(self) -> None:
        """Ends a connection that hasn't logged in at once, to make room for another one."""
        self.close("made room for others")
        self.transport.abort()

    def give_up(self) -> None:
        """Ends a connection that hasn't logged in in time; one whose turn hasn't come is told so."""
        if self.peer is not None and self.listener.pace.is_waiting(self.peer.share, self):
            return self.refuse(*self.core.admission.refuse_pace(self.listener, self.address))
        self.tell_refused(Cause.LOGIN_TIMEOUT)
        return self.close("no CONNECT in time")

    def fail(self, reason: DisconnectReasonCode, text: str) -> None:
        """Closes because of the peer's or our own error, with the reason where MQTT 5 has a place for it.

        [MQTT-4.13.2-1]
        """
        log.info("%s: %s", self, text)
        if self.state not in (ConnectionState.NEW, ConnectionState.DECIDING, ConnectionState.CHALLENGED):
            return self.close(text, reason=reason)
        if self.version == 5:  # no DISCONNECT before a CONNACK [MQTT-3.1.4-1] [MQTT-3.14.0-1]
            return self.refuse(connack_reason(reason), text)
        self.core.stats.connects_refused += 1  # there is no return code for it [MQTT-3.1.4-1] [MQTT-3.2.2-6] of 3.1.1
        return self.close(text)

    def tell_refused(self, cause: Cause, reason: SupportsInt = 0, detail: str = "", times: int = 1) -> None:
        """Tells the embedding program of a refusal, or of the end of the connection."""
        client_id = getattr(self.client or self.request, "client_id", "")
        owner = None if self.client is None else self.client.owner
        self.core.hooks.tell_refused(
            Refusal(cause, self.address, client_id, owner, int(reason), detail, self.level, times)
        )

    def refuse(self, reason: ConnAckReasonCode, text: str, cause: Cause | None = None) -> None:
        """Answers a CONNECT with a refusal, session present 0, and closes. ``cause``: None where it is told already.

        [MQTT-3.1.4-2] [MQTT-3.2.2-6] [MQTT-3.2.2-7] [MQTT-4.12.0-4]; [MQTT-3.2.2-5] of 3.1.1
        """
        self.core.stats.connects_refused += 1
        if cause is not None:
            self.tell_refused(cause, reason, text)
        if self.version:
            self.send_packet(mqtt5.ConnAckPacket(reason_code=reason, reason_str=self.tellable(text)))
        self.close(text or reason.name)

    def close(self, why: str, *, reason: DisconnectReasonCode | None = None) -> None:
        """Ends the connection from our side; ``reason`` goes to an MQTT 5 client that has had its CONNACK."""
        if self.state is ConnectionState.CLOSED:
            return
        # From here on nothing more is sent but what waits and the DISCONNECT. [MQTT-3.14.4-1]
        was_open = self.state is ConnectionState.OPEN and self.withheld < Withheld.CONNACK
        self.state = ConnectionState.CLOSED
        if self.withheld:  # nothing that the disk hasn't got may be promised now
            self.out = None
            self.withheld = Withheld.NOTHING
        if reason is not None and was_open and self.version == 5:
            self.write(encode_packet(self._disconnect(reason, why), 5))
        self.write_paused = False
        waits = bool(self.out) and reason != DisconnectReasonCode.SERVER_SHUTTING_DOWN
        self.flush()
        self._hang_up(waits_for_peer=waits)
        self.core.connections.on_closing(self, self.core.clock())
        self.ended(why)

    def _hang_up(self, *, waits_for_peer: bool) -> None:
        """Closes the socket; while last bytes are on their way only our half of it, where the transport can do that:
        a reset would have the peer's system drop what it hasn't read yet. The sweep ends it if the peer doesn't.

        [MQTT-3.14.4-2]
        """
        if not (waits_for_peer and self.transport.can_write_eof()) or self.transport.is_closing():
            self.transport.close()
            return
        self.release(self.holds)  # else its end would not be seen
        try:
            self.transport.write_eof()
        except OSError:  # the peer is gone, and the loop hasn't noticed yet
            self.transport.close()

    def _disconnect(self, reason: DisconnectReasonCode, why: str) -> mqtt5.DisconnectPacket:
        # neither a session expiry nor user properties [MQTT-3.14.2-2] [MQTT-3.14.2-4]
        return mqtt5.DisconnectPacket(reason_code=reason, reason_str=self.tellable(why))

    def connection_lost(self, exc: Exception | None) -> None:
        self.core.connections.on_closed(self)
        if self.state is not ConnectionState.CLOSED:
            self.state = ConnectionState.CLOSED
            self.ended("connection lost" if exc is None else f"connection lost: {exc}")

    def ended(self, why: str) -> None:
        """Detaches the session and drops all caches; happens once, when the connection has ended."""
        self.partial = self.waiting = self.batch = self.retained = self.steps = None
        self.out = self.acks = self.challenge = None
        self.routes = NOTHING
        if self.peer is not None:
            self.listener.pace.leave(self.peer.share, self)
        session, client, self.session = self.session, self.client, None
        if session is not None and client is not None and session.connection is self:
            self.core.leave_session(session, client, self.will, why)

    def certificate(self) -> bytes | None:
        """The verified client certificate, DER; None where the client showed none."""
        if self.certificate_name is None and not self.transport.get_extra_info("peercert"):
            return None
        tls: ssl.SSLObject = self.transport.get_extra_info("ssl_object")
        return tls.getpeercert(binary_form=True)

    def forget_grants(self) -> None:
        """Drops cached grants and routes, so that the hooks are asked again for each topic."""
        self.routes = NOTHING
        self.grants = None

    def __str__(self) -> str:
        name = self.client.client_id if self.client is not None else "(no client)"
        return f"{name} {self.address}:{self.port}"
