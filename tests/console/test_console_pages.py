"""The first pages, each with what it is for; and what holds on every page."""

from __future__ import annotations

import re

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser, expect
from routes import ROUTES

HOSTILE = {
    "markup": "<img src=x onerror=alert(1)>&lt;b&gt;'\"",
    "direction": "abc\u202edef\u202c \u0627\u0644\u0645\u0636\u062e\u0629",
    "emoji": "Pump \U0001f600\U0001f469\u200d\U0001f680 \u4e00\u53f7",
    "long": "x" * 64,
}


@pytest.fixture(scope="module")
def hostile(plant: DemoPlant) -> list[str]:
    """Terminals whose names are hostile, one of which said something of that kind."""
    config = plant.call("get_terminal_config_list")[0]["uid"]
    for kind, name in HOSTILE.items():
        plant.add_terminal(f"hostile-{kind}", config, name=name, description=name * 3)
    return [f"hostile-{kind}" for kind in HOSTILE]


def test_the_overview_says_what_needs_a_person_and_leads_there(admin: Tab) -> None:
    todo = admin.page.locator(".todo")
    expect(todo.get_by_text("refused", exact=True)).to_be_visible(timeout=20_000)
    expect(admin.page.locator(".figure").first).to_contain_text(re.compile(r"\d+ of 1\d online"))
    todo.get_by_role("link", name="Why").first.click()
    expect(admin.page.get_by_role("heading", level=1)).to_contain_text("Boiler house meter")
    expect(admin.page.get_by_text("compare the record's pin with the terminal's")).to_be_visible()


def test_a_viewer_sees_the_same_and_no_buttons_to_change_it(tab: Tab, plant: DemoPlant) -> None:
    tab.login("demo-viewer", plant.password("demo-viewer"))
    expect(tab.page.locator(".todo li").first).to_be_visible()
    expect(tab.page.get_by_role("button", name="Acknowledge")).to_have_count(0)
    tab.open("#/terminals/demo-chiller-1?tab=commands")
    expect(tab.page.get_by_role("heading", name="Commands")).to_be_visible()
    expect(tab.page.get_by_role("button", name="Send")).to_have_count(0)
    tab.open("#/terminals/demo-spare?tab=connect")
    expect(tab.page.get_by_text("-P '<pin>'")).to_be_visible()


def test_terminals_are_searched_filtered_and_sorted_and_a_link_keeps_the_view(admin: Tab) -> None:
    admin.open("#/terminals?search=demo-")
    expect(admin.page.get_by_role("row")).to_have_count(13)
    admin.page.get_by_role("searchbox").fill("meter")
    expect(admin.page.get_by_role("row")).to_have_count(5)
    admin.page.get_by_role("button", name="Name", exact=True).click()
    expect(admin.page.get_by_role("row").nth(1)).to_contain_text("demo-meter-boiler")
    admin.page.get_by_label("Presence").select_option("0")
    expect(admin.page.get_by_role("row")).to_have_count(2)
    assert "search=meter" in admin.page.url
    admin.page.reload()
    expect(admin.page.get_by_role("row")).to_have_count(2)


def test_a_command_is_sent_and_followed(admin: Tab) -> None:
    admin.open("#/terminals/demo-chiller-2?tab=commands")
    admin.page.get_by_role("textbox", name="Command").fill("Diag")
    admin.page.get_by_role("button", name="Send").click()
    expect(admin.page.locator(".messages li").first).to_contain_text(re.compile("delivered|answered"), timeout=15_000)
    expect(admin.page.locator(".messages li").first).to_contain_text("Diag")


def test_messages_come_by_themselves(admin: Tab) -> None:
    admin.open("#/terminals/demo-chiller-1?tab=messages")
    first = admin.page.locator(".messages pre").first
    before = first.inner_text()
    expect(first).not_to_have_text(before, timeout=20_000)


def test_the_commands_that_connect_a_terminal_do(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/terminals/demo-spare?tab=connect")
    text = admin.page.locator(".code pre").first.inner_text()
    assert f"-p {plant.mqtt} -i demo-spare -u demo-spare -P {plant.password('demo-spare')}" in text
    assert "-t g/demo-spare/r" in text


def test_an_event_is_commented_on_and_cleared(admin: Tab, plant: DemoPlant) -> None:
    number = plant.call("get_event_list", page_size=1)["data"][0]["id"]
    admin.open(f"#/events?state=all&event={number}")
    dialog = admin.page.get_by_role("dialog")
    dialog.get_by_label("Comment").fill("looked at <b>it</b>")
    dialog.get_by_role("button", name="Add the comment").click()
    expect(dialog.locator(".messages")).to_contain_text("looked at <b>it</b>")
    expect(dialog.get_by_label("Comment")).to_have_value("")
    clear = dialog.get_by_role("button", name="Clear")
    if clear.count():
        clear.click()
    expect(dialog).to_contain_text("cleared")
    assert plant.call("get_event_item", id=number)["state"] == "cleared"


def test_what_is_typed_outlives_a_reload(admin: Tab) -> None:
    admin.open("#/terminals/demo-chiller-3?tab=commands")
    admin.page.get_by_role("textbox", name="Command").fill("SetPoint")
    admin.page.reload()
    expect(admin.page.get_by_role("textbox", name="Command")).to_have_value("SetPoint")


@pytest.mark.parametrize(("scheme", "language"), [("light", "en-US"), ("dark", "zh-CN")])
def test_every_page_is_accessible(plant: DemoPlant, browser: Browser, scheme: str, language: str) -> None:
    tab = open_tab(browser, plant.url, color_scheme=scheme, locale=language)
    tab.open()
    tab.login("demo-admin", plant.password("demo-admin"))
    found = {}
    for name, route in ROUTES.items():
        tab.open(route)
        tab.settle()
        if findings := tab.accessibility():
            found[name] = findings
    assert found == {}
    assert tab.complaints() == []
    tab.page.context.close()


def test_every_page_fits_a_phone(plant: DemoPlant, browser: Browser, hostile: list[str]) -> None:
    tab = open_tab(browser, plant.url, viewport={"width": 360, "height": 740})
    tab.open()
    tab.login("demo-admin", plant.password("demo-admin"))
    wide = {}
    for name, route in {**ROUTES, **{each: f"#/terminals/{each}" for each in hostile}}.items():
        tab.open(route)
        tab.settle()
        if (width := tab.run("document.documentElement.scrollWidth")) > 360:
            wide[name] = width
    assert wide == {}
    assert tab.complaints() == []
    tab.page.context.close()


@pytest.fixture
def watched(admin: Tab) -> Tab:
    """The tab, in which an alert would be noticed."""
    admin.page.on("dialog", lambda dialog: admin.said.append(f"dialog: {dialog.message}"))
    return admin


def test_names_of_others_are_text(watched: Tab, hostile: list[str]) -> None:
    watched.open("#/terminals?search=hostile")
    expect(watched.page.get_by_role("row")).to_have_count(1 + len(hostile))
    assert watched.page.locator("main table img").count() == 0
    for uid, name in zip(hostile, HOSTILE.values(), strict=True):
        watched.open(f"#/terminals/{uid}")
        expect(watched.page.get_by_role("heading", level=1)).to_contain_text(name[:60])
    watched.page.keyboard.press("Control+k")
    watched.page.keyboard.type("hostile-markup")
    expect(watched.page.get_by_role("option").first).to_contain_text("<img src=x")
    assert watched.page.locator("dialog img").count() == 0
