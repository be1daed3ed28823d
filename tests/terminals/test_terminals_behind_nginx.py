"""Terminals behind nginx: their own addresses count, in logins, shares and lists; forged ones of others don't."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from certificate_authority import Authority
from mqtt_bytes import login
from nginx_server import nginx
from platform_site import Company, Site, running_site
from support import free_port
from waiting import until

NGINX = "127.0.0.9"  # where it comes from, so that terminals on loopback are not it
STREAM = "127.0.0.10"  # where its stream comes from that says nothing of who it is for
FIRST, SECOND = "127.0.0.21", "127.0.0.22"
ACCEPTED, WRONG = 0, 4
UPGRADE = (
    "GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: mqtt\r\n"
)


@dataclass
class Front:
    """A platform with nginx in front, and its ports; those of the platform itself in ``behind``."""

    site: Site
    company: Company
    plain: int
    tls: int
    websocket: int
    behind: dict[str, int]
    context: ssl.SSLContext

    def seen(self, uid: str) -> str:
        """The address that a connected terminal has in lists."""
        return self.site.broker.client(uid).address


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    """nginx with the PROXY protocol for MQTT and MQTT over TLS, and with X-Forwarded-For for WebSocket."""
    authority = Authority(tmp_path / "authority")
    pair = authority.issue("server")
    plain, tls, websocket = (free_port() for _ in range(3))
    behind = {name: free_port() for name in ("tls", "websocket")}
    mqtt = {"tls_port": behind["tls"], "tls_cert": str(pair.cert), "tls_key": str(pair.key)}
    sections = {
        "mqtt": {"websocket_port": behind["websocket"], **mqtt},
        "http": {"trusted_proxies": (NGINX,)},
        "limits": {"login_failures": 3, "half_open_per_address": 4},
    }
    async with running_site(tmp_path / "data", **sections) as site:
        behind["plain"] = site.port
        with nginx(
            tmp_path / "nginx",
            ports=(plain, tls, websocket),
            stream="".join(stream(*pair) for pair in ((plain, behind["plain"]), (tls, behind["tls"]))),
            http=upgrading(websocket, behind["websocket"]),
        ):
            company = await site.company()
            yield Front(site, company, plain, tls, websocket, behind, authority.client_context())


def stream(port: int, behind: int) -> str:
    """A server of nginx that hands connections on, with the PROXY protocol."""
    return (
        f"server {{ listen 127.0.0.1:{port}; proxy_pass 127.0.0.1:{behind}; proxy_bind {NGINX}; proxy_protocol on; }}\n"
    )


def upgrading(port: int, behind: int) -> str:
    """A server of nginx that hands WebSockets on."""
    return (
        f"server {{ listen 127.0.0.1:{port}; location /mqtt {{ proxy_pass http://127.0.0.1:{behind};"
        f" proxy_bind {NGINX}; proxy_http_version 1.1; proxy_set_header Upgrade $http_upgrade;"
        " proxy_set_header Connection upgrade; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; } }\n"
    )


Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Open = Callable[..., Awaitable[Stream]]


@pytest.fixture
async def opened() -> AsyncIterator[Open]:
    """Opens streams from an address, and closes them at the end."""
    made: list[Stream] = []

    async def _opened(port: int, source: str, **options: object) -> Stream:
        made.append(await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0), **options))
        return made[-1]

    yield _opened
    for _, writer in made:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


async def connack(stream: Stream, uid: str, pin: str | None = None) -> int | None:
    """The return code that a terminal's CONNECT gets; None: closed without one."""
    stream[1].write(login(uid, f"u-{uid}", f"pin-{uid}" if pin is None else pin))
    async with asyncio.timeout(10):
        try:
            return (await stream[0].readexactly(4))[3]
        except (asyncio.IncompleteReadError, ConnectionError):
            return None


async def connack_over_websocket(stream: Stream, uid: str, *, start: str = UPGRADE, pin: str | None = None) -> int:
    """The same over WebSocket, after an upgrade; a frame of ours has a mask of zeros."""
    reader, writer = stream
    packet = login(uid, f"u-{uid}", f"pin-{uid}" if pin is None else pin)
    writer.write(f"{start}\r\n".encode())
    async with asyncio.timeout(10):
        head = await reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in head, head
        writer.write(bytes((0x82, 0x80 | len(packet))) + bytes(4) + packet)
        return (await reader.readexactly(6))[5]


