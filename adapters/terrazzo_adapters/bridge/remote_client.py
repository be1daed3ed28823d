"""paho's client of one bridge, kept over its connections.

It knows what the remote broker has not acknowledged yet, sends that again when a session goes on, with the packet
identifiers that it had [MQTT-4.4.0-1], and drops it when the remote broker has forgotten the session.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from contextlib import suppress
from typing import Any, cast

import paho.mqtt.client as mqtt
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties

from terrazzo.ports.bridge import MARK
from terrazzo_adapters.bridge.long_packets import LongPackets
from terrazzo_adapters.bridge.settings import BridgeSettings

WINDOW = 100  # messages on the way, in either direction
CONNECT_S = 10.0

_HEAD_BYTES = 64 << 10  # of a packet beside its payload; a payload that is cut off there is still longer than it may be
_PROTOCOLS = {"3.1.1": mqtt.MQTTv311, "5.0": mqtt.MQTTv5}


class RemoteLinkError(ConnectionError):
    """The connection could not be made, or has ended; ``str()`` says why."""


class RemoteClient:
    """Attributes:
    paho: paho's client; a link sets its callbacks.
    sent: numbers of the queue's messages that the remote broker has not acknowledged, by packet identifier.
    """

    def __init__(self, settings: BridgeSettings, context: ssl.SSLContext | None, *, broker_id: str) -> None:
        self.sent: dict[int, int] = {}
        self._settings = settings
        self._broker_id = broker_id
        self._is_idle = asyncio.Event()  # no thread is connecting
        self._is_idle.set()
        self.paho = mqtt.Client(
            CallbackAPIVersion.VERSION2,
            client_id=settings.client_id,
            clean_session=None if settings.is_v5 else not settings.has_session,
            protocol=_PROTOCOLS[settings.protocol],
            reconnect_on_failure=False,
            manual_ack=True,
        )
        self._long_packets = LongPackets(settings.packet_bytes + _HEAD_BYTES)
        self.paho.on_socket_open = self._on_socket_open
        self.paho.connect_timeout = CONNECT_S
        self.paho.max_inflight_messages_set(0)  # the sender counts
        self.paho.max_queued_messages_set(0)
        if settings.username is not None:
            self.paho.username_pw_set(settings.username, settings.password)
        if context is not None:
            self.paho.tls_set_context(context)

    @property
    def partial_bytes(self) -> int:
        """Of a long packet that hasn't all arrived."""
        return self._long_packets.kept

    def _on_socket_open(self, client: mqtt.Client, userdata: Any, sock: Any) -> None:
        self._long_packets.bound(sock)

    async def connect(self) -> int:
        """Connects in a thread, because TCP, TLS and CONNECT block; a daemon, so that it can't delay the shutdown.

        Waits for an earlier attempt that was given up but hasn't ended.

        Returns:
            The socket's descriptor.

        Raises:
            RemoteLinkError, OSError: it failed.
        """
        await self._is_idle.wait()
        self._is_idle.clear()
        self._prepare()
        attempt: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        threading.Thread(target=self._reconnect, args=(attempt,), name="bridge connect", daemon=True).start()
        await attempt
        return cast(socket.socket, self.paho.socket()).fileno()

    def _prepare(self) -> None:
        given = self._settings
        address = (given.host, given.port, given.keep_alive_s)
        if not given.is_v5:
            self.paho.connect_async(*address)
            return
        wishes = properties_of(
            PacketTypes.CONNECT,
            SessionExpiryInterval=given.session_expiry_s if given.has_session else 0,
            ReceiveMaximum=WINDOW,
            MaximumPacketSize=given.packet_bytes,  # what is larger stays with the remote broker
            UserProperty=(MARK, self._broker_id),  # a remote Terrazzo marks messages for bridges with it
        )
        self.paho.connect_async(*address, clean_start=not given.has_session, properties=wishes)

    def _reconnect(self, attempt: asyncio.Future[None]) -> None:
        error: Exception | None = None
        try:
            self.paho.reconnect()
        except ValueError as caught:
            error = RemoteLinkError(f"not a host name: {caught}")
        except Exception as caught:  # noqa: BLE001 - whatever it is, it is raised where the connection is awaited
            error = caught
        with suppress(RuntimeError):  # the loop has closed meanwhile
            attempt.get_loop().call_soon_threadsafe(self._on_attempt, attempt, error)

    def _on_attempt(self, attempt: asyncio.Future[None], error: Exception | None) -> None:
        self._is_idle.set()
        if attempt.cancelled():
            self.close_socket()
        elif error is not None:
            attempt.set_exception(error)
        else:
            attempt.set_result(None)

    def close_socket(self) -> None:
        """Closes the connection without a DISCONNECT packet; one that is being made is closed when it is there."""
        sock = self.paho.socket() if self._is_idle.is_set() else None
        if sock is None:
            return
        with suppress(OSError):  # the peer may have been faster; then there is nothing to shut down
            cast(socket.socket, sock).shutdown(socket.SHUT_RDWR)
        self.paho.disconnect()  # cannot be written any more, at which paho closes the socket
        self.paho.loop_write()


def properties_of(packet_type: int, **values: Any) -> Properties:
    """paho's properties of a packet of this type."""
    properties = Properties(packet_type)  # type: ignore[no-untyped-call]
    for name, value in values.items():
        setattr(properties, name, value)
    return properties
