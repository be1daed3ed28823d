"""The gateway over WebSocket, as an upgrade on the HTTP port: the same answers, one a message, in order."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest
from api_rig import BODY_BYTES, Rig

PATH = "/apiproxy/api"


class Socket:
    """One WebSocket; ``ask`` sends a request and waits for its answer."""

    def __init__(self, raw: aiohttp.ClientWebSocketResponse) -> None:
        self.raw = raw

    async def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        await self.raw.send_str(json.dumps({"action": action, **fields}))
        return await self.answer()

    async def answer(self) -> dict[str, Any]:
        return json.loads(await self.raw.receive_str(timeout=10))


@pytest.fixture
async def socket(rig: Rig) -> AsyncIterator[Socket]:
    async with rig.http.ws_connect(PATH) as raw:
        yield Socket(raw)


async def test_a_ping_with_the_credential_authenticates_the_connection(rig: Rig, socket: Socket) -> None:
    assert (await socket.ask("ping"))["code"] == 10402
    answer = await socket.ask("ping", message="hello", Authorization=f"Bearer {rig.tokens['viewer']}")
    assert (answer["code"], answer["result"]) == (200, {"pong": "hello"})
    assert (await socket.ask("get_terminal_list"))["result"] == []


async def test_the_header_of_the_upgrade_authenticates_too(rig: Rig) -> None:
    headers = {"Authorization": f"Bearer {rig.tokens['viewer']}"}
    async with rig.http.ws_connect(PATH, headers=headers) as raw:
        assert (await Socket(raw).ask("get_terminal_list"))["code"] == 200


async def test_a_login_here_gives_a_token_and_a_revoked_token_ends_the_rights(rig: Rig, socket: Socket) -> None:
    await socket.ask("ping", Authorization=f"Bearer {rig.tokens['viewer']}")
    assert (await socket.ask("logout"))["code"] == 200
    assert (await socket.ask("get_terminal_list"))["code"] == 10402


async def test_answers_are_those_of_http(rig: Rig, socket: Socket) -> None:
    await socket.ask("ping", Authorization=f"Bearer {rig.tokens['viewer']}")
    for action, fields in (
        ("get_terminal_list", {"page_size": "two"}),
        ("get_terminal_item", {"uid": "nobody"}),
        ("get_last_grid", {}),
        ("create_terminal", {}),
    ):
        assert await socket.ask(action, **fields) == await rig.ask(action, "viewer", **fields)


async def test_pipelined_requests_are_answered_in_order_with_their_tags(rig: Rig, socket: Socket) -> None:
    await socket.ask("ping", Authorization=f"Bearer {rig.tokens['viewer']}")
    for number in range(50):
        await socket.raw.send_bytes(json.dumps({"action": "ping", "actionid": str(number)}).encode())
    assert [(await socket.answer())["actionid"] for _ in range(50)] == [str(number) for number in range(50)]


async def test_what_is_no_request_is_answered_and_the_connection_goes_on(rig: Rig, socket: Socket) -> None:
    await socket.ask("ping", Authorization=f"Bearer {rig.tokens['viewer']}")  # for long ones
    for text in ("", "not json", "[]", '{"action": 5}', '{"action": "nothing"}', '{"a":' * 100_000):
        await socket.raw.send_str(text)
        assert (await socket.answer())["code"] == 10401


async def test_a_message_over_the_limit_ends_the_connection(rig: Rig, socket: Socket) -> None:
    await socket.ask("ping", Authorization=f"Bearer {rig.tokens['viewer']}")
    await socket.raw.send_str("x" * (BODY_BYTES + 1))
    message = await socket.raw.receive(timeout=10)
    assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, aiohttp.WSCloseCode.MESSAGE_TOO_BIG)


async def test_a_plain_get_is_told_what_to_use(rig: Rig) -> None:
    async with rig.http.get(PATH) as response:
        assert (response.status, response.headers["Allow"]) == (405, "POST")
        assert (await response.json())["code"] == 10401