async def test_their_addresses_are_seen(front, opened):
    for uid in ("t1", "t2", "t3"):
        await front.company.terminal(uid)
    assert await connack(await opened(front.plain, FIRST), "t1") == ACCEPTED
    over_tls = await opened(front.tls, SECOND, ssl=front.context, server_hostname="localhost")
    assert await connack(over_tls, "t2") == ACCEPTED
    assert await connack_over_websocket(await opened(front.websocket, FIRST), "t3") == ACCEPTED
    assert [front.seen(uid) for uid in ("t1", "t2", "t3")] == [FIRST, SECOND, FIRST]


async def test_a_guesser_behind_the_proxy_is_told_from_others(front, opened):
    """What one address has failed with is not counted against the one that comes through the same proxy."""
    await front.company.terminal("t1")
    codes = [await connack(await opened(front.plain, FIRST), "t1", "wrong") for _ in range(8)]
    assert codes[0] == WRONG
    assert await connack(await opened(front.plain, FIRST), "t1") != ACCEPTED  # slowed down by now
    assert await connack(await opened(front.plain, SECOND), "t1") == ACCEPTED
    assert await connack_over_websocket(await opened(front.websocket, SECOND), "t1") == ACCEPTED
    assert await connack_over_websocket(await opened(front.websocket, FIRST), "t1") != ACCEPTED


async def test_silent_ones_behind_the_proxy_take_their_own_share(front, opened):
    await front.company.terminal("t1")
    half_open = front.site.broker.core.admission.half_open
    for _ in range(8):
        await opened(front.plain, FIRST)
    waiting = await opened(front.plain, SECOND)
    await until(lambda: half_open.count_of(FIRST) == 4 and half_open.count_of(SECOND) == 1)
    assert half_open.count_of(NGINX) == 0
    assert await connack(waiting, "t1") == ACCEPTED


SILENT = 1_024 + 64  # more than may wait of one address


@pytest.mark.parametrize("kind", ["stream", "http"])
async def test_silent_sockets_by_the_thousand_close_mqtt_over_websocket_to_nobody(tmp_path, opened, kind):
    """Behind nginx's stream all have its address, and say nothing; behind its HTTP server they upgrade, and are silent
    then. Somebody else gets in by the same way, and past it."""
    behind, by_stream, by_http = free_port(), free_port(), free_port()
    sections = {"mqtt": {"websocket_port": behind}, "http": {"trusted_proxies": (NGINX,)}}
    passed_on = f"server {{ listen 127.0.0.1:{by_stream}; proxy_pass 127.0.0.1:{behind}; proxy_bind {STREAM}; }}\n"
    async with running_site(tmp_path / "data", **sections) as site:
        company = await site.company()
        for uid in ("t1", "t2"):
            await company.terminal(uid)
        http, ports = upgrading(by_http, behind), (by_stream, by_http)
        with nginx(tmp_path / "nginx", ports=ports, stream=passed_on, http=http, connections=4 * SILENT):
            port = by_stream if kind == "stream" else by_http
            for _ in range(SILENT):
                _, writer = await opened(port, FIRST)
                if kind == "http":
                    writer.write(f"{UPGRADE}\r\n".encode())
            waiting = site.broker.core.admission.half_open
            flooding = STREAM if kind == "stream" else FIRST
            await until(lambda: waiting.count_of(flooding), "they have come")
            assert await connack_over_websocket(await opened(port, SECOND), "t1") == ACCEPTED
            assert await connack_over_websocket(await opened(behind, SECOND), "t2") == ACCEPTED


async def test_forged_addresses_are_not_believed(front, opened):
    """Neither those that a client sends through nginx, nor those that somebody sends past it."""
    await front.company.terminal("t1")
    forged = "PROXY TCP4 192.0.2.66 192.0.2.1 40000 1883\r\n"
    for port in (front.plain, front.behind["plain"]):
        stream = await opened(port, FIRST)
        stream[1].write(forged.encode())
        assert await connack(stream, "t1") is None
    header = "X-Forwarded-For: 192.0.2.66\r\n"
    for port in (front.websocket, front.behind["websocket"]):
        assert await connack_over_websocket(await opened(port, FIRST), "t1", start=UPGRADE + header) == ACCEPTED
        assert front.seen("t1") == FIRST
    assert front.site.broker.stats.proxy_headers_refused == 2


async def test_past_the_proxy_terminals_come_as_ever(front, opened):
    await front.company.terminal("t1")
    assert await connack(await opened(front.behind["plain"], FIRST), "t1") == ACCEPTED
    assert front.seen("t1") == FIRST
    assert await connack(await opened(front.behind["plain"], NGINX), "t1") is None  # its header is missing
