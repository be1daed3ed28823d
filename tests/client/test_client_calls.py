"""Both clients against a served platform: logins, actions, component paths, pages, errors."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from client_driver import DRIVERS

from running import PASSWORD, Platform
from support import free_port
from terrazzo.client import ActionError, AsyncClient, Client, NotSent
from terrazzo.client.exchange import Retries

CREDENTIALS = {"username": "admin", "password": PASSWORD}


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.__name__)
async def client(request: pytest.FixtureRequest, platform: Platform) -> AsyncIterator[Any]:
    driver = request.param(platform.url, **CREDENTIALS)
    yield driver
    await driver.close()


async def test_it_logs_in_by_itself(client: Any) -> None:
    assert await client.do("ping") == "pong"
    assert client.client.session.token


async def test_a_new_token_replaces_one_that_is_over(client: Any, platform: Platform) -> None:
    await client.do("ping")
    old = client.client.session.token
    with Client(platform.url, token=old) as other:
        other.logout()
    assert await client.do("ping", "again") == "again"
    assert client.client.session.token != old


async def test_a_token_alone_is_enough_and_is_not_renewed(client: Any, platform: Platform) -> None:
    user = await client.do("login")
    other = type(client)(platform.url, token=user["token"])
    assert await other.do("ping") == "pong"
    await other.do("logout")
    with pytest.raises(ActionError) as error:
        await other.do("ping")
    assert (error.value.code, error.value.msg) == (10402, "not authenticated")
    assert "no token" in error.value.info
    await other.close()


async def test_an_error_says_code_message_and_field(client: Any) -> None:
    with pytest.raises(ActionError, match="10404") as error:
        await client.do("terminal", "nobody")
    assert (error.value.code, error.value.info) == (10404, "uid: no record 'nobody'")
    with pytest.raises(ActionError, match="terminal_id: is required"):
        await client.do("call", "get_last_grid")
    with pytest.raises(ActionError, match="unknown: 'no_such'"):
        await client.do("call", "no_such")


async def test_a_wrong_password_is_asked_once(platform: Platform) -> None:
    for driver in DRIVERS:
        client = driver(platform.url, username="admin", password="wrong")
        with pytest.raises(ActionError) as error:
            await client.do("ping")
        assert error.value.code == 10402
        await client.close()


async def test_ask_gives_the_whole_envelope(client: Any) -> None:
    envelope = await client.do("ask", "ping", actionid="a1", message="hallo")
    assert (envelope["resp"], envelope["actionid"], envelope["result"]) == ("ping", "a1", {"pong": "hallo"})


async def test_records_come_from_all_pages(client: Any) -> None:
    uids = [f"t{number}" for number in range(5)]
    assert [record["uid"] for record in await client.walk("terminals")] == uids
    for page_size in (1, 2, 5):
        found = await client.walk("pages", "get_terminal_list", page_size=page_size)
        assert [record["uid"] for record in found] == uids
    assert [record["uid"] for record in await client.walk("terminals", ["t3", "t1"])] == ["t1", "t3"]
    for number in range(5):
        await client.do("command", "t4", "SP1", number)
    journal = await client.walk("pages", "get_command_list", page_size=2, terminal_id="t4")
    assert [record["value"] for record in journal[:5]] == ["4", "3", "2", "1", "0"]
    assert journal == await client.walk("commands", "t4")


async def test_a_component_path_answers(client: Any) -> None:
    assert await client.do("get", "/grid/api/v1/grid/getLastItem", terminal_id="t1", topic=["r", "a"]) == []
    assert await client.do("last_grid", "t1") is None
    assert await client.walk("grid", "t1", "2020-01-01 00:00:00", "2021-01-01 00:00:00") == []
    with pytest.raises(ActionError, match="terminal_id") as error:
        await client.do("get", "/grid/api/v1/grid/getLastItem")
    assert error.value.code == 500


async def test_nothing_listens(free_url: str) -> None:
    for driver in DRIVERS:
        client = driver(free_url, token="x", retries=Retries(most=1))
        with pytest.raises(NotSent, match=free_url):
            await client.do("ping")
        await client.close()


@pytest.fixture
def free_url() -> str:
    return f"http://127.0.0.1:{free_port()}"


def test_an_address_that_is_none_is_refused() -> None:
    for url in ("127.0.0.1:31507", "ftp://host", "http://"):
        for kind in (Client, AsyncClient):
            with pytest.raises(ValueError, match="expected http://host:port"):
                kind(url)


def test_importing_it_loads_no_server_and_no_aiohttp() -> None:
    code = "import sys; from terrazzo.client import Client; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"aiohttp", "asyncio", "sqlalchemy", "rocksdict", "msgspec", "typer"} & set(loaded)
    ours = {name for name in loaded if name.split(".")[0].startswith("terrazzo")}
    assert {name for name in ours if not name.startswith("terrazzo.client")} == {"terrazzo"}


def test_every_method_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "client.md").read_text(encoding="utf-8")
    for kind in (Client, AsyncClient):
        methods = [name for name in vars(kind) if not name.startswith("_") and name != "close"]
        assert [name for name in methods if f"`{name}`" not in text and f"`{name}(" not in text] == []
    assert {name for name in vars(AsyncClient) if name[0] != "_"} - {
        name for name in vars(Client) if name[0] != "_"
    } == {"live"}
