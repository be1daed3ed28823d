"""MQTT over WebSocket: the upgrade, and clients that share no code with the broker."""

from __future__ import annotations

import asyncio

import paho.mqtt.client as paho
import pytest
from aiohttp import web
from listener_stand import ACCEPTED_4, connect
from websocket_peer import WebSocketPeer, frame

from certificate_authority import Authority
from mqttjs import run_mqttjs
from terrazzo_broker import TlsFiles
from terrazzo_broker.listeners.websocket import WebSocketListener
from waiting import close, until


@pytest.fixture
async def listening(start):
    """A broker on WebSocket, its port in ``port``."""
    broker = start(connect_timeout_s=1.0)
    broker.port = await broker.listen_websocket("127.0.0.1", 0)
    return broker


@pytest.fixture
async def secure(start, authority):
    """A broker on secure WebSocket that asks for client certificates."""
    broker, pair = start(), authority.issue("server")
    files = TlsFiles(cert=pair.cert, key=pair.key, client_ca=authority.ca)
    broker.port = await broker.listen_websocket("127.0.0.1", 0, tls=files)
    return broker


@pytest.fixture
async def opened(listening):
    """Opens connections that haven't asked for anything."""
    peers = []

    async def _open(**options):
        peers.append(await WebSocketPeer.open(options.pop("port", listening.port), **options))
        return peers[-1]

    yield _open
    for peer in peers:
        await peer.close()


@pytest.mark.parametrize(
    ("offered", "chosen"), [("mqtt", "mqtt"), ("mqttv3.1", "mqttv3.1"), ("chat, mqtt", "mqtt"), ("mqtt,x", "mqtt")]
)
async def test_the_subprotocol_is_mqtt(opened, offered, chosen):  # [MQTT-6.0.0-3] [MQTT-6.0.0-4]
    peer = await opened()
    await peer.ask(protocol=offered)
    assert (peer.status, peer.headers["sec-websocket-protocol"]) == (101, chosen)
    assert "sec-websocket-extensions" not in peer.headers
    peer.send(frame(connect("c")))
    assert await peer.mqtt(4) == ACCEPTED_4


@pytest.mark.parametrize(
    ("wish", "status"),
    [
        ({"protocol": None}, 400),
        ({"protocol": "chat"}, 400),
        ({"path": "/"}, 404),
        ({"path": "/mqtt/"}, 404),
        ({"path": "/%2e%2e/etc/passwd"}, 404),
        ({"key": b"short"}, 400),
    ],
)
async def test_other_upgrades_are_refused(opened, listening, wish, status):
    peer = await opened()
    await peer.ask(**wish)
    assert peer.status == status
    assert peer.headers["connection"] == "close"
    body = await asyncio.wait_for(peer.reader.read(), 5)
    assert b"mqtt" in body or b"WebSocket" in body
    assert listening.stats.upgrades_refused == 1
    await until(lambda: not listening.stats.connections)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /mqtt HTTP/1.1\r\nHost: x\r\n\r\n", 426),
        (b"POST /mqtt HTTP/1.1\r\nHost: x\r\nContent-Length: 999999\r\n\r\nxx", 426),
        (b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01c\r\n\r\n", 400),
        (b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\n\r\n", 431),
    ],
)
async def test_what_is_no_upgrade_is_refused(opened, listening, request_, status):
    peer = await opened()
    peer.send(request_)
    await peer.answered()
    assert peer.status == status
    await asyncio.wait_for(peer.reader.read(), 5)
    assert listening.stats.accepted == 0


async def test_another_path(start):
    broker = start()
    peer = await WebSocketPeer.open(await broker.listen_websocket("127.0.0.1", 0, path="/broker"))
    await peer.ask(path="/broker?token=1")
    assert peer.status == 101
    await peer.close()


@pytest.mark.parametrize("sent", [b"", b"GET /mqtt HTTP/1.1\r\nHost: x\r\n"])
async def test_the_upgrade_has_a_deadline(opened, listening, sent):
    peer = await opened()
    peer.send(sent)
    assert await peer.ended()
    assert listening.stats.connect_timeouts == 1


async def test_connect_has_the_same_deadline(opened, listening):
    peer = await opened()
    await peer.ask()
    assert await peer.close_code() == 1000
    assert listening.stats.connect_timeouts == 1


async def test_packets_right_behind_the_upgrade(listening):
    """In the same segment, where a client doesn't wait for the answer."""
    peer = await WebSocketPeer.open(listening.port)
    peer.send(
        b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: mqtt\r\n\r\n" + frame(connect("c"))
    )
    await peer.answered()
    assert await peer.mqtt(4) == ACCEPTED_4
    await peer.close()


