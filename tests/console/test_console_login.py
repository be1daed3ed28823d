"""Logging in, staying logged in, and what the frame around the pages does."""

from __future__ import annotations

import re

import pytest
from browser import Tab, open_tab, tab_of
from demo_plant import DemoPlant
from playwright.sync_api import Browser, Request, Route, expect

FIRST_BYTES = 60 * 1024  # transferred, answers of the API among them


def test_a_login_that_is_wrong_says_what_to_do_and_a_right_one_opens_the_overview(tab: Tab, plant: DemoPlant) -> None:
    tab.page.fill("input[name=username]", "demo-viewer")
    tab.page.fill("input[name=password]", "wrong")
    tab.page.click("form button.primary")
    expect(tab.page.get_by_role("alert")).to_contain_text("wrong")
    tab.login("demo-viewer", plant.password("demo-viewer"))
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Overview")
    assert "Overview" in tab.page.title()


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
def test_what_is_typed_before_the_scripts_are_there_stays(plant: DemoPlant, browser: Browser, language: str) -> None:
    tab = open_tab(browser, plant.url, locale=language)
    held: list[Route] = []
    is_free = False
    tab.page.route("**/*.js", lambda route: route.continue_() if is_free else held.append(route))
    tab.page.goto(f"{plant.url}/", wait_until="commit")
    tab.page.wait_for_selector("input[name=username]")
    tab.page.keyboard.type("demo-viewer")
    tab.page.fill("input[name=password]", plant.password("demo-viewer"))
    assert tab.page.locator("form button.primary").is_disabled()
    is_free = True
    for each in held:
        each.continue_()
    tab.page.click("form button.primary")
    tab.page.wait_for_selector("main#main")
    assert tab.complaints() == []
    tab.page.context.close()


def test_a_session_survives_a_reload_and_a_new_tab_and_no_script_sees_it(admin: Tab) -> None:
    admin.page.reload()
    admin.page.wait_for_selector("main#main")
    second = tab_of(admin.page.context, admin.base)
    second.open()
    second.page.wait_for_selector("main#main")
    seen = second.run("document.cookie + JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert "eyJ" not in seen
    assert second.complaints() == []
    admin.page.click("header button[aria-label^='Account']")
    admin.page.get_by_role("button", name="Log out").click()
    admin.page.wait_for_selector("input[name=username]")
    second.page.reload()
    second.page.wait_for_selector("input[name=username]")


def test_a_session_that_ends_asks_again_over_the_page_and_goes_on(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/events")
    admin.page.context.clear_cookies()
    admin.run("document.dispatchEvent(new Event('visibilitychange'))")
    dialog = admin.page.get_by_role("dialog")
    expect(dialog).to_contain_text("Log in again")
    dialog.get_by_label("Password").fill(plant.password("demo-admin"))
    dialog.get_by_role("button").click()
    expect(dialog).to_have_count(0)
    expect(admin.page.get_by_role("heading", level=1)).to_have_text("Events")


def test_what_loads_from_the_login_to_a_usable_overview_is_light(plant: DemoPlant, browser: Browser) -> None:
    tab = open_tab(browser, plant.url)
    sizes: dict[str, int] = {}

    def count(request: Request) -> None:
        found = request.sizes()
        sizes[request.url] = found["responseBodySize"] + found["responseHeadersSize"]

    tab.page.on("requestfinished", count)
    tab.open()
    tab.login("demo-viewer", plant.password("demo-viewer"))
    tab.page.wait_for_selector(".todo, .empty")
    tab.page.wait_for_load_state("networkidle")
    assert len(sizes) > 6
    assert sum(sizes.values()) < FIRST_BYTES, sizes
    tab.page.context.close()


def test_search_is_one_key_away(admin: Tab) -> None:
    admin.page.keyboard.press("Control+k")
    admin.page.keyboard.type("meter-air")
    expect(admin.page.get_by_role("option").first).to_contain_text("demo-meter-air")
    admin.page.keyboard.press("Enter")
    admin.page.wait_for_url(re.compile("#/terminals/demo-meter-air"))


@pytest.mark.parametrize("language", ["en-US", "zh-CN"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_login_is_accessible(plant: DemoPlant, browser: Browser, language: str, scheme: str) -> None:
    tab = open_tab(browser, plant.url, locale=language, color_scheme=scheme)
    tab.open()
    tab.page.wait_for_selector("form")
    assert tab.run("document.documentElement.lang")[:2] == language[:2]
    assert tab.run("document.documentElement.dataset.theme") == scheme
    assert tab.accessibility() == []
    tab.page.context.close()


def test_a_lost_connection_is_seen_heals_and_says_what_may_be_missing(plant: DemoPlant, browser: Browser) -> None:
    tab = open_tab(browser, plant.url)
    tab.open()
    tab.login("demo-viewer", plant.password("demo-viewer"))
    expect(tab.page.locator(".live")).to_contain_text("live")
    for route in ("#/terminals", "#/objects", "#/overview"):
        tab.open(route)  # whose scripts are there then
        tab.settle()
    tab.expected = ["ERR_INTERNET_DISCONNECTED", "WebSocket"]
    said = tab.page.get_by_role("status").filter(has_text="The connection is back")
    for route, times in (("#/terminals", r"from \S+ to"), ("#/objects", "2 times between")):
        tab.page.context.set_offline(True)  # requests fail, the live connection stays
        tab.open(route)
        expect(tab.page.get_by_role("alert").filter(has_text="The connection to the platform is lost")).to_be_visible()
        tab.page.context.set_offline(False)
        expect(tab.page.locator(".banner")).to_have_count(0)
        expect(said).to_have_text(re.compile(rf"It was lost {times} .*Missing is.*rates"))
        expect(tab.page.get_by_role("row").nth(1)).to_be_visible()  # what could not be read is read by itself
    said.get_by_role("button", name="Close").click()
    expect(said).to_have_count(0)
    assert tab.complaints() == []
    tab.page.context.close()
