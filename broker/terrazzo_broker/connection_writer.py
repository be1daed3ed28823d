"""The writing half of a connection: collects bytes for its client, and writes them once a turn of the loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

import mqtt5
from mqtt5 import DisconnectReasonCode

from .codec.writer import encode_packet
from .connection_state import ConnectionState, Withheld
from .core import BrokerCore
from .delivery.connection_port import Origin
from .delivery.encoder import PublishEncoder, Rendered, plain_encoder
from .delivery.read_pace import ReadPace
from .delivery.retained_delivery import RetainedDelivery
from .delivery.session import Session
from .hooks import Client
from .limited_log import limited_logger
from .message import ApplicationMessage
from .refusals import TOLD, Cause
from .storage import StorageError

log = logging.getLogger("terrazzo_broker.connection")
storage_log = limited_logger("terrazzo_broker.persistence")

_QUEUED_BYTES = 1 << 20  # with more of them waiting for the client, retained messages are not added
_LARGE_PIECE_BYTES = 4 << 10  # pieces of that size in the mean are not joined
FLUSH_BYTES = 64 << 10  # more than this is written at once instead of at the end of the loop's turn


class ConnectionWriter(asyncio.Protocol):
    """The writing half of a connection: collects bytes until the end of the loop's turn, and longer while the client
    doesn't read or a commit has to come first."""

    __slots__ = (
        "client",
        "connect_packet",
        "core",
        "dirty",
        "encoder",
        "handed_bytes",
        "out",
        "out_bytes",
        "read_pace",
        "retained",
        "session",
        "state",
        "tells_why",
        "transport",
        "version",
        "withheld",
        "write_paused",
    )

    def __init__(self, core: BrokerCore) -> None:
        self.core = core
        self.transport: asyncio.Transport
        self.state = ConnectionState.NEW
        self.client: Client | None = None
        self.session: Session | None = None
        self.version = 0  # form of its packets, 4 or 5; 0 until CONNECT
        self.connect_packet: mqtt5.ConnectPacket | None = None  # until CONNACK
        self.encoder: PublishEncoder = plain_encoder(4)
        self.tells_why = False  # acknowledgements of its packets may carry a Reason String
        self.out: list[bytes] | None = None  # None while nothing waits
        self.out_bytes = 0
        self.handed_bytes = 0  # to the transport, since the start
        self.dirty = False
        self.write_paused = False
        self.withheld = Withheld.NOTHING
        self.retained: RetainedDelivery | None = None  # what new subscriptions have found
        self.read_pace: ReadPace | None = None  # of payloads that are on disk

    # Bytes out

    def write(self, data: bytes) -> None:
        """Sends bytes at the end of the loop's turn."""
        if self.out is None:
            self.out = [data]
        else:
            self.out.append(data)
        self.wrote(len(data))

    def wrote(self, count: int) -> None:
        """Has ``count`` bytes that were added to ``out`` flushed: at the end of the turn, or at once if many wait."""
        self.out_bytes += count
        if not self.dirty:
            self.dirty = True
            self.core.connections.flush_soon(self)
        if self.out_bytes > FLUSH_BYTES:
            self.flush()

    def send_packet(self, packet: mqtt5.Packet) -> None:
        """Sends a packet in the client's protocol version, unless the client doesn't take one so large."""
        data = encode_packet(packet, self.version)
        largest = self.largest_packet_bytes
        if largest is not None and len(data) > largest:  # [MQTT-3.1.2-24] [MQTT-3.1.2-25]
            log.info("%s: a packet of %d bytes is too large for the client", self, len(data))
        elif data:
            self.write(data)

    @property
    def largest_packet_bytes(self) -> int | None:
        """The client's Maximum Packet Size in bytes; None: no limit."""
        return self.encoder.packet_bytes if self.connect_packet is None else self.connect_packet.max_packet_size

    def tellable(self, why: str) -> str | None:
        """The Reason String, None where it would exceed the client's packet limit. [MQTT-3.2.2-19] [MQTT-3.14.2-3]

        CONNACK and DISCONNECT may carry it for each client. [MQTT-3.1.2-29]
        """
        largest = self.largest_packet_bytes
        fits = largest is None or len(why.encode()) + 16 <= largest
        return why if why and fits else None

    def told(self, cause: Cause) -> str:
        """The Reason String of an acknowledgement that refuses; empty for a client that wants none. [MQTT-3.1.2-29]

        [MQTT-3.4.2-2] [MQTT-3.5.2-2] [MQTT-3.9.2-1]
        """
        return (self.tellable(TOLD[cause]) or "") if self.tells_why else ""

    def flush(self) -> None:
        """Writes everything collected, unless the peer doesn't read or a commit has to come first."""
        out = self.out
        if self.write_paused or self.withheld or not out:
            return None
        if len(out) == 1:
            data = out.pop()  # it is empty then: whoever is adding to it goes on with ``_sent``
        elif self.out_bytes >= len(out) * _LARGE_PIECE_BYTES:
            return self._flush_pieces(out.copy(), out)
        else:
            data = b"".join(out)
            out.clear()
        self.out = None
        self.out_bytes = 0
        size = len(data)
        self.core.stats.bytes_out += size
        self.handed_bytes += size
        transport = self.transport
        if not transport.is_closing():
            transport.write(data)
        return None

    def _flush_pieces(self, pieces: list[bytes], out: list[bytes]) -> None:
        """Hands large pieces over without joining them: others are sent the same ones."""
        out.clear()
        self.out = None
        self.out_bytes = 0
        size = sum(map(len, pieces))
        self.core.stats.bytes_out += size
        self.handed_bytes += size
        if not self.transport.is_closing():
            self.transport.writelines(pieces)

    def pause_writing(self) -> None:
        self.write_paused = True

    @property
    def unsent_bytes(self) -> int:
        """Bytes that wait for the peer to read."""
        return self.out_bytes + self.transport.get_write_buffer_size()

    @property
    def is_stuck(self) -> bool:
        """Whether the peer reads so slowly that nothing more may be collected for it."""
        return bool(self.write_paused or self.withheld) and self.out_bytes > self.core.settings.queued_bytes

    @property
    def taken_bytes(self) -> int:
        """Bytes that the peer's system has taken since the start."""
        return self.handed_bytes - self.transport.get_write_buffer_size()

    @property
    def is_closed(self) -> bool:
        """Whether it has ended."""
        return self.state is ConnectionState.CLOSED

    @property
    def is_behind(self) -> bool:
        """Whether the peer reads so slowly that those who feed it had better be read more slowly, too."""
        return self.write_paused and self.out_bytes > self.core.back_pressure.high_bytes

    # Bytes that promise something: they wait for a commit

    def withhold(self) -> None:
        """Withholds all further output until ``let_go``: it acknowledges what isn't committed yet."""
        what = Withheld.PACKETS if self.state is ConnectionState.OPEN else Withheld.CONNACK
        self.withheld = max(self.withheld, what)

    def take_withheld(self) -> list[bytes]:
        """Takes the withheld output that acknowledges what is in the commit that starts now."""
        taken, self.out = self.out or [], None
        return taken

    def let_go(self, taken: list[bytes], *, more: bool) -> None:
        """Sends ``taken`` after its commit; what was collected since then waits for the next commit if ``more``."""
        if self.state is ConnectionState.CLOSED:
            return
        rest, self.out = self.out, taken
        self.withheld = Withheld.NOTHING
        if more:
            self.flush()
            self.withheld = Withheld.PACKETS
        self.out = [*(self.out or ()), *(rest or ())] or None
        self.out_bytes = sum(map(len, self.out or ()))
        if not more:
            self.flush()
            self.pump()

    # Messages out

    def send_raw(self, raw: bytes, count: int) -> None:
        """Sends ``count`` QoS 0 publishes, encoded already; for a slow client they are dropped."""
        if self.write_paused or self.withheld:
            if self.is_behind:
                self.core.back_pressure.fed.add(self)
            if self.out_bytes + len(raw) > self.core.settings.queued_bytes:
                self._drop(count)
                return
        if self.out is None:
            self.out = [raw]
        else:
            self.out.append(raw)
        self.out_bytes += len(raw)
        if not self.dirty:  # ``wrote``, for each receiver
            self.dirty = True
            self.core.connections.flush_soon(self)
        if self.out_bytes > FLUSH_BYTES:
            self.flush()
        self.core.stats.messages_out += count  # ``_count_out``, for each receiver
        if self.client is not None:
            self.client.messages_out += count

    def send_lone(self, message: ApplicationMessage, packet: bytes, at: int) -> bool:
        """Sends a short message of QoS 1: ``packet``, but with an identifier of its own at ``at``. False, and nothing
        is done, where it can't be sent just now or is to be journaled."""
        session, client = self.session, self.client
        if self.write_paused or self.withheld or session is None or client is None:
            return False
        if session.quota <= 0 or session.queue or session.journal is not None:
            return False
        self.write(packet[:at] + session.assign(message).to_bytes(2, "big") + packet[at + 2 :])
        self.core.stats.messages_out += 1
        client.messages_out += 1
        return True

    def send_rendered(self, rendered: Rendered, origin: Origin | None) -> list[int] | None:
        """Sends or queues messages; the indexes of those that there is no room for, None where all had room."""
        session = self.session
        assert session is not None
        if self.write_paused and self.is_behind:
            self.core.back_pressure.fed.add(self)
        if self.is_stuck:
            return self._queue_all(rendered.messages, origin)
        packets = session.transmit_all(rendered)
        if packets is not None:
            self.write(packets)
            self._count_out(len(rendered.wires))
            return None
        out = self._collected()
        before = len(out)
        refused = session.transmit(rendered.wires, out, origin)
        self._sent(out, before)
        return refused

    def send_each(self, messages: Sequence[ApplicationMessage], now_us: int, origin: Origin | None) -> list[int] | None:
        """``send_rendered`` for a client with an encoder of its own (aliases, a packet limit, a mark)."""
        session = self.session
        assert session is not None
        if self.write_paused and self.is_behind:
            self.core.back_pressure.fed.add(self)
        if self.is_stuck:
            return self._queue_all(messages, origin)
        out = self._collected()
        before = len(out)
        accepted = [session.send(each, self.encoder, out, now_us, origin) for each in messages]
        self._sent(out, before)
        return [index for index, taken in enumerate(accepted) if not taken] or None

    def pump(self) -> None:
        """Sends queued messages, then retained ones, as far as the client's quota and the socket allow."""
        session = self.session
        if session is not None and (session.queue or session.redeliver) and not self.is_stuck:
            self._pump_queue(session)
        if self.retained is not None:
            self._pump_retained(self.retained)

    def _pump_retained(self, retained: RetainedDelivery) -> None:
        retained.step()
        if retained.is_done and self.retained is retained:
            self.retained = None  # so that acknowledgements cost nothing more

    def _pump_queue(self, session: Session) -> None:
        out = self._collected()
        before = len(out)
        try:
            session.pump(self.encoder, out, self.core.now_us(), self._may_read)
        except StorageError as error:
            self._cannot_read(session, error)
            return
        self._sent(out, before)

    def _may_read(self, size: int) -> bool:
        """Whether a stored payload is read and sent now: after CONNACK, in the owner's turn, if the socket has room."""
        if self.withheld is Withheld.CONNACK:
            return False
        if self.read_pace is None:
            session = self.session
            assert session is not None
            self.read_pace = ReadPace(self._takes_more, self.pump, turns=self.core.turns, owner=session.owner)
        return self.read_pace.may_read(size)

    def _takes_more(self) -> bool:
        """Whether the socket has room for more than what waits."""
        return not ((self.write_paused or self.withheld) and self.out_bytes > FLUSH_BYTES)

    def _cannot_read(self, session: Session, error: StorageError) -> None:
        """Ends the connection, as its messages can't be sent in their order; they stay for the next one."""
        self.core.stats.storage_failures += 1
        storage_log.error("%s: what waits for it can't be read: %s", self, error)
        connection = session.connection
        if connection is not None:
            connection.tell_refused(Cause.STORAGE_UNAVAILABLE, DisconnectReasonCode.QUOTA_EXCEEDED)
            connection.close("messages can't be read", reason=DisconnectReasonCode.QUOTA_EXCEEDED)

    def deliver_retained(self, patterns: Sequence[str]) -> None:
        """Sends what new subscriptions find retained, as fast as the client takes it."""
        session = self.session
        if session is None or not patterns:
            return
        if self.retained is None:
            self.retained = RetainedDelivery(
                partial(self.core.retained_for, session),
                self._send_retained,
                self._takes_retained,
                session.subscriptions,
                turns=self.core.turns,
                owner=session.owner,
            )
        self.retained.add(patterns)
        self._pump_retained(self.retained)

    def _send_retained(self, message: ApplicationMessage) -> None:
        assert self.session is not None
        if self.send_each([message], self.core.now_us(), self.session.connection):
            self.core.stats.drop("queue full")

    def _takes_retained(self) -> bool:
        """Whether there is room for one more retained message, in the socket and in the session's queue."""
        session = self.session
        if session is None or self.is_closed:
            return False
        if not self._takes_more():
            return False
        settings = self.core.settings
        most_bytes = min(_QUEUED_BYTES, settings.queued_bytes // 2)
        return session.queued < settings.queued_messages and session.queued_bytes <= most_bytes

    def _collected(self) -> list[bytes]:
        """What waits, to be added to."""
        if self.out is None:
            self.out = []
        return self.out

    def _sent(self, out: list[bytes], before: int) -> None:
        """Has what was added to ``out`` behind the first ``before`` packets sent."""
        is_flushed = out is not self.out  # meanwhile
        added = out if is_flushed else out[before:]
        if is_flushed and added:
            self.out = [*added, *(self.out or ())]
        if added:
            self.wrote(sum(map(len, added)))
            self._count_out(len(added))
        elif not out and not is_flushed:
            self.out = None

    def _count_out(self, count: int) -> None:
        self.core.stats.messages_out += count
        if self.client is not None:
            self.client.messages_out += count

    def _drop(self, count: int) -> None:
        client, stats = self.client, self.core.stats
        stats.drop("slow consumer", count)
        if client is not None:
            client.messages_dropped += count
            if not client.owner:  # else its name is not for everybody
                stats.dropped_for.add(client.client_id, count)

    def _queue_all(self, messages: Sequence[ApplicationMessage], origin: Origin | None) -> list[int] | None:
        assert self.session is not None
        refused = []
        for index, message in enumerate(messages):
            if not message.qos:
                self._drop(1)
            elif not self.session.enqueue(message, origin):
                refused.append(index)
        return refused or None
