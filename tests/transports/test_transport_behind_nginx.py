"""HTTP and WebSocket behind nginx: the clients' own addresses have the shares; forged ones count for nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from api.api_rig import open_rig
from lasting import Gateway, open_ports
from nginx_server import nginx
from support import free_port

NGINX = "127.0.0.9"  # where it comes from, so that clients on loopback are not it
FLOODER, HONEST = "127.0.0.66", "127.0.0.7"
SHARE = 5
PING = b'{"action": "ping"}'
JSON = {"Content-Type": "application/json"}


class Front:
    """The ports of nginx, and the platform behind."""

    def __init__(self, gateway: Gateway, http: int, websocket: int) -> None:
        self.gateway = gateway
        self.http = f"http://127.0.0.1:{http}/apiproxy/api"
        self.sockets = tuple(f"ws://127.0.0.1:{port}/apiproxy/api" for port in (http, websocket))

    def gave_way(self) -> float:
        families = self.gateway.connection_limiter.collect()
        family = next(each for each in families if each.name == "terrazzo_api_cut")
        return next(sample.value for sample in family.samples if sample.labels["reason"] == "gave_way")

    async def login_address(self, client: aiohttp.ClientSession, url: str, **headers: str) -> str:
        """What the audit log has as the address of a login that fails."""
        wrong = json.dumps({"action": "login", "username": "admin", "password": "wrong"}).encode()
        sent = {**JSON, **{name.replace("_", "-"): value for name, value in headers.items()}}
        async with client.post(url, data=wrong, headers=sent) as response:
            assert (await response.json())["code"] != 200
        page = await self.gateway.rig.call("get_audit_list", "root", page_size=1)
        return str(page["data"][0]["address"])


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[Front]:
    limits = {"unauthenticated_connections": SHARE, "connections": 60}
    trusted = {"trusted_proxies": (NGINX,)}
    async with open_rig(tmp_path / "data", limits=limits, http=trusted) as rig, open_ports(rig) as gateway:
        http, websocket = free_port(), free_port()
        servers = server(http, gateway.http) + server(websocket, gateway.websocket)
        with nginx(tmp_path / "nginx", http=servers, ports=(http, websocket)):
            yield Front(gateway, http, websocket)


def server(port: int, behind: int) -> str:
    """A server of nginx as its documentation has it for WebSockets, with the client's address behind what it said."""
    return f"""
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{behind};
            proxy_bind {NGINX};
            proxy_http_version 1.1;
            proxy_set_header Host $http_host;
            proxy_set_header Upgrade $http_upgrade;
            proxy_set_header Connection "upgrade";
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
            proxy_set_header X-Forwarded-Proto $scheme;
        }}
    }}
    """


@asynccontextmanager
async def client_at(address: str) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(local_addr=(address, 0), limit=0)
    async with aiohttp.ClientSession(connector=connector) as client:
        yield client


@pytest.mark.parametrize("port", [0, 1], ids=["HTTP", "WebSocket"])
async def test_a_flood_through_nginx_keeps_no_other_client_out(front: Front, port: int) -> None:
    url = front.sockets[port]
    token = {"Authorization": f"Bearer {front.gateway.rig.tokens['viewer']}"}
    async with AsyncExitStack() as stack:
        flooder = await stack.enter_async_context(client_at(FLOODER))
        honest = await stack.enter_async_context(client_at(HONEST))
        mine = await stack.enter_async_context(honest.ws_connect(url, headers=token))
        for number in range(4 * SHARE):
            forged = {"X-Forwarded-For": f"192.0.2.{number}"}
            await stack.enter_async_context(flooder.ws_connect(url, headers=forged))
        assert front.gave_way() == 3 * SHARE, "what it says of itself makes no more addresses of it"
        await mine.send_bytes(PING)
        assert (await mine.receive_json(timeout=10))["code"] == 200
        async with honest.post(front.http, data=PING, headers={**JSON, **token}) as response:
            assert (await response.json())["code"] == 200
        async with honest.get(front.http.replace("/apiproxy/api", "/readyz")) as response:
            assert response.status == 200


async def test_addresses_are_those_that_nginx_saw(front: Front) -> None:
    direct = f"http://127.0.0.1:{front.gateway.http}/apiproxy/api"
    async with client_at(HONEST) as client:
        assert await front.login_address(client, front.http) == HONEST
        assert await front.login_address(client, front.http, X_Forwarded_For="192.0.2.1") == HONEST
        assert await front.login_address(client, direct, X_Forwarded_For="192.0.2.1") == HONEST, "past nginx"


async def test_pages_behind_nginx_are_own_ones(front: Front) -> None:
    async with client_at(HONEST) as client:
        for origin, status in (("http://iot.example.com", 200), ("https://iot.example.com", 403), ("http://x", 403)):
            headers = {**JSON, "Host": "iot.example.com", "Origin": origin}
            async with client.post(front.http, data=PING, headers=headers) as response:
                assert response.status == status, origin
