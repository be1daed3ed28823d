"""Which web pages may open MQTT over WebSocket: a browser says whose page it is, other programs say nothing."""

from __future__ import annotations

import pytest
from listener_stand import ACCEPTED_4, connect
from websocket_peer import WebSocketPeer, frame

from terrazzo_broker.web_origin import AllowedOrigins, is_of_host, normal_origin


@pytest.fixture
async def ask(start):
    """Asks a broker that allows one origin for an upgrade; returns the peer and the status."""
    brokers, peers = {}, []

    async def _ask(
        origin: str, *, allowed: tuple[str, ...] | None = ("https://console.example.com",), more: tuple[str, ...] = ()
    ) -> WebSocketPeer:
        if allowed not in brokers:
            brokers[allowed] = start(allowed_origins=allowed, trusted_proxies=("127.0.0.1",))
            brokers[allowed].port = await brokers[allowed].listen_websocket("127.0.0.1", 0)
        peer = await WebSocketPeer.open(brokers[allowed].port)
        peers.append(peer)
        lines = ["GET /mqtt HTTP/1.1", "Host: broker.example.com:8083", "Upgrade: websocket", "Connection: Upgrade"]
        lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="]
        lines += ["Sec-WebSocket-Protocol: mqtt", *([f"Origin: {origin}"] if origin else []), *more]
        peer.send("\r\n".join([*lines, "", ""]).encode())
        await peer.answered()
        return peer

    yield _ask
    for peer in peers:
        await peer.close()


@pytest.mark.parametrize(
    "origin",
    [
        "",
        "http://broker.example.com:8083",
        "https://broker.example.com:8083",
        "HTTPS://Console.Example.com",
        "https://console.example.com:443",
    ],
)
async def test_programs_the_own_hosts_pages_and_allowed_ones_may_connect(ask, origin: str):
    peer = await ask(origin)
    assert peer.status == 101
    peer.send(frame(connect("c")))
    assert await peer.mqtt(4) == ACCEPTED_4


@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example.com",
        "http://broker.example.com",
        "http://console.example.com",
        "https://console.example.com.evil.org",
        "null",
        "file://broker.example.com:8083",
        "broker.example.com:8083",
        "\x1b[31m",
    ],
)
async def test_foreign_pages_may_not(ask, origin: str):
    peer = await ask(origin)
    assert peer.status in (400, 403)


async def test_all_but_null_where_all_are_allowed(ask):
    assert (await ask("https://evil.example.com", allowed=("*",))).status == 101
    assert (await ask("null", allowed=("*",))).status == 403
    assert (await ask("null", allowed=None)).status == 101, "the broker alone asks nobody"


async def test_a_trusted_proxy_says_what_host_was_asked(ask):
    forwarded = ("X-Forwarded-Host: public.example.com",)
    assert (await ask("https://public.example.com", more=forwarded)).status == 101
    assert (await ask("https://broker.example.com:8083", more=forwarded)).status == 403


def test_what_an_origin_is_equal_to():
    assert normal_origin("HTTP://Example.com:80") == "http://example.com"
    assert "https://a.example:443" in AllowedOrigins(["https://A.example"])
    assert "null" not in AllowedOrigins(["*"])
    assert not is_of_host("example.com", "example.com")
