"""What is changed in one connection is in force at once for everybody else's.

The deadline is 100 ms after the answer, in the best of three tries, so that a busy machine fails nothing. Looking for
changes every half second, as other processes do, would pass all of these once in some thousand runs.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import aiohttp
import pytest

from enforcement import CHANGES, UNTHROTTLED, Delay, Device, delay_of_change, delay_of_terminal_list
from running import PASSWORD, Platform
from terrazzo.client import Client

DEADLINE_MS = 100
TRIES = 3


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("in-force") / "data", env=UNTHROTTLED) as running:
        yield running.login()


@pytest.fixture(scope="module")
def config(platform: Platform) -> str:
    return platform.add_config()


def check(measure: Callable[[int], Delay]) -> None:
    tries: list[Delay] = []
    for number in range(TRIES):
        tries.append(measure(number))
        if tries[-1].after_answer_ms < DEADLINE_MS:
            return
    pytest.fail(f"not in force within {DEADLINE_MS} ms of the answer: {tries}")


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_terminal_is_thrown_out_and_refused(platform: Platform, config: str, change: str) -> None:
    check(lambda number: delay_of_change(platform, config, f"{change}-{number}", change))


def test_a_router_loses_the_terminals_that_leave_its_object(platform: Platform, config: str) -> None:
    check(lambda number: delay_of_terminal_list(platform, config, f"listed-{number}"))


class Socket:
    """An open WebSocket of a user."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def code(self, action: str, **fields: Any) -> int:
        await self._socket.send_str(json.dumps({"action": action, **fields}))
        return int(json.loads(await self._socket.receive_str(timeout=5))["code"])


USER_CHANGES = {
    "role": ({"role": "viewer"}, "get_audit_list", 10403),
    "is_active": ({"is_active": 0}, "ping", 10402),
    "password": ({"password": "quite another one"}, "ping", 10402),
    "deletion": (None, "ping", 10402),
}


@pytest.mark.parametrize("change", USER_CHANGES)
async def test_a_changed_user_is_refused_on_an_open_websocket(platform: Platform, change: str) -> None:
    fields, action, refusal = USER_CHANGES[change]
    name = f"user-{change}"
    platform.call("create_user", username=name, password=PASSWORD, role="admin")
    url = f"ws://127.0.0.1:{platform.websocket}/apiproxy/api"
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as connection:
        socket = Socket(connection)
        assert await socket.code("login", username=name, password=PASSWORD) == 200
        assert await socket.code(action) == 200
        if fields is None:
            platform.call("delete_user", uid=name)
        else:
            platform.call("update_user", uid=name, **fields)
        answered = time.perf_counter()
        assert await socket.code(action) == refusal, "the very next request"
        assert time.perf_counter() - answered < 5


class Listener:
    """A WebSocket that is subscribed to whatever its user may hear of."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket

    async def start(self, username: str) -> None:
        kinds = ["grid", "mosaic", "event", "retainer", "terminal", "command"]
        for request in (
            {"action": "login", "username": username, "password": PASSWORD},
            {"action": "subscribe", "kinds": kinds},
        ):
            await self._socket.send_str(json.dumps(request))
            assert json.loads(await self._socket.receive_str(timeout=5))["code"] == 200

    async def hear_until(self, text: str) -> list[str]:
        """All frames up to the first that has the text in it."""
        heard: list[str] = []
        while not heard or text not in heard[-1]:
            heard.append(await self._socket.receive_str(timeout=5))
        return heard


async def test_live_frames_stay_in_their_company_and_end_with_the_user(platform: Platform, config: str) -> None:
    company = platform.call("create_company", name="listening")["uid"]
    owned = {"permission_company_id": company}
    platform.call("create_user", username="listener", password=PASSWORD, role="viewer", **owned)
    signed = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    their_config = platform.call("create_terminal_config", name="c", **signed, **owned)["uid"]
    platform.add_terminal("theirs", their_config, **owned)
    platform.add_terminal("ours", config)
    url = f"ws://127.0.0.1:{platform.websocket}/apiproxy/api"
    async with aiohttp.ClientSession() as session, session.ws_connect(url) as connection:
        listener = Listener(connection)
        await listener.start("listener")
        with Device(platform, "ours") as ours, Device(platform, "theirs") as theirs:
            for device in (ours, theirs):
                assert await asyncio.to_thread(device.connect) == 0
            await asyncio.to_thread(ours.publish, "g/r")
            await asyncio.to_thread(theirs.publish, "g/a")
            heard = await listener.hear_until("g/theirs/a")
            assert "ours" not in str(heard)
            await asyncio.to_thread(platform.call, "update_user", uid="listener", is_active=0)
            await asyncio.to_thread(theirs.publish, "g/v")
            heard = await listener.hear_until('"end"')
            assert json.loads(heard[-1])["end"]["code"] == 10402
            assert "g/theirs/v" not in str(heard), "nothing that came after"


def test_a_closed_company_is_out_at_once(platform: Platform) -> None:
    company = platform.call("create_company", name="short-lived")["uid"]
    platform.call("create_user", username="theirs", password=PASSWORD, role="admin", permission_company_id=company)
    theirs = Client(platform.url)
    theirs.session.token = platform.call("login", username="theirs", password=PASSWORD)["token"]
    platform.call("update_company", uid=company, is_available=0)
    assert theirs.ask("ping")["code"] == 10402
    assert platform.ask("login", username="theirs", password=PASSWORD)["code"] == 10402
    theirs.close()
