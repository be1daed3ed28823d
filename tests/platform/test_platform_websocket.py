"""The gateway on the WebSocket port, and what the port does not serve."""

from __future__ import annotations

import asyncio
from pathlib import Path

import aiohttp

from running import PASSWORD, Platform


async def test_log_in_on_one_connection_and_read_on(platform: Platform) -> None:
    url = f"http://127.0.0.1:{platform.websocket}"
    async with aiohttp.ClientSession(url) as http, http.ws_connect("/apiproxy/api") as socket:
        await socket.send_json({"action": "login", "actionid": "1", "username": "admin", "password": PASSWORD})
        answer = await socket.receive_json(timeout=10)
        assert (answer["resp"], answer["actionid"], answer["code"]) == ("login", "1", 200)
        token = answer["result"]["token"]
        await socket.send_json({"action": "ping", "Authorization": f"Bearer {token}"})
        assert (await socket.receive_json(timeout=10))["code"] == 200
        await socket.send_json({"action": "get_terminal_list"})
        assert (await socket.receive_json(timeout=10))["code"] == 200
        for path in ("/metrics", "/readyz", "/grid/api/v1/grid/getLastItem"):
            async with http.get(path) as response:
                assert response.status == 404


async def test_a_stop_says_goodbye_to_open_connections(tmp_path: Path) -> None:
    with Platform(tmp_path / "data") as own:
        url = f"http://127.0.0.1:{own.websocket}"
        async with aiohttp.ClientSession(url) as http, http.ws_connect("/apiproxy/api") as socket:
            stopping = asyncio.create_task(asyncio.to_thread(own.stop), name="stop")
            message = await socket.receive(timeout=10)
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.GOING_AWAY)
            await socket.close()
            assert await stopping == 0
