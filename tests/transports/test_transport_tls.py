"""HTTPS and WSS: the same ports and bounds as without TLS, and nothing that a peer sends early is lost."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from certificate_authority import Authority, Pair
from own_platform import PASSWORD, ListenAddresses, Platform, own_platform
from waiting import close, until

GATEWAY = "/apiproxy/api"
JSON = {"Content-Type": "application/json"}
LOGIN = json.dumps({"action": "login", "username": "admin", "password": PASSWORD}).encode()
HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@asynccontextmanager
async def serving(
    folder: Path, pair: Pair, **sections: Any
) -> AsyncIterator[tuple[Platform, ListenAddresses, aiohttp.ClientSession]]:
    http = {"tls_cert": str(pair.cert), "tls_key": str(pair.key)}
    context = ssl.create_default_context(cafile=str(pair.cert.parent / "ca.pem"))
    async with own_platform(folder, http=http, **sections) as (platform, addresses):
        connector = aiohttp.TCPConnector(ssl=context)
        async with aiohttp.ClientSession(addresses.http, connector=connector) as session:
            yield platform, addresses, session


def port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


async def cut_off(session: aiohttp.ClientSession) -> int:
    """How many handshakes have failed."""
    async with session.get("/metrics") as response:
        text = await response.text()
    (line,) = [line for line in text.splitlines() if line.startswith('terrazzo_api_cut_total{reason="tls"}')]
    return int(float(line.split()[-1]))


async def test_the_gateway_over_https_and_wss(tmp_path: Path, authority: Authority) -> None:
    async with serving(tmp_path, authority.issue("server")) as (platform, addresses, session):
        assert addresses.http.startswith("https://127.0.0.1:")
        assert addresses.websocket.startswith("wss://127.0.0.1:")
        assert platform.messaging.links.base_url == addresses.http
        async with session.post(GATEWAY, data=LOGIN, headers=JSON) as response:
            token = (await response.json())["result"]["token"]
        headers = {**JSON, "Authorization": f"Bearer {token}"}
        for _ in range(3):  # the second has a head that is known
            async with session.post(GATEWAY, data=b'{"action":"get_company_list"}', headers=headers) as response:
                assert (await response.json())["code"] == 200
        async with session.get("/openapi.json") as response:
            assert len(await response.read()) > 500_000  # in many pieces
        for url in (addresses.http, addresses.websocket):
            async with session.ws_connect(url.replace("https", "wss") + GATEWAY) as socket:
                await socket.send_bytes(LOGIN)
                assert json.loads((await socket.receive()).data)["code"] == 200


@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated")
async def test_old_versions_and_plain_http_are_turned_away(tmp_path: Path, authority: Authority) -> None:
    async with serving(tmp_path, authority.issue("server")) as (_, addresses, session):
        old = authority.client_context()
        old.minimum_version = old.maximum_version = ssl.TLSVersion.TLSv1_1
        old.set_ciphers("ALL:@SECLEVEL=0")
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", port_of(addresses.http), ssl=old)
        for port in (port_of(addresses.http), port_of(addresses.websocket)):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(HEALTH)
            assert b"status" not in await reader.read()
            await close(writer)
        assert await cut_off(session) == 3


async def test_what_comes_with_the_end_of_the_handshake_is_answered(tmp_path: Path, authority: Authority) -> None:
    """TLS 1.3 lets a client send its request together with the last message of the handshake."""
    async with serving(tmp_path, authority.issue("server")) as (_, addresses, _session):
        for _ in range(20):
            assert b'{"status":"ok"}' in await asyncio.to_thread(
                early_request, authority.client_context(), port_of(addresses.http)
            )


def early_request(context: ssl.SSLContext, port: int) -> bytes:
    """The answer to a request whose first bytes are in the same segment as the client's Finished."""
    import socket

    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    tls = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        while True:
            try:
                tls.do_handshake()
                break
            except ssl.SSLWantReadError:
                connection.sendall(outgoing.read())
                incoming.write(connection.recv(65_536))
        tls.write(HEALTH)
        connection.sendall(outgoing.read())  # Finished and the request
        answer = b""
        while b"}" not in answer:
            try:
                answer += tls.read(65_536)
            except ssl.SSLWantReadError:
                incoming.write(connection.recv(65_536))
        return answer


async def test_who_shakes_no_hands_has_a_place_and_a_deadline(tmp_path: Path, authority: Authority) -> None:
    limits = {"unauthenticated_connections": 2, "request_timeout_s": 1}
    pair = authority.issue("server")
    async with serving(tmp_path, pair, limits=limits) as (platform, addresses, session):
        silent = [await asyncio.open_connection("127.0.0.1", port_of(addresses.http)) for _ in range(3)]
        assert await silent[0][0].read() == b""  # gave way: an address has two
        assert platform.gateway.connection_limiter.open == 2
        for reader, writer in silent:
            assert await reader.read() == b""
            await close(writer)
        await until(lambda: platform.gateway.connection_limiter.open == 0, "the places are free again")
        assert await cut_off(session) >= 2


async def test_a_page_of_plain_http_is_another_origin(tmp_path: Path, authority: Authority) -> None:
    async with serving(tmp_path, authority.issue("server")) as (_, addresses, session):
        for origin, status in ((addresses.http, 200), (addresses.http.replace("https", "http"), 403)):
            async with session.post(GATEWAY, data=LOGIN, headers={**JSON, "Origin": origin}) as response:
                assert response.status == status


async def test_a_stop_ends_what_is_connected(tmp_path: Path, authority: Authority) -> None:
    async with serving(tmp_path, authority.issue("server")) as (_, addresses, session):
        socket = await session.ws_connect(addresses.websocket + GATEWAY)
        half_open = await asyncio.open_connection("127.0.0.1", port_of(addresses.http))
    assert await half_open[0].read() == b""
    await close(half_open[1])
    assert socket.closed or (await socket.receive()).type is aiohttp.WSMsgType.CLOSED


async def test_a_new_pair_is_shown_to_whoever_connects_next(tmp_path: Path, authority: Authority) -> None:
    pair = authority.issue("renewed")
    async with serving(tmp_path, pair) as (platform, addresses, session):
        ws = await session.ws_connect(addresses.http.replace("https", "wss") + GATEWAY)
        before = await shown(addresses)
        authority.issue("renewed")  # in the same files
        await platform.parts.tls.watch.look()
        assert await shown(addresses) != before
        assert await shown(addresses) == pair.cert.read_text()
        await ws.send_bytes(LOGIN)  # who was connected stays
        assert json.loads((await ws.receive()).data)["code"] == 200
        await ws.close()


async def shown(addresses: ListenAddresses) -> str:
    return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port_of(addresses.http)))
