"""One connection to the remote broker by paho-mqtt, driven by the event loop instead of a thread of its own.

Here the platform is a client, and keeps to what binds clients. [MQTT-7.0.0-1] of 3.1.1
"""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
from collections.abc import Callable, Mapping
from typing import Any

import paho.mqtt.client as mqtt
from paho.mqtt import MQTTException
from paho.mqtt.enums import MQTTErrorCode
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.subscribeoptions import SubscribeOptions

from terrazzo_adapters.bridge.remote_client import CONNECT_S, WINDOW, RemoteClient, RemoteLinkError, properties_of
from terrazzo_adapters.bridge.settings import BridgeSettings

_log = logging.getLogger(__name__)

_BROKEN = (ValueError, IndexError, struct.error, MQTTException)  # what paho raises on a malformed packet
_CLOSE_S = 1.0
_KEEP_S = 0.1  # paho sends a PINGREQ at the first look after the keep-alive [MQTT-3.1.2-20]


class RemoteLink:
    """One connection, opened once. ``lost`` is done when it has ended: with the reason as result, or this side's fault.

    All callbacks of the event loop run inside ``guard``, so that no fault in one is lost.
    """

    def __init__(self, client: RemoteClient, settings: BridgeSettings) -> None:
        self.on_message: Callable[[mqtt.MQTTMessage], None] = lambda _: None
        self.on_session: Callable[[bool], None] = lambda _: None  # told of the CONNACK: whether the session goes on
        self.on_puback: Callable[[int, int], None] = lambda _, __: None  # packet identifier, reason code
        self.on_drained: Callable[[], None] = lambda: None  # called when the socket's buffer is empty again
        self.window = WINDOW  # how many QoS 1 publishes the remote broker takes unacknowledged
        self.is_v5 = settings.is_v5
        self._settings = settings
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[str] = self._loop.create_future()
        self._connack: asyncio.Future[None] = self._loop.create_future()
        self._suback: asyncio.Future[list[int]] = self._loop.create_future()
        self._remote = client
        self._client = client.paho
        self._fd = -1
        self._is_paused = False
        self._writing = False
        self._is_in_callback = False  # of paho

    async def open(self) -> list[str]:
        """Connects, logs in and subscribes; returns the filters that were refused.

        Raises:
            RemoteLinkError, OSError, TimeoutError: the connection failed.
        """
        try:
            async with asyncio.timeout(CONNECT_S):
                await self._connect()
                await self._connack
            return await self._subscribe()
        except BaseException:  # cancelled too: no socket stays behind
            self.cut("given up")
            raise

    async def _connect(self) -> None:
        self._hear(self._client)
        self._fd = await self._remote.connect()
        self._loop.add_reader(self._fd, self.guard, self._read)
        self._loop.call_later(_KEEP_S, self.guard, self._keep)
        self._flush()

    async def _subscribe(self) -> list[str]:
        filters = self._settings.remote_filters
        if not filters:
            return []
        async with asyncio.timeout(CONNECT_S):
            self._client.subscribe([(pattern, self._wish(pattern, qos)) for pattern, qos in filters.items()])
            granted = await self._suback
        return [pattern for pattern, code in zip(filters, granted, strict=False) if code >= 0x80]

    def _wish(self, pattern: str, qos: int) -> Any:
        """The subscription options: No Local, Retain As Published, retained messages only with a new subscription.

        No Local with a shared subscription is a protocol error (MQTT 5.0, 3.8.3.1).
        """
        if not self.is_v5:
            return qos
        return SubscribeOptions(
            qos, noLocal=not pattern.startswith("$share/"), retainAsPublished=True, retainHandling=1
        )

    def _hear(self, client: mqtt.Client) -> None:
        client.on_connect, client.on_disconnect = self._on_connect, self._on_disconnect
        client.on_subscribe, client.on_publish = self._on_subscribe, self._on_publish
        client.on_message = self._on_message
        client.on_socket_register_write = self._on_register_write
        client.on_socket_unregister_write = self._on_unregister_write
        client.on_socket_close = self._on_socket_close

    # Called by the bridge

    def publish(
        self, topic: str, payload: bytes, *, qos: int, retain: bool, properties: Mapping[str, Any]
    ) -> int | None:
        """Sends a message.

        Returns:
            The packet identifier under which it is on its way, at QoS 1 also if the connection has just ended; None if
            it isn't.

        Raises:
            ValueError: the topic or the size is not possible in MQTT.
        """
        given = properties_of(PacketTypes.PUBLISH, **properties) if self.is_v5 and properties else None
        info = self._client.publish(topic, payload, qos=qos, retain=retain, properties=given)
        is_kept = info.rc == MQTTErrorCode.MQTT_ERR_SUCCESS or (qos and info.rc == MQTTErrorCode.MQTT_ERR_NO_CONN)
        return info.mid if is_kept else None

    def acknowledge(self, message: mqtt.MQTTMessage) -> None:
        """Sends the PUBACK of a received message."""
        if not self.lost.done():
            self._client.ack(message.mid, message.qos)

    @property
    def is_congested(self) -> bool:
        """Whether written data still waits in the socket's buffer; ``on_drained`` is called when it has left."""
        self._flush()
        return self._client.want_write()

    def pause_reading(self) -> None:
        """Stops reading from the socket until ``resume_reading``."""
        if not self._is_paused and self._fd >= 0:
            self._is_paused = True
            self._loop.remove_reader(self._fd)

    def resume_reading(self) -> None:
        """Reads from the socket again."""
        if self._is_paused and self._fd >= 0:
            self._is_paused = False
            self._loop.add_reader(self._fd, self.guard, self._read)
            self._loop.call_soon(self.guard, self._read)  # TLS may have read ahead

    async def close(self) -> None:
        """Ends the connection with a DISCONNECT packet, and waits at most a second for its end."""
        if self.lost.done():
            return
        self._client.disconnect()
        self._flush()
        await asyncio.wait({self.lost}, timeout=_CLOSE_S)
        self.cut("closed")

    def cut(self, why: str) -> None:
        """Ends the connection at once, without a DISCONNECT packet; ``why`` becomes the result of ``lost``."""
        self._end(why)
        if self._is_in_callback:  # paho holds a lock that closing the socket takes, and that can't be taken twice
            self._loop.call_soon(self._remote.close_socket)
        else:
            self._remote.close_socket()

    def guard(self, work: Callable[[], object]) -> None:
        """Calls ``work``; an exception ends the connection, and is raised by ``open`` or ``lost``."""
        try:
            work()
        except Exception as error:  # noqa: BLE001 - nobody would hear of it in a callback of the event loop
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        if self.lost.done():
            _log.error("after the connection to the remote broker had ended", exc_info=error)
        self._end(str(error), error)
        self.cut(str(error))

    def _end(self, why: str, fault: Exception | None = None) -> None:
        for waiting in (self._connack, self._suback):
            if not waiting.done():
                waiting.set_exception(fault or RemoteLinkError(why))
                waiting.exception()  # perhaps nobody awaits it
        if self.lost.done():
            return
        if fault is None:
            self.lost.set_result(why)
        else:
            self.lost.set_exception(fault)
            self.lost.exception()  # perhaps nobody awaits it

    # Called by paho and the event loop

    def _read(self) -> None:
        try:
            self._client.loop_read()
            # No selector reports what TLS has decrypted already.
            while not self._is_paused and isinstance(sock := self._client.socket(), ssl.SSLSocket) and sock.pending():
                self._client.loop_read()
        except _BROKEN as error:
            self.cut(f"the remote broker sent a malformed packet: {error}")

    def _flush(self) -> None:
        """Writes all that has been queued."""
        if self._fd < 0:
            return
        self._client.loop_write()
        if self._fd >= 0 and self._client.want_write() and not self._writing:
            self._writing = True
            self._loop.add_writer(self._fd, self.guard, self._client.loop_write)

    def _keep(self) -> None:
        """Lets paho send and check its keep-alive."""
        if not self.lost.done():
            self._client.loop_misc()
            self._loop.call_later(_KEEP_S, self.guard, self._keep)

    def _on_register_write(self, client: mqtt.Client, userdata: Any, sock: Any) -> None:
        if self._fd >= 0:  # else it is the connecting thread; _connect flushes afterwards
            self._loop.call_soon(self.guard, self._flush)

    def _on_unregister_write(self, client: mqtt.Client, userdata: Any, sock: Any) -> None:
        if self._writing and self._fd >= 0:
            self._writing = False
            self._loop.remove_writer(self._fd)
            self._loop.call_soon(self.guard, self.on_drained)

    def _on_socket_close(self, client: mqtt.Client, userdata: Any, sock: Any) -> None:
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            self._loop.remove_writer(self._fd)
            self._fd = -1

    def _on_connect(self, client: mqtt.Client, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if self._connack.done():
            return
        if reason.is_failure:
            self._connack.set_exception(RemoteLinkError(f"login refused: {reason}"))
            return
        self.window = min(WINDOW, getattr(properties, "ReceiveMaximum", WINDOW))
        if not flags.session_present:  # what paho would send again now is new to the remote broker
            client.drop_out_messages()
        self.on_session(flags.session_present)
        self._connack.set_result(None)

    def _on_disconnect(self, client: mqtt.Client, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        said = "the remote broker ended the connection" if flags.is_disconnect_packet_from_server else "connection lost"
        self._end(f"{said}: {reason}")

    def _on_subscribe(self, client: mqtt.Client, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        if not self._suback.done():
            self._suback.set_result([reason.value for reason in reasons])

    # What these raise must not look to ``_read`` as if the remote broker had sent a malformed packet.

    def _on_message(self, client: mqtt.Client, userdata: Any, message: mqtt.MQTTMessage) -> None:
        self._is_in_callback = True
        try:
            self.on_message(message)
        except Exception as error:  # noqa: BLE001 - as in ``guard``
            self._fail(error)
        finally:
            self._is_in_callback = False

    def _on_publish(self, client: mqtt.Client, userdata: Any, mid: int, reason: Any, properties: Any) -> None:
        self._is_in_callback = True
        try:
            self.on_puback(mid, reason.value)
        except Exception as error:  # noqa: BLE001 - as in ``guard``
            self._fail(error)
        finally:
            self._is_in_callback = False
