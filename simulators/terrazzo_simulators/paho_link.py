"""``PahoLink``: a connection by paho-mqtt, MQTT 3.1.1 or 5.0, driven by the event loop instead of a thread."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any, NamedTuple, cast

import paho.mqtt.client as mqtt
from paho.mqtt import MQTTException
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from .link import DROPPED, QUEUED_MOST, Inbound, LinkError, LinkOptions, LoginRefused, Settled
from .spec import TerminalSpec

_PROTOCOLS = {"3.1.1": mqtt.MQTTv311, "5.0": mqtt.MQTTv5}
_BROKEN = (ValueError, IndexError, struct.error, MQTTException)  # what paho raises on a malformed packet
_CLOSE_S = 2.0


class _Outbound(NamedTuple):
    """A message to be sent."""

    topic: str
    payload: bytes
    qos: int
    correlation: bytes | None
    settled: Settled


class PahoLink:
    """One terminal's connection. ``pool`` runs the blocking TCP connect; everything else happens on the event loop."""

    def __init__(
        self, spec: TerminalSpec, options: LinkOptions, *, pool: Executor, on_error: Callable[[], None]
    ) -> None:
        self.closed = asyncio.Event()
        self.closed.set()
        self.closed_reason = 0
        self.on_message: Callable[[Inbound], None] = _ignore
        self._uid, self.username, self._options = spec.uid, spec.username, options
        self._pool, self._on_error = pool, on_error
        self._v5 = spec.protocol == "5.0"
        self._needs_password = spec.mode != "cert"
        self._client = self._make_client(spec)
        self._settled: dict[int, Settled] = {}
        self._backlog: deque[_Outbound] = deque()
        self._online = False
        self._opening = False
        self._writing = False
        self._attempt: asyncio.Future[Any] | None = None
        self._connack: asyncio.Future[None] | None = None
        self._suback: asyncio.Future[bool] | None = None

    @property
    def outstanding(self) -> int:
        return len(self._settled) + len(self._backlog)

    async def open(self, password: str) -> bool:
        self._loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._options.timeout_s):
                if self._attempt is not None:
                    await asyncio.wait([self._attempt])  # one that was given up may still occupy the client
                self._connack, self._suback = self._loop.create_future(), self._loop.create_future()
                if self._needs_password:
                    self._client.username_pw_set(self.username, password)
                await self._connect()
                await self._connack
            async with asyncio.timeout(self._options.timeout_s):
                self._client.subscribe(f"p2p/{self._uid}", qos=1)
                granted = await self._suback
            self._online = True
            while self._backlog and self._online:
                self._publish(self._backlog.popleft())
            return granted
        except BaseException:  # cancelled too: no socket stays behind
            self.cut()
            raise
        finally:
            self._connack = self._suback = None

    def publish(self, topic: str, payload: bytes, *, qos: int, correlation: bytes | None, settled: Settled) -> None:
        message = _Outbound(topic, payload, qos, correlation, settled)
        if self._online:
            self._publish(message)
        elif qos > 0 and self.outstanding < QUEUED_MOST:
            self._backlog.append(message)
        else:
            settled(DROPPED)

    def keep(self) -> None:
        if self._online:
            self._client.loop_misc()

    def cut(self) -> None:
        sock = self._client.socket()
        if sock is None:
            return
        with suppress(OSError):  # the peer may have been faster; then there is nothing to shut down
            cast(socket.socket, sock).shutdown(socket.SHUT_RDWR)
        self._client.disconnect()  # cannot be written any more, at which paho closes the socket and says so
        self._client.loop_write()

    async def close(self) -> None:
        if self.closed.is_set():
            return
        self._client.disconnect()
        try:
            async with asyncio.timeout(_CLOSE_S):
                await self.closed.wait()
        except TimeoutError:
            self.cut()

    def _make_client(self, spec: TerminalSpec) -> mqtt.Client:
        options = self._options
        lasting = options.session_expiry_s > 0
        client = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=spec.uid,
            clean_session=None if self._v5 else not lasting,
            protocol=_PROTOCOLS[spec.protocol],
            reconnect_on_failure=False,
        )
        if options.tls is not None:
            client.tls_set_context(options.tls.context(spec.uid if spec.mode == "cert" else None))
        client.connect_timeout = options.timeout_s
        client.max_queued_messages_set(QUEUED_MOST)
        if self._v5:
            expiry = _properties(PacketTypes.CONNECT, SessionExpiryInterval=options.session_expiry_s)
            client.connect_async(
                options.host, options.port, options.keep_alive_s, clean_start=not lasting, properties=expiry
            )
        else:
            client.connect_async(options.host, options.port, options.keep_alive_s)
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_subscribe, client.on_publish = self._on_subscribe, self._on_publish
        client.on_message = self._on_message
        client.on_socket_register_write = self._on_register_write
        client.on_socket_unregister_write = self._on_unregister_write
        client.on_socket_close = self._on_socket_close
        return client

    async def _connect(self) -> None:
        """TCP connect and CONNECT, in the pool; then the event loop watches the socket."""
        self._opening = True
        self._attempt = self._loop.run_in_executor(self._pool, self._client.reconnect)
        try:
            await asyncio.shield(self._attempt)
        except asyncio.CancelledError:
            self._attempt.add_done_callback(self._abandon)
            raise
        except Exception:  # whatever ended the attempt, the client is free again; a cancelled one still runs
            self._opening = False
            raise
        self._opening = False
        sock = self._client.socket()
        if sock is None:
            raise LinkError("cut while connecting")
        self.closed_reason = 0
        self.closed.clear()
        self._loop.add_reader(cast(socket.socket, sock), self._read)
        self._flush()

    def _abandon(self, attempt: asyncio.Future[Any]) -> None:
        """Closes a connection that was made after its caller had stopped waiting."""
        self._opening = False
        if not attempt.cancelled() and attempt.exception() is None:
            self.cut()

    def _read(self) -> None:
        try:
            self._client.loop_read()
            while self._has_more():
                self._client.loop_read()
        except _BROKEN:
            self._on_error()
            self.cut()

    def _has_more(self) -> bool:
        """Whether TLS has read from the socket what the client has not."""
        sock = self._client.socket()
        return isinstance(sock, ssl.SSLSocket) and sock.pending() > 0

    def _flush(self) -> None:
        """Writes all that has been queued since the event loop's last iteration."""
        self._client.loop_write()
        sock = self._client.socket()
        if sock is not None and self._client.want_write() and not self._writing:
            self._writing = True
            self._loop.add_writer(sock, self._client.loop_write)

    def _publish(self, message: _Outbound) -> None:
        properties = None
        if message.correlation is not None and self._v5:
            properties = _properties(PacketTypes.PUBLISH, CorrelationData=message.correlation)
        info = self._client.publish(message.topic, message.payload, qos=message.qos, properties=properties)
        if info.rc not in (MQTTErrorCode.MQTT_ERR_SUCCESS, MQTTErrorCode.MQTT_ERR_NO_CONN):
            message.settled(DROPPED)  # the queue is full
        elif message.qos == 0:
            message.settled(0)
        else:
            self._settled[info.mid] = message.settled

    def _on_register_write(self, client: mqtt.Client, userdata: Any, sock: Any) -> None:
        if not self._opening:  # while connecting this is called in the pool's thread; _connect flushes afterwards
            self._loop.call_soon(self._flush)

    def _on_unregister_write(self, client: mqtt.Client, userdata: Any, sock: Any) -> None:
        if self._writing:
            self._writing = False
            self._loop.remove_writer(sock)

    def _on_socket_close(self, client: mqtt.Client, userdata: Any, sock: Any) -> None:
        if not self._opening:
            self._loop.remove_reader(sock)

    def _on_connect(self, client: mqtt.Client, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if self._connack is None or self._connack.done():
            return
        if reason.is_failure:
            self._connack.set_exception(LoginRefused(reason.value, str(reason)))
        else:
            self._connack.set_result(None)

    def _on_disconnect(self, client: mqtt.Client, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if flags.is_disconnect_packet_from_server:
            self.closed_reason = reason.value
        for waiting in (self._connack, self._suback):
            if waiting is not None and not waiting.done():
                waiting.set_exception(LinkError(f"connection lost: {reason}"))
                waiting.exception()  # one of the two is never awaited
        self._online = False
        self.closed.set()

    def _on_subscribe(self, client: mqtt.Client, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        if self._suback is not None and not self._suback.done():
            self._suback.set_result(not any(reason.is_failure for reason in reasons))

    def _on_publish(self, client: mqtt.Client, userdata: Any, mid: int, reason: Any, properties: Any) -> None:
        settled = self._settled.pop(mid, None)
        if settled is not None:
            settled(reason.value)

    def _on_message(self, client: mqtt.Client, userdata: Any, message: mqtt.MQTTMessage) -> None:
        properties = message.properties
        correlation = getattr(properties, "CorrelationData", None)
        response_topic = getattr(properties, "ResponseTopic", None)
        self.on_message(Inbound(message.topic, bytes(message.payload), correlation, response_topic))


def _properties(packet_type: int, **values: Any) -> Properties:
    properties = Properties(packet_type)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(properties, name, value)
    return properties


def _ignore(message: Inbound) -> None:
    """The default listener for messages: does nothing."""
