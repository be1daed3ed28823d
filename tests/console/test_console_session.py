"""The session of a browser: a cookie that no script reads, that other pages can't use, and that is renewed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from api.api_rig import PASSWORD, Rig, open_rig
from terrazzo.access.tokens import Tokens

PAGE = {"Terrazzo-Session": "cookie"}
MINUTE_US = 60_000_000
HTTP = {"allowed_origins": ("http://127.0.0.1:1",)}


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path, http=HTTP) as opened:
        yield opened


class Browser:
    """Requests with the headers that a browser's would have; keeps cookies as told."""

    def __init__(self, rig: Rig) -> None:
        self.base = str(rig.http._base_url).rstrip("/")
        self.client = aiohttp.ClientSession(self.base, cookie_jar=aiohttp.DummyCookieJar())
        self.cookie: str | None = None  # name=value
        self.attributes: Mapping[str, Any] = {}

    async def ask(self, action: str, headers: Mapping[str, str] | None = None, **fields: Any) -> dict[str, Any]:
        """An action's answer, as the console's page would have it."""
        sent = {"Content-Type": "application/json", **(PAGE if headers is None else headers)}
        if self.cookie:
            sent["Cookie"] = self.cookie
        async with self.client.post(f"/apiproxy/api/{action}", data=json.dumps(fields), headers=sent) as response:
            self._take(response)
            return dict(json.loads(await response.read()))

    async def get(self, path: str, headers: Mapping[str, str]) -> tuple[int, int]:
        """Status, and code of the answer, of an image or a download."""
        async with self.client.get(path, headers={"Cookie": self.cookie or "", **headers}) as response:
            return response.status, json.loads(await response.read())["code"]

    async def login(self, name: str = "admin-user") -> dict[str, Any]:
        return await self.ask("login", username=name, password=PASSWORD)

    def _take(self, response: aiohttp.ClientResponse) -> None:
        for morsel in SimpleCookie(response.headers.get("Set-Cookie", "")).values():
            self.cookie = f"{morsel.key}={morsel.value}" if morsel.value else None
            self.attributes = dict(morsel)


@pytest.fixture
async def browser(rig: Rig) -> AsyncIterator[Browser]:
    opened = Browser(rig)
    yield opened
    await opened.client.close()


IN_MODULE = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_rig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Rig]:
    async with open_rig(tmp_path_factory.mktemp("shared"), http=HTTP) as opened:
        yield opened


@pytest_asyncio.fixture(loop_scope="module")
async def another(shared_rig: Rig) -> AsyncIterator[Browser]:
    """A new browser, whose session is nobody else's, on a platform that the tests share."""
    opened = Browser(shared_rig)
    yield opened
    await opened.client.close()


async def test_a_login_sets_a_cookie_when_it_is_asked_to(browser: Browser, rig: Rig) -> None:
    answer = await browser.login()
    assert (answer["code"], answer["result"]["token"]) == (200, "")
    attributes = browser.attributes
    assert (attributes["httponly"], attributes["samesite"], attributes["path"]) == (True, "Strict", "/")
    assert (attributes["secure"], attributes["max-age"], attributes["domain"]) == ("", "7200", "")
    assert (await browser.ask("get_session"))["result"]["username"] == "admin-user"
    assert (await rig.ask("login", "nobody", username="admin-user", password=PASSWORD))["result"]["token"]


@IN_MODULE
async def test_a_program_gets_its_token_as_ever(another: Browser) -> None:
    answer = await another.ask("login", {}, username="admin-user", password=PASSWORD)
    assert answer["result"]["token"]
    assert another.cookie is None


async def test_a_cookie_is_secure_over_https(tmp_path: Path) -> None:
    async with open_rig(tmp_path, http={"trusted_proxies": ("127.0.0.1",)}) as rig:
        browser = Browser(rig)
        https = {**PAGE, "X-Forwarded-Proto": "https"}
        await browser.ask("login", https, username="admin-user", password=PASSWORD)
        assert browser.attributes["secure"] is True
        await browser.client.close()


