"""Web pages that ask: the server's own, allowed ones and foreign ones; and whose word about an address is believed."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from api.api_rig import open_rig
from lasting import Gateway, open_ports

PING = b'{"action": "ping"}'
ALLOWED = "https://console.example.com"
FOREIGN = "http://evil.example"


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def ports(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with open_rig(tmp_path_factory.mktemp("plain")) as rig, open_ports(rig) as opened:
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def allowing(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with (
        open_rig(tmp_path_factory.mktemp("allowing"), http={"allowed_origins": (ALLOWED,)}) as rig,
        open_ports(rig) as opened,
    ):
        yield opened


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def proxied(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Gateway]:
    async with (
        open_rig(tmp_path_factory.mktemp("proxied"), http={"trusted_proxies": ("127.0.0.1",)}) as rig,
        open_ports(rig) as opened,
    ):
        yield opened


async def post(ports: Gateway, **headers: str) -> tuple[int, Mapping[str, str], str]:
    """Status, headers and ``info`` of a ping."""
    url = f"http://127.0.0.1:{ports.http}/apiproxy/api"
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    async with ports.client.post(url, data=PING, headers={"Content-Type": "application/json", **sent}) as response:
        return response.status, response.headers, json.loads(await response.read())["info"]


async def upgrade_status(ports: Gateway, port: int, origin: str) -> int:
    """101 where a WebSocket opens."""
    try:
        async with ports.client.ws_connect(f"ws://127.0.0.1:{port}/apiproxy/api", origin=origin):
            return 101
    except aiohttp.WSServerHandshakeError as error:
        return error.status


@pytest.mark.parametrize(
    "origin", [FOREIGN, "null", "http://127.0.0.1", "http://127.0.0.1:1", "file://", "", "x" * 5_000]
)
async def test_a_foreign_page_may_neither_post_nor_open_a_websocket(ports: Gateway, origin: str) -> None:
    before = await refused(ports)
    status, headers, info = await post(ports, Origin=origin)
    assert (status, "Access-Control-Allow-Origin" in headers) == (403, False)
    assert info.startswith("Origin: ")
    assert len(info) < 200
    for port in (ports.http, ports.websocket):
        assert await upgrade_status(ports, port, origin or "null") == 403
    counted = {kind: count - before[kind] for kind, count in (await refused(ports)).items()}
    assert counted == {"request": 1, "upgrade": 2, "preflight": 0, "cookie": 0}


async def refused(ports: Gateway) -> dict[str, int]:
    async with ports.client.get(f"http://127.0.0.1:{ports.http}/metrics") as response:
        text = await response.text()
    found = re.findall(r'terrazzo_api_origins_refused_total{kind="(\w+)"} (\d+)', text)
    return {kind: int(count) for kind, count in found}


async def test_a_foreign_page_can_read_nothing_and_may_ask_for_nothing(ports: Gateway) -> None:
    url = f"http://127.0.0.1:{ports.http}"
    async with ports.client.get(f"{url}/healthz", headers={"Origin": FOREIGN}) as response:
        assert (response.status, response.headers.get("Access-Control-Allow-Origin")) == (200, None)
        assert response.headers["Vary"] == "Origin"
    asking = {"Origin": FOREIGN, "Access-Control-Request-Method": "POST"}
    async with ports.client.options(f"{url}/apiproxy/api", headers=asking) as response:
        assert (response.status, response.headers.get("Access-Control-Allow-Methods")) == (403, None)
    for path in ("/bulk/terminal", "/object/api/v1/object", "/service/api/v1/file/upload"):
        async with ports.client.post(url + path, headers={"Origin": FOREIGN}, data=b"x" * 100) as response:
            assert response.status == 403, path


async def test_no_head_with_an_origin_is_known(ports: Gateway) -> None:
    for _ in range(3):
        assert (await post(ports, Origin=f"http://127.0.0.1:{ports.http}"))[0] == 200
        assert (await post(ports, Origin=FOREIGN))[0] == 403


async def test_own_pages_and_programs_may_ask(ports: Gateway) -> None:
    own = f"http://127.0.0.1:{ports.http}"
    status, headers, _ = await post(ports, Origin=own)
    assert (status, "Access-Control-Allow-Origin" in headers) == (200, False)
    assert (await post(ports))[0] == 200
    assert (await post(ports, Host="iot.example.com", Origin="https://iot.example.com:443"))[0] == 200, "ended TLS"
    assert await upgrade_status(ports, ports.http, own) == 101
    assert await upgrade_status(ports, ports.websocket, f"http://127.0.0.1:{ports.websocket}") == 101


async def test_pages_of_an_allowed_origin_may_ask_and_read(allowing: Gateway) -> None:
    status, headers, _ = await post(allowing, Origin=ALLOWED)
    assert (status, headers["Access-Control-Allow-Origin"], headers["Vary"]) == (200, ALLOWED, "Origin")
    assert await upgrade_status(allowing, allowing.websocket, ALLOWED) == 101
    url = f"http://127.0.0.1:{allowing.http}/apiproxy/api"
    asking = {
        "Origin": ALLOWED,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization",
    }
    async with allowing.client.options(url, headers=asking) as response:
        assert (response.status, response.headers["Access-Control-Allow-Origin"]) == (204, ALLOWED)
        assert "Authorization" in response.headers["Access-Control-Allow-Headers"]
        assert "POST" in response.headers["Access-Control-Allow-Methods"]
    for foreign in (FOREIGN, "null", ALLOWED + ".evil.example", ALLOWED + ":8443", "http://console.example.com"):
        assert (await post(allowing, Origin=foreign))[0] == 403, foreign


async def test_a_star_is_for_all_pages_that_say_where_they_are_from(tmp_path: Path) -> None:
    async with open_rig(tmp_path, http={"allowed_origins": ("*",)}) as rig, open_ports(rig) as ports:
        assert (await post(ports, Origin=FOREIGN))[1]["Access-Control-Allow-Origin"] == FOREIGN
        assert (await post(ports, Origin="null"))[0] == 403


async def test_a_trusted_proxy_says_how_it_was_asked_and_nobody_else_does(ports: Gateway, proxied: Gateway) -> None:
    told = {"X_Forwarded_Host": "iot.example.com", "X_Forwarded_Proto": "https"}
    assert (await post(proxied, Origin="https://iot.example.com", **told))[0] == 200
    assert (await post(proxied, Origin="http://iot.example.com", **told))[0] == 403
    assert (await post(proxied, Origin="https://iot.example.com"))[0] == 403
    assert (await post(ports, Origin="https://iot.example.com", **told))[0] == 403


@pytest.mark.parametrize("kind", ["new heads", "known heads"])
async def test_forwarded_addresses_are_believed_of_trusted_proxies_alone(
    ports: Gateway, proxied: Gateway, kind: str
) -> None:
    async def address_of(gateway: Gateway, forwarded: str) -> str:
        wrong = json.dumps({"action": "login", "username": "admin", "password": kind}).encode()
        repeats = 2 if kind == "known heads" else 1
        async with aiohttp.ClientSession() as session:  # one connection
            for _ in range(repeats):
                url = f"http://127.0.0.1:{gateway.http}/apiproxy/api"
                sent = {"Content-Type": "application/json", "X-Forwarded-For": forwarded}
                async with session.post(url, data=wrong, headers=sent) as response:
                    assert (await response.json())["code"] != 200
        page = await gateway.rig.call("get_audit_list", "root", page_size=1)
        return str(page["data"][0]["address"])

    assert await address_of(ports, "192.0.2.7") == "127.0.0.1"
    assert await address_of(proxied, "192.0.2.7") == "192.0.2.7"
    assert await address_of(proxied, "203.0.113.9, 192.0.2.8") == "192.0.2.8", "the proxy has written the last one"
