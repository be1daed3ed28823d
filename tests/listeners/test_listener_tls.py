"""MQTT over TLS: versions, client certificates, handshakes that fail."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess

import paho.mqtt.client as paho
import pytest
from listener_stand import ACCEPTED_4, PINGREQ, PINGRESP, publish, subscribe

from certificate_authority import Authority
from support import require_program
from waiting import until


@pytest.fixture
async def secure(start, authority):
    """A broker with TLS that asks for client certificates, its port in ``port``."""
    broker = start(connect_timeout_s=1.0)
    pair = authority.issue("server")
    broker.port = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key, client_ca=authority.ca)
    return broker


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_versions(secure, dial, authority, version):
    context = authority.client_context()
    context.minimum_version = context.maximum_version = version
    peer = await dial(secure.port, ssl=context)
    assert await peer.login("c") == ACCEPTED_4
    (request,) = secure.hooks.requests
    assert (request.listener, request.address, request.certificate_name) == ("tls", "127.0.0.1", None)


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
async def test_old_versions_are_refused(secure, dial, authority):
    context = authority.client_context()
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await dial(secure.port, ssl=context)
    await until(lambda: secure.stats.handshakes_failed == 1)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_a_client_certificate_names_the_client(secure, dial, authority, version):
    context = authority.client_context(authority.issue("terminal 7"))
    context.minimum_version = context.maximum_version = version
    peer = await dial(secure.port, ssl=context)
    assert await peer.login("c") == ACCEPTED_4
    assert secure.hooks.requests[0].certificate_name == "terminal 7"


async def test_a_foreign_client_certificate_is_refused(secure, dial, authority, tmp_path):
    stranger = Authority(tmp_path / "elsewhere", "Elsewhere").issue("terminal 7")
    peer = await dial(secure.port, ssl=authority.client_context(stranger))  # TLS 1.3: the refusal comes after it
    assert await peer.login("c") == b""
    await until(lambda: secure.stats.handshakes_failed == 1)
    assert secure.hooks.requests == []


async def test_no_certificate_is_asked_for_without_an_authority(start, dial, authority):
    broker, pair = start(), authority.issue("server")
    port = await broker.listen_tls("127.0.0.1", 0, cert=pair.cert, key=pair.key)
    peer = await dial(port, ssl=authority.client_context(authority.issue("terminal 7")))
    assert await peer.login("c") == ACCEPTED_4
    assert broker.hooks.requests[0].certificate_name is None


@pytest.mark.parametrize("nonsense", [b"\x10\x0c\x00\x04MQTT\x04\x02\x00\x00\x00\x00", b"GET / HTTP/1.1\r\n\r\n"])
async def test_what_is_not_tls_is_closed(secure, dial, nonsense):
    peer = await dial(secure.port)
    peer.send(nonsense)
    async with asyncio.timeout(5):
        while await peer.reader.read(4096):  # perhaps a TLS alert
            continue
    await until(lambda: secure.stats.handshakes_failed == 1)


@pytest.mark.parametrize("begun", [b"", b"\x16\x03\x01\x02\x00\x01"])
async def test_a_handshake_has_a_deadline(secure, dial, begun):
    peer = await dial(secure.port)
    peer.send(begun)
    assert await peer.ended()
    await until(lambda: secure.stats.handshakes_failed == 1)


async def test_peers_that_vanish_during_the_handshake(secure, dial, authority):
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", secure.port)) as half:
            half.send(b"\x16\x03\x01\x02\x00\x01")
            half.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # a reset at the end
    peer = await dial(secure.port, ssl=authority.client_context())
    assert await peer.login("c") == ACCEPTED_4
    await until(lambda: secure.stats.handshakes_failed == 20)
    assert secure.stats.connections == 1


async def test_a_slow_handshake_keeps_nobody_waiting(secure, dial, authority):
    for _ in range(50):
        await dial(secure.port)
    peer = await dial(secure.port, ssl=authority.client_context())
    assert await peer.login("c") == ACCEPTED_4
    assert secure.stats.handshakes_failed == 0


async def test_large_packets_both_ways(secure, dial, authority):
    peer = await dial(secure.port, ssl=authority.client_context())
    await peer.login("c")
    peer.send(subscribe("t"))
    assert await peer.receive() == b"\x90\x03\0\1\0"
    payload = bytes(range(256)) * 4000
    peer.send(publish("t", payload))
    received = await peer.receive()
    assert received == publish("t", payload)
    peer.send(PINGREQ)
    assert await peer.receive() == PINGRESP


@pytest.mark.parametrize("with_certificate", [False, True])
@pytest.mark.parametrize("protocol", [paho.MQTTv311, paho.MQTTv5])
async def test_paho(secure, authority, with_certificate, protocol):
    pair = authority.issue("terminal 9") if with_certificate else None

    def exchange() -> list[bytes]:
        received: list[bytes] = []
        client = paho.Client(paho.CallbackAPIVersion.VERSION2, "paho", protocol=protocol)
        client.tls_set_context(authority.client_context(pair))
        client.on_connect = lambda *_: client.subscribe("t", 1)
        client.on_subscribe = lambda *_: client.publish("t", b"hello", 1)
        client.on_message = lambda _client, _data, message: (received.append(message.payload), client.disconnect())
        client.connect("127.0.0.1", secure.port)
        client.loop_forever()
        return received

    async with asyncio.timeout(20):
        assert await asyncio.to_thread(exchange) == [b"hello"]
    assert secure.hooks.requests[0].certificate_name == ("terminal 9" if with_certificate else None)


@pytest.mark.parametrize("version", ["mqttv311", "mqttv5"])
async def test_mosquitto_pub(secure, dial, authority, version):
    pair = authority.issue("terminal 11")
    subscriber = await dial(secure.port, ssl=authority.client_context())
    await subscriber.login("s")
    subscriber.send(subscribe("t"))
    await subscriber.receive()
    command = [require_program("mosquitto_pub"), "-h", "localhost", "-p", str(secure.port), "-V", version]
    command += ["--cafile", str(authority.ca), "--cert", str(pair.cert), "--key", str(pair.key)]
    result = await asyncio.to_thread(
        subprocess.run, [*command, "-t", "t", "-m", "hi", "-q", "1"], capture_output=True, timeout=20
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert await subscriber.receive() == publish("t", b"hi")
    assert secure.hooks.requests[1].certificate_name == "terminal 11"
