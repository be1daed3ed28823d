"""``ScramLink``: a connection with MQTT 5.0 enhanced authentication by SCRAM, which paho-mqtt does not support."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import mqtt5
from scramp import ScramClient, ScramException

from .link import DROPPED, QUEUED_MOST, Inbound, LinkError, LinkOptions, LoginRefused, Settled
from .spec import TerminalSpec

INFLIGHT_MOST = 100
_CLOSE_S = 2.0
_PACKET_IDS = 65_535
_FAILURE = 0x80  # reason codes from here on are failures; mqtt5's, unlike an IntEnum, do not compare [MQTT-2.4]


@dataclass(slots=True)
class _Unsettled:
    """A message of QoS 1 or 2 that is not acknowledged."""

    packet: dict[str, Any]
    settled: Settled
    sent: bool = False
    released: bool = False  # PUBREC has come; from here on only PUBREL is repeated [MQTT-4.3.3-4]


class _Wire(asyncio.Protocol):
    """One TCP connection of a link; what arrives on an earlier one is ignored."""

    def __init__(self, link: ScramLink) -> None:
        self._link = link
        self._buffer = bytearray()
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass of it

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        self._link.receive(self, self._packets())

    def connection_lost(self, exc: Exception | None) -> None:
        self._link.lose(self, "connection lost" if exc is None else f"connection lost: {exc}")

    def _packets(self) -> Iterator[Any]:
        """The complete packets received so far. Raises ValueError at a malformed one."""
        data, start = bytes(self._buffer), 0
        while start < len(data):
            try:
                packet, size = mqtt5.read(memoryview(data)[start:])
            except IndexError:
                break  # the packet is not complete yet
            start += size
            yield packet
        del self._buffer[:start]


class ScramLink:
    """One terminal's connection; the login proves the pin without sending it, and makes the server prove it too."""

    def __init__(self, spec: TerminalSpec, options: LinkOptions, *, on_error: Callable[[], None]) -> None:
        self.closed = asyncio.Event()
        self.closed.set()
        self.closed_reason = 0
        self.on_message: Callable[[Inbound], None] = _ignore
        self._spec, self._options, self._on_error = spec, options, on_error
        self.username = spec.username
        self._wire: _Wire | None = None
        self._scram: ScramClient | None = None
        self._waiting: asyncio.Future[Any] | None = None
        self._unsettled: dict[int, _Unsettled] = {}
        self._last_id = 0
        self._receive_max = INFLIGHT_MOST
        self._keep_alive_s = options.keep_alive_s
        self._sent_s = self._heard_s = 0.0
        self._online = False

    @property
    def outstanding(self) -> int:
        return len(self._unsettled)

    async def open(self, password: str) -> bool:
        self._loop = asyncio.get_running_loop()
        self._scram = ScramClient([self._spec.scram], self.username, password)
        try:
            async with asyncio.timeout(self._options.timeout_s):
                await self._connect()
                await self._ask(self._connect_packet())
            async with asyncio.timeout(self._options.timeout_s):
                granted = await self._ask(self._subscribe_packet())
        except BaseException:  # cancelled too: no socket stays behind
            self.cut()
            raise
        self._online = True
        self._resend()
        return bool(granted)

    def publish(self, topic: str, payload: bytes, *, qos: int, correlation: bytes | None, settled: Settled) -> None:
        packet: dict[str, Any] = {
            "topic": topic,
            "payload": payload,
            "qos": mqtt5.QoS(qos),
            "correlation_data": correlation,
        }
        if qos == 0:
            if self._online:
                self._send(mqtt5.PublishPacket(**packet))
            settled(0 if self._online else DROPPED)
        elif len(self._unsettled) >= QUEUED_MOST:
            settled(DROPPED)
        else:
            self._unsettled[self._next_id()] = _Unsettled(packet, settled)
            self._resend()

    def keep(self) -> None:
        now_s = self._loop.time() if self._online else 0.0
        if not self._online or self._keep_alive_s == 0:
            return
        if now_s - self._heard_s > 1.5 * self._keep_alive_s:
            self.cut()
        elif now_s - min(self._sent_s, self._heard_s) >= 0.75 * self._keep_alive_s:
            self._send(mqtt5.PingReqPacket())  # [MQTT-3.1.2-20]

    def cut(self) -> None:
        wire = self._wire
        if wire is not None and wire.transport is not None:
            wire.transport.abort()
            self.lose(wire, "connection cut")

    async def close(self) -> None:
        if self._wire is None or self._wire.transport is None:
            return
        self._send(mqtt5.DisconnectPacket())
        self._wire.transport.close()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self.closed.wait()
        except TimeoutError:
            self.cut()

    def receive(self, wire: _Wire, packets: Iterator[Any]) -> None:
        """Handles packets that arrived on a connection, unless it is an earlier one."""
        if wire is not self._wire:
            return
        self._heard_s = self._loop.time()
        try:
            for packet in packets:
                self._handle(packet)
        except (ValueError, ScramException) as error:
            self._on_error()
            self._fail(LinkError(f"the broker broke the protocol: {error}"))
            self.cut()

    def lose(self, wire: _Wire, why: str) -> None:
        """Keeps unacknowledged messages of a connection that ended for the next one."""
        if wire is not self._wire:
            return
        self._wire = None
        self._online = False
        for entry in self._unsettled.values():
            entry.sent = False
        self._fail(LinkError(why))
        self.closed.set()

    # Receiving packets

    def _handle(self, packet: Any) -> None:
        handler = _HANDLERS.get(type(packet))
        if handler is None:
            raise ValueError(f"a client does not receive {type(packet).__name__}")
        handler(self, packet)

    def _on_auth(self, packet: mqtt5.AuthPacket) -> None:
        """Answers the server's first SCRAM message with the proof [MQTT-4.12.0-2]."""
        if self._scram is None or packet.reason_code != mqtt5.AuthReasonCode.CONTINUE_AUTHENTICATION:
            raise ValueError("AUTH out of turn")
        if packet.authentication_method != self._spec.scram:
            raise ValueError("AUTH with another method than CONNECT's")  # [MQTT-4.12.0-5]
        self._scram.set_server_first((packet.authentication_data or b"").decode())
        self._send(
            mqtt5.AuthPacket(
                reason_code=mqtt5.AuthReasonCode.CONTINUE_AUTHENTICATION,
                authentication_method=self._spec.scram,
                authentication_data=self._scram.get_client_final().encode(),
            )
        )

    def _on_connack(self, packet: mqtt5.ConnAckPacket) -> None:
        if packet.reason_code != mqtt5.ConnAckReasonCode.SUCCESS:
            self._fail(LoginRefused(int(packet.reason_code), packet.reason_str or packet.reason_code.name))
            return
        assert self._scram is not None
        # A server that does not know the pin cannot sign; without this check anyone could play the broker.
        self._scram.set_server_final((packet.authentication_data or b"").decode())
        self._scram = None
        self._receive_max = min(packet.receive_max, INFLIGHT_MOST)
        if packet.server_keep_alive is not None:
            self._keep_alive_s = packet.server_keep_alive  # [MQTT-3.1.2-21]
        self._resolve(None)

    def _on_suback(self, packet: mqtt5.SubAckPacket) -> None:
        self._resolve(all(int(reason) < _FAILURE for reason in packet.reason_codes))

    def _on_publish(self, packet: mqtt5.PublishPacket) -> None:
        # The only subscription asks for QoS 1, so QoS 2 cannot come [MQTT-3.8.4-8].
        inbound = Inbound(packet.topic, packet.payload, packet.correlation_data, packet.response_topic)
        self.on_message(inbound)
        if packet.packet_id is not None:
            self._send(mqtt5.PubAckPacket(packet.packet_id))

    def _on_puback(self, packet: mqtt5.PubAckPacket | mqtt5.PubCompPacket) -> None:
        entry = self._unsettled.pop(packet.packet_id, None)
        if entry is not None:
            entry.settled(int(packet.reason_code))
            self._resend()

    def _on_pubrec(self, packet: mqtt5.PubRecPacket) -> None:
        entry = self._unsettled.get(packet.packet_id)
        if int(packet.reason_code) >= _FAILURE:
            if entry is not None:
                del self._unsettled[packet.packet_id]
                entry.settled(int(packet.reason_code))
            return
        if entry is not None:
            entry.released = True
        self._send(mqtt5.PubRelPacket(packet.packet_id))  # [MQTT-4.3.3-4]

    def _on_disconnect(self, packet: mqtt5.DisconnectPacket) -> None:
        self.closed_reason = int(packet.reason_code)
        if self._wire is not None and self._wire.transport is not None:
            self._wire.transport.close()

    def _on_pingresp(self, packet: mqtt5.PingRespPacket) -> None:
        """Does nothing: a PINGRESP only shows that the broker answers."""

    # Sending packets

    async def _connect(self) -> None:
        _, wire = await self._loop.create_connection(lambda: _Wire(self), self._options.host, self._options.port)
        self._wire = wire
        self._heard_s = self._loop.time()
        self.closed_reason = 0
        self.closed.clear()

    def _connect_packet(self) -> mqtt5.ConnectPacket:
        assert self._scram is not None
        expiry_s = self._options.session_expiry_s
        return mqtt5.ConnectPacket(
            self._spec.uid,
            username=self._spec.username,
            clean_start=expiry_s == 0,
            keep_alive=self._options.keep_alive_s,
            session_expiry_interval=expiry_s,
            authentication_method=self._spec.scram,
            authentication_data=self._scram.get_client_first().encode(),
        )

    def _subscribe_packet(self) -> mqtt5.SubscribePacket:
        wanted = mqtt5.TopicFilter(f"p2p/{self._spec.uid}", max_qos=mqtt5.QoS.AT_LEAST_ONCE)
        return mqtt5.SubscribePacket(self._next_id(), [wanted])

    async def _ask(self, packet: Any) -> Any:
        """Sends a packet and returns its answer."""
        if self._wire is None:
            raise LinkError("connection lost")
        self._waiting = self._loop.create_future()
        self._send(packet)
        try:
            return await self._waiting
        finally:
            self._waiting = None

    def _send(self, packet: Any) -> None:
        if self._wire is not None and self._wire.transport is not None:
            self._sent_s = self._loop.time()
            self._wire.transport.write(packet.write())

    def _resend(self) -> None:
        """Sends what has not been sent on this connection, in order, up to the broker's Receive Maximum."""
        if not self._online:
            return
        room = self._receive_max - sum(entry.sent for entry in self._unsettled.values())
        for packet_id, entry in self._unsettled.items():
            if room <= 0:
                return
            if entry.sent:
                continue
            room -= 1
            entry.sent = True
            if entry.released:
                self._send(mqtt5.PubRelPacket(packet_id))
            else:
                self._send(mqtt5.PublishPacket(packet_id=packet_id, **entry.packet))
                entry.packet["duplicate"] = True  # should it have to be sent again [MQTT-3.3.1-1]

    def _next_id(self) -> int:
        while True:
            self._last_id = self._last_id % _PACKET_IDS + 1
            if self._last_id not in self._unsettled:
                return self._last_id

    def _resolve(self, result: Any) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(result)

    def _fail(self, error: LinkError) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


_HANDLERS: dict[type, Callable[[ScramLink, Any], None]] = {
    mqtt5.AuthPacket: ScramLink._on_auth,
    mqtt5.ConnAckPacket: ScramLink._on_connack,
    mqtt5.SubAckPacket: ScramLink._on_suback,
    mqtt5.PublishPacket: ScramLink._on_publish,
    mqtt5.PubAckPacket: ScramLink._on_puback,
    mqtt5.PubRecPacket: ScramLink._on_pubrec,
    mqtt5.PubCompPacket: ScramLink._on_puback,
    mqtt5.DisconnectPacket: ScramLink._on_disconnect,
    mqtt5.PingRespPacket: ScramLink._on_pingresp,
}


def _ignore(message: Inbound) -> None:
    """The default listener for messages: does nothing."""