@IN_MODULE
@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Terrazzo-Session": "other"},
        {**PAGE, "Origin": "http://127.0.0.1:1"},  # in http.allowed_origins, and of the same site
        {"Sec-Fetch-Site": "same-site"},
    ],
)
async def test_a_cookie_alone_is_no_proof(another: Browser, headers: dict[str, str]) -> None:
    await another.login()
    assert (await another.ask("get_session", headers))["code"] == 10402
    assert (await another.ask("get_session"))["code"] == 200


@IN_MODULE
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Sec-Fetch-Site": "same-origin"}, 200),
        ({"Sec-Fetch-Site": "none"}, 200),
        ({"Sec-Fetch-Site": "same-site"}, 10402),
        ({"Sec-Fetch-Site": "cross-site"}, 10402),
        ({"Referer": "{base}/"}, 200),
        ({"Referer": "http://127.0.0.1:1/"}, 10402),
        ({"Referer": "{base}.evil.example/"}, 10402),
        ({}, 10402),
        (PAGE, 200),
    ],
)
async def test_images_and_downloads_of_own_pages_need_no_script(
    another: Browser, headers: dict[str, str], code: int
) -> None:
    await another.login()
    sent = {name: value.format(base=another.base) for name, value in headers.items()}
    assert (await another.get("/object/api/v1/terminal/getList", sent))[1] == code


async def test_a_websocket_of_an_own_page_has_the_session(browser: Browser, rig: Rig) -> None:
    await browser.login()

    async def code(origin: str | None) -> int:
        headers = {"Cookie": browser.cookie or ""}
        async with browser.client.ws_connect("/apiproxy/api", headers=headers, origin=origin) as socket:
            await socket.send_json({"action": "ping"})
            return int((await socket.receive_json())["code"])

    assert await code(browser.base) == 200
    assert await code(None) == 10402
    assert await code("http://127.0.0.1:1") == 10402


async def test_a_session_is_renewed_while_in_use_and_ends_as_a_whole(
    browser: Browser, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: Tokens = rig.platform.parts.metadata.tokens
    began = tokens._clock()
    now = began
    monkeypatch.setattr(tokens, "_clock", lambda: now)
    await browser.login()
    first = browser.cookie
    assert (await browser.ask("ping"))["code"] == 200
    assert browser.cookie == first
    now = began + 20 * MINUTE_US
    await browser.ask("ping")
    second = browser.cookie
    assert second not in (None, first)
    now = began + 130 * MINUTE_US  # the first token is over, the second isn't
    assert (await browser.ask("ping"))["code"] == 200
    browser.cookie, newest = second, browser.cookie
    assert (await browser.ask("logout"))["code"] == 200
    assert browser.cookie is None
    now += 100 * MINUTE_US
    for stolen in (second, newest):
        browser.cookie = stolen
        assert (await browser.ask("ping"))["code"] == 10402


async def test_a_session_in_use_ends_after_its_days(
    browser: Browser, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens: Tokens = rig.platform.parts.metadata.tokens
    began = tokens._clock()
    now = began
    monkeypatch.setattr(tokens, "_clock", lambda: now)
    await browser.login()
    while (await browser.ask("ping"))["code"] == 200:
        now += 60 * MINUTE_US
    assert 30 * 24 * 60 * MINUTE_US <= now - began + MINUTE_US <= (30 * 24 * 60 + 61) * MINUTE_US


async def test_another_password_goes_on_in_the_cookie(browser: Browser) -> None:
    await browser.login()
    before = browser.cookie
    answer = await browser.ask("change_password", old_password=PASSWORD, password="another-password")
    assert (answer["code"], answer["result"]["token"]) == (200, "")
    assert (await browser.ask("ping"))["code"] == 200
    browser.cookie = before
    assert (await browser.ask("ping"))["code"] == 10402


@IN_MODULE
@pytest.mark.parametrize("value", ["", "x", "a" * 5_000, 'quoted"', "eyJ.e.e"])
async def test_a_cookie_that_is_none_is_no_login(another: Browser, value: str) -> None:
    await another.login()
    name = str(another.cookie).partition("=")[0]
    another.cookie = f"{name}={value}"
    assert (await another.ask("ping"))["code"] == 10402
