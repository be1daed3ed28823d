"""Terminals as MQTT clients, one for each way to log in. Nothing of ``terrazzo`` is imported."""

from __future__ import annotations

import hashlib
import hmac
import json
import socket
import time
from types import TracebackType
from typing import Any, Self

import mqtt5
import paho.mqtt.client as paho
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from data_server import wait_for
from joserfc import jwe
from joserfc.jwk import OctKey, RSAKey
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from scramp import ScramClient

NEVER_S = 2**32 - 1  # a session expiry interval that never ends [MQTT-3.1.2-23]


def username_of(uid: str) -> str:
    """The user name that a terminal of the kept data has."""
    return f"u-{uid}"


def pin_of(uid: str) -> str:
    """Its pin."""
    return f"pin-{uid}"[:16]


def auto_password(uid: str) -> str:
    """The password of a terminal of mode ``auto``, good once."""
    second = str(int(time.time()))
    return f"{second}." + hmac.new(pin_of(uid).encode(), f"{uid}.{second}".encode(), hashlib.sha256).hexdigest()


class Terminal:
    """A client that has logged in; ``is_known`` says whether the broker still had a session of it."""

    def __init__(
        self, port: int, uid: str, *, password: str = "", protocol: int = 5, expiry_s: int = 0, keeps: bool = False
    ) -> None:
        """``keeps``: it takes up its session, and leaves one."""
        version = (
            {"protocol": paho.MQTTv5} if protocol == 5 else {"protocol": paho.MQTTv311, "clean_session": not keeps}
        )
        self.uid, self.messages, self.is_known = uid, list[Any](), False
        self._acks: dict[tuple[str, int], int] = {}
        self._flags: list[Any] = []
        self._client = paho.Client(paho.CallbackAPIVersion.VERSION2, uid, reconnect_on_failure=False, **version)
        self._client.username_pw_set(username_of(uid), password or pin_of(uid))
        self._listen()
        self._connect(port, protocol, expiry_s, keeps)

    def _listen(self) -> None:
        client = self._client
        client.on_connect = lambda _c, _d, flags, reason, _p: self._flags.append((flags, reason))
        client.on_message = lambda _c, _d, message: self.messages.append(message)
        client.on_publish = lambda _c, _d, mid, reason, _p: self._acks.__setitem__(("pub", mid), reason.value)
        client.on_subscribe = lambda _c, _d, mid, reasons, _p: self._acks.__setitem__(("sub", mid), reasons[0].value)

    def _connect(self, port: int, protocol: int, expiry_s: int, keeps: bool) -> None:
        more: dict[str, Any] = {}
        if protocol == 5:
            more = {"clean_start": not keeps, "properties": Properties(PacketTypes.CONNECT)}
            more["properties"].SessionExpiryInterval = expiry_s
        self._client.connect("127.0.0.1", port, 60, **more)
        self._client.loop_start()
        flags, reason = wait_for(lambda: self._flags, f"{self.uid} connects")[0]
        assert not reason.is_failure, (self.uid, reason)
        self.is_known = flags.session_present

    def report(
        self, channel: str, payload: Any, *, owner: str = "", correlation: bytes | None = None, **how: Any
    ) -> int:
        """Publishes at QoS 1 (JSON, or bytes as they are) on a channel; the acknowledgement's reason."""
        properties = Properties(PacketTypes.PUBLISH) if correlation else None
        if properties is not None:
            properties.CorrelationData = correlation
        body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        info = self._client.publish(f"g/{owner or self.uid}/{channel}", body, 1, properties=properties, **how)
        wait_for(lambda: ("pub", info.mid) in self._acks, f"{self.uid}'s report is acknowledged")
        return self._acks[("pub", info.mid)]

    def subscribe(self, topic_filter: str) -> None:
        """Subscribes at QoS 1."""
        _, mid = self._client.subscribe(topic_filter, 1)
        assert mid is not None
        wait_for(lambda: ("sub", mid) in self._acks, f"{topic_filter} is subscribed to")
        assert self._acks[("sub", mid)] == 1, topic_filter

    def received(self, count: int) -> list[Any]:
        """What has come, at least so much."""
        wait_for(lambda: len(self.messages) >= count, f"{self.uid} receives {count}")
        return self.messages

    def close(self) -> None:
        """Disconnects; what was received is acknowledged before."""
        self._client.disconnect()
        self._client.loop_stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def seal(uid: str, payload: Any, *, public_key: str = "") -> bytes:
    """A payload as a JWE: for an RSA key in PEM, else under the key that follows from the pin."""
    plain = json.dumps(payload).encode()
    if public_key:
        header, key = {"alg": "RSA-OAEP-256", "enc": "A256GCM"}, RSAKey.import_key(public_key)
        return jwe.encrypt_compact(header, plain, key, algorithms=list(header.values())).encode()
    return jwe.encrypt_compact(
        {"alg": "dir", "enc": "A256GCM"}, plain, _pin_key(uid), algorithms=["dir", "A256GCM"]
    ).encode()


def unseal(uid: str, token: bytes) -> Any:
    """What a sealed command says."""
    return json.loads(jwe.decrypt_compact(token, _pin_key(uid), algorithms=["dir", "A256GCM"]).plaintext or b"")


def _pin_key(uid: str) -> OctKey:
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=uid.encode()).derive(pin_of(uid).encode())
    return OctKey.import_key(key)


def report_by_scram(port: int, uid: str, method: str, payload: Any) -> None:
    """Logs in by SCRAM, which proves both sides, publishes a report on ``r`` and leaves; packet by packet."""
    client = ScramClient([method], username_of(uid), pin_of(uid))
    with socket.create_connection(("127.0.0.1", port), timeout=30) as link:
        stream = link.makefile("rb")
        first = client.get_client_first().encode()
        link.sendall(
            mqtt5.ConnectPacket(uid, clean_start=True, authentication_method=method, authentication_data=first).write()
        )
        challenge = _packet(stream)
        assert isinstance(challenge, mqtt5.AuthPacket), challenge
        client.set_server_first((challenge.authentication_data or b"").decode())
        link.sendall(
            mqtt5.AuthPacket(
                reason_code=mqtt5.AuthReasonCode.CONTINUE_AUTHENTICATION,
                authentication_method=method,
                authentication_data=client.get_client_final().encode(),
            ).write()
        )
        welcome = _packet(stream)
        assert isinstance(welcome, mqtt5.ConnAckPacket), welcome
        client.set_server_final((welcome.authentication_data or b"").decode())
        body = json.dumps(payload).encode()
        link.sendall(mqtt5.PublishPacket(f"g/{uid}/r", body, qos=mqtt5.QoS.AT_LEAST_ONCE, packet_id=1).write())
        taken = _packet(stream)
        assert isinstance(taken, mqtt5.PubAckPacket), taken
        link.sendall(mqtt5.DisconnectPacket().write())


def _packet(stream: Any) -> Any:
    """The next packet; those here are shorter than 16 KiB."""
    raw = stream.read(2)
    length = raw[1] & 127
    if raw[1] > 127:
        raw += stream.read(1)
        length |= raw[2] << 7
    return mqtt5.read(memoryview(raw + stream.read(length)))[0]