async def test_closing_says_goodbye(start):
    broker = start()
    peer = await WebSocketPeer.upgrade(await broker.listen_websocket("127.0.0.1", 0))
    peer.send(frame(connect("c", version=5)))
    await peer.next_frame()
    closing = asyncio.create_task(broker.close(5.0))
    _, data = await peer.next_frame()
    assert (data[0], data[2]) == (0xE0, 0x8B)
    await peer.close_code()
    await asyncio.wait_for(closing, 4)
    await peer.close()


async def test_closing_with_visitors(start, opened):
    broker = start()
    port = await broker.listen_websocket("127.0.0.1", 0)
    peer = await opened(port=port)
    peer.send(b"GET /mq")
    upgraded = await opened(port=port)
    await upgraded.ask()
    await asyncio.wait_for(broker.close(0.5), 5)
    assert not broker.is_listening
    assert await peer.ended()


def exchange_with_paho(port: int, protocol: int, context=None) -> bytes:
    """Subscribes, publishes to itself, and gives back what came."""
    received: list[bytes] = []
    client = paho.Client(paho.CallbackAPIVersion.VERSION2, "paho", transport="websockets", protocol=protocol)
    client.ws_set_options(path="/mqtt")
    if context is not None:
        client.tls_set_context(context)
    client.on_connect = lambda *_: client.subscribe("t", 2)
    client.on_subscribe = lambda *_: client.publish("t", bytes(100_000), 2)
    client.on_message = lambda _client, _data, message: (received.append(message.payload), client.disconnect())
    client.connect("127.0.0.1", port)
    client.loop_forever()
    return b"".join(received)


@pytest.mark.parametrize("protocol", [paho.MQTTv311, paho.MQTTv5])
async def test_paho(listening, protocol):
    async with asyncio.timeout(20):
        assert await asyncio.to_thread(exchange_with_paho, listening.port, protocol) == bytes(100_000)


@pytest.mark.parametrize("name", [None, "terminal 5"])
async def test_paho_over_tls(secure, authority: Authority, name):
    context = authority.client_context(None if name is None else authority.issue(name))
    async with asyncio.timeout(20):
        assert await asyncio.to_thread(exchange_with_paho, secure.port, paho.MQTTv5, context) == bytes(100_000)
    request = secure.hooks.requests[0]
    assert (request.listener, request.certificate_name) == ("wss", name)


async def exchange_with_mqttjs(broker, **options) -> None:
    """Subscribes, publishes to itself, and checks what comes."""
    message = {"topic": "t/1", "payload": "x" * 70_000, "qos": 1}
    options |= {"clientId": "js", "path": "/mqtt", "subscribe": "t/#", "publish": [message], "receive": 1}
    outcome = await asyncio.to_thread(run_mqttjs, "publish_subscribe", port=broker.port, **options)
    assert outcome["connected"], outcome
    assert [(each["topic"], each["payload"]) for each in outcome["received"]] == [("t/1", "x" * 70_000)]


@pytest.mark.parametrize("version", [4, 5])
async def test_mqttjs(listening, version):
    await exchange_with_mqttjs(listening, protocol="ws", protocolVersion=version)
    assert listening.hooks.requests[0].listener == "ws"


async def test_mqttjs_over_tls(secure, authority):
    await exchange_with_mqttjs(secure, protocol="wss", ca=authority.ca.read_text())
    assert secure.hooks.requests[0].listener == "wss"


async def test_a_fault_while_writing_ends_that_connection_alone(opened, listening, monkeypatch):
    good, bad = await opened(), await opened()
    for name, peer in (("good", good), ("bad", bad)):
        await peer.ask()
        peer.send(frame(connect(name)))
        assert await peer.mqtt(4) == ACCEPTED_4
    send_bytes = web.WebSocketResponse.send_bytes
    faults = ["planted"]

    async def faulty(self, data):
        if faults:
            raise RuntimeError(faults.pop())
        await send_bytes(self, data)

    monkeypatch.setattr(web.WebSocketResponse, "send_bytes", faulty)
    bad.send(frame(b"\xc0\0"))
    await until(lambda: listening.client("bad") is None)
    good.send(frame(b"\xc0\0"))
    assert await good.mqtt(2) == b"\xd0\0"
    assert listening.stats.internal_errors == 1


async def test_who_is_gone_before_the_upgrade_is_answered_is_no_fault(listening, monkeypatch, caplog):
    """The transport closes when the request has been read, before the answer is written."""
    monkeypatch.setattr(WebSocketListener, "_refusal", lambda self, request, socket: request.transport.close())
    reader, writer = await asyncio.open_connection("127.0.0.1", listening.port)
    writer.write(b"GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n")
    writer.write(b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n")
    assert await reader.read() == b""
    await close(writer)
    assert "Error handling request" not in caplog.text
