"""Ways in beside name and password: a second factor, single sign-on at a provider, and what is offered at all."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import re
import struct
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser, Route, expect

from running import Platform

sys.path.append(str(Path(__file__).parents[1] / "api"))
from sso_provider import CLIENT_ID, CLIENT_SECRET, Provider


def code_of(secret: str, time_s: float) -> str:
    """The six digits of an authenticator app, RFC 6238."""
    mac = hmac.digest(base64.b32decode(secret), struct.pack(">Q", int(time_s) // 30), hashlib.sha1)
    number = struct.unpack_from(">I", mac, mac[-1] & 15)[0] & 0x7FFFFFFF
    return f"{number % 1_000_000:06}"


def test_a_second_factor_is_turned_on_and_asked_for(tab: Tab, plant: DemoPlant, browser: Browser) -> None:
    password = plant.password("demo-operator")
    tab.login("demo-operator", password)
    tab.page.get_by_role("button", name="Account: demo-operator").click()
    dialog = tab.page.get_by_role("dialog", name="Account")
    dialog.get_by_role("button", name="Second factor").click()
    dialog.get_by_label("Present password").fill(password)
    dialog.get_by_role("button", name="Set it up").click()
    secret = dialog.locator("pre").inner_text().splitlines()[0]
    dialog.get_by_label("Six digits").fill(code_of(secret, time.time()))
    dialog.get_by_role("button", name="Confirm").click()
    expect(dialog.get_by_role("heading", name="Recovery codes")).to_be_visible()
    codes = dialog.locator("pre").inner_text().split()
    assert len(codes) == 10
    dialog.get_by_role("button", name="I have kept them").click()
    expect(dialog).to_have_count(0)
    tab.open("#/events")
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Events")
    assert "eyJ" not in tab.run("document.cookie + JSON.stringify([{...localStorage}, {...sessionStorage}])")

    other = open_tab(browser, plant.url)
    other.open()
    other.page.fill("input[name=username]", "demo-operator")
    other.page.fill("input[name=password]", password)
    other.page.click("form button.primary")
    field = other.page.get_by_label("Code of the second factor")
    expect(field).to_be_focused()
    field.fill("000000")
    other.page.click("form button.primary")
    expect(other.page.get_by_role("alert")).to_be_visible()
    field.fill(codes[0])
    other.page.click("form button.primary")
    other.page.wait_for_selector("main#main")
    assert other.complaints() == []
    other.page.context.close()


def test_a_password_is_changed_and_the_session_goes_on(tab: Tab, plant: DemoPlant) -> None:
    plant.call("create_user", username="changes-it", password="the old password", role="viewer")
    tab.login("changes-it", "the old password")
    tab.page.get_by_role("button", name="Account: changes-it").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Change the password").click()
    old, fresh, again = (dialog.get_by_label(name) for name in _FIELDS)
    old.fill("not the old password")
    fresh.fill("the new password")
    again.fill("another password")
    expect(dialog).to_contain_text("not the same")
    again.fill("the new password")
    tab.expected = ["status of 40[0-9]"]
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(fresh).to_have_value("the new password")
    old.fill("the old password")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    tab.open("#/terminals")
    tab.settle()
    expect(tab.page.get_by_role("row").nth(1)).to_be_visible()
    assert plant.ask("login", username="changes-it", password="the old password")["code"] != 200
    assert plant.ask("login", username="changes-it", password="the new password")["code"] == 200


_FIELDS = ("Present password", "New password (at least 8 characters)", "New password again")


def test_what_is_not_configured_is_not_offered(tab: Tab) -> None:
    tab.page.wait_for_load_state("networkidle")
    expect(tab.page.get_by_role("button", name="Log in with single sign-on")).to_have_count(0)
    expect(tab.page.get_by_role("button", name="Forgot the password?")).to_have_count(0)


def test_reasons_of_the_platform_are_said_in_chinese(plant: DemoPlant, browser: Browser) -> None:
    tab = open_tab(browser, plant.url, locale="zh-CN")
    tab.open()
    tab.login("demo-admin", plant.password("demo-admin"))
    tab.open("#/access")
    tab.page.get_by_role("button", name="新建用户").click()
    dialog = tab.page.get_by_role("dialog")
    dialog.get_by_label("用户名").fill("demo-viewer")
    dialog.get_by_label("密码").fill("long enough for it")
    dialog.get_by_role("button", name="保存").click()
    expect(dialog.get_by_role("alert")).to_contain_text(re.compile("demo-viewer.*已被占用"))
    assert tab.complaints() == []
    tab.page.context.close()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    """A provider of single sign-on, in a thread of its own."""
    made, loop = Provider(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(made.__aenter__(), loop).result(30)
    yield made
    asyncio.run_coroutine_threadsafe(made.__aexit__(), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(30)
    loop.close()


def test_single_sign_on_leads_to_the_provider_and_back(
    plant: DemoPlant, provider: Provider, browser: Browser, tmp_path: Path
) -> None:
    # the platform's address has to be known before it starts; the browser is led back to the one that it has
    environment = {
        "TERRAZZO_SSO__ISSUER": provider.issuer,
        "TERRAZZO_SSO__CLIENT_ID": CLIENT_ID,
        "TERRAZZO_SSO__CLIENT_SECRET": CLIENT_SECRET,
        "TERRAZZO_SSO__REDIRECT_URL": "http://127.0.0.1/",
        "TERRAZZO_SSO__ALLOW_PRIVATE": '["127.0.0.0/8"]',
        "TERRAZZO_SSO__DEFAULT_ROLE": "operator",
        "TERRAZZO_SSO__CREATE_USERS": "true",
    }
    with Platform(tmp_path / "data", env=environment) as platform:
        tab = open_tab(browser, platform.url)

        def authorize(route: Route) -> None:
            back = provider.log_in(route.request.url, sub="s-1", preferred_username="mo", email="mo@plant.example")
            route.fulfill(status=302, headers={"Location": f"{platform.url}/?{urlencode(back)}"})

        tab.page.route(f"{provider.issuer}/authorize*", authorize)
        tab.open()
        tab.page.get_by_role("button", name="Log in with single sign-on").click()
        tab.page.wait_for_selector("main#main", timeout=60_000)  # the provider is asked three times
        expect(tab.page.get_by_role("button", name="Account: mo")).to_be_visible()
        assert "code=" not in tab.page.url
        tab.page.get_by_role("button", name="Account: mo").click()
        expect(tab.page.get_by_role("button", name="Change the password")).to_have_count(0)
        own = (platform.url, platform.url.replace("http", "ws", 1), provider.issuer)
        assert [each for each in tab.said if "favicon" not in each] == []
        assert [each for each in tab.asked if not each.startswith(own)] == []
        tab.page.context.close()
