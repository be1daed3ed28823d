"""Nothing that matters is missing: all that happened to an object, what a phone shows, what the search finds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser, Locator, Route, expect


def chiller(plant: DemoPlant) -> dict[str, Any]:
    return dict(plant.call("get_object_list", where_and=[["name", "like", "Chiller 1%"]])["data"][0])


def test_all_that_happened_to_an_object_stands_in_its_logbook(admin: Tab, plant: DemoPlant) -> None:
    """Written records, files, its terminals out of service and away; each leads to where it is dealt with."""
    page, item = admin.page, chiller(plant)
    admin.open(f"#/objects/{item['id']}")
    page.get_by_role("button", name="Write a record").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("What was done").fill("New seal")
    dialog.get_by_label("Kind").select_option("设备维修")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    page.get_by_label("Add files").set_input_files({"name": "seal.txt", "mimeType": "text/plain", "buffer": b"x"})
    expect(page.get_by_text("1 file added")).to_be_visible()
    plant.call("put_out_of_service", uids=["demo-chiller-1"], minutes=5, reason="seal is open")
    plant.call("put_into_service", uids=["demo-chiller-1"])
    page.get_by_role("link", name="Logbook").click()
    entries = page.locator(".log li")
    page.get_by_role("button", name="Records and files").click()
    expect(entries.filter(has_text="equipment repaired: New seal")).to_have_count(1)
    expect(entries.filter(has_text=re.compile("seal.txt.*attached"))).to_have_count(1)
    page.get_by_role("button", name="Terminals", exact=True).click()
    expect(entries.filter(has_text=re.compile("back in service.*seal is open"))).to_have_count(1)
    expect(entries.filter(has_text="connected").first).to_be_visible()
    expect(page.locator(".log")).not_to_contain_text("New seal")
    assert admin.accessibility() == []
    entries.filter(has_text=re.compile("put out of service.*seal is open")).get_by_role("link").first.click()
    named = plant.call("get_terminal_item", uid="demo-chiller-1")["name"]
    expect(page.get_by_role("heading", level=1)).to_contain_text(named)
    page.go_back()
    page.get_by_role("button", name="Records and files").click()
    page.get_by_role("link", name="equipment repaired: New seal").click()
    expect(page.get_by_role("dialog").get_by_label("What was done")).to_have_value("New seal")


@pytest.fixture
def phone(plant: DemoPlant, browser: Browser) -> Iterator[Tab]:
    """A tab as broad as a phone."""
    tab = open_tab(browser, plant.url, viewport={"width": 360, "height": 740})
    tab.open()
    yield tab
    complaints = tab.complaints()
    tab.page.context.close()
    assert complaints == []


def is_within(shown: Locator, width: int = 360) -> None:
    """It is seen without pushing anything aside: a line cuts what is longer, and does not hide it."""
    expect(shown).to_be_visible()
    box = shown.bounding_box()
    assert box is not None
    assert 0 <= box["x"] < box["x"] + 20 <= width
    shown.scroll_into_view_if_needed()
    assert shown.evaluate(
        """(node) => { const { left, top, height } = node.getBoundingClientRect();
        const hit = document.elementFromPoint(left + 4, top + height / 2);
        return node.contains(hit) || hit.contains(node) }"""
    ), "something is over it, or its row cuts it off"


def answered(action: str, change: Callable[[Any], None]) -> Callable[[Route], None]:
    """Has an action answered with something changed: what a healthy plant has none of."""

    def handle(route: Route) -> None:
        if action not in (route.request.post_data or "") and action not in route.request.url:
            return route.fallback()
        response = route.fetch()
        answer = response.json()
        change(answer["result"])
        return route.fulfill(response=response, json=answer)

    return handle


def test_a_phone_shows_what_matters_of_each_list(phone: Tab, plant: DemoPlant) -> None:
    page = phone.page
    item = chiller(plant)
    label = {"id": 1, "object_id": str(item["id"]), "code": "HOT", "label_en": "Hot", "label_cn": "", "value": "1"}
    label |= {"opened_at": "2026-01-01 00:00:00", "elapsed": 5, "terminal_id": "demo-chiller-1", "template_id": "x"}
    message = {"uid": "m1", "channel": "email", "recipients": ["a@b.c"], "content": {"text": "hot"}, "svc_msg": ""}
    message |= {"created": "2026-01-01 00:00:00", "state": "failed", "reason": "no answer within 10 s"}
    for action, row in (("get_open_retainer_list", label), ("get_message_list", message)):
        page.route(
            "**/apiproxy/**", answered(action, lambda result, row=row: result.update(data=[row], total_records=1))
        )
    plant.call("publish_terminal_command", terminal_id="demo-spare", command="RESET", value="1")
    waits = plant.call("get_command_list", states=["queued"], page_size=100)["data"]
    plant.call("recall_commands", uids=[each["uid"] for each in waits if each["terminal_id"] == "demo-spare"])
    phone.login("demo-admin", plant.password("demo-admin"))
    phone.open("#/events/labels")
    phone.settle()
    is_within(page.locator("tbody tr:not(.gap) a", has_text=item["name"]))
    phone.open("#/commands/expired")
    phone.settle()
    is_within(page.get_by_text("recalled by demo-admin").first)
    assert phone.accessibility() == []
    phone.open("#/audit?entity=terminal")
    phone.settle()
    is_within(page.locator("tbody tr:not(.gap) .own-line").first.locator("bdi"))
    page.locator("tbody tr:not(.gap) button").first.click()
    cell = page.get_by_role("dialog").locator("tbody td").first
    is_within(cell)
    phone.open("#/rules/messages")
    is_within(page.get_by_text("no answer within 10 s"))


def test_a_phone_shows_why_a_task_failed(phone: Tab, plant: DemoPlant) -> None:
    phone.login("admin", plant.environment["TERRAZZO_ADMIN__PASSWORD"])

    def fail(result: Any) -> None:
        result["tasks"][0].update(name="backup", failures=1_000, last_error="OSError")

    phone.page.route("**/apiproxy/**", answered("get_platform_status", fail))
    phone.open("#/machine")
    is_within(phone.page.get_by_text("OSError; the log has it").first)


def search(tab: Tab, text: str, kind: str) -> None:
    """Opens the first that the search finds of a kind."""
    tab.page.keyboard.press("Control+k")
    dialog = tab.page.get_by_role("dialog", name="Find anything by its name")
    dialog.get_by_role("combobox").fill(text)
    dialog.get_by_role("option").filter(has_text=re.compile(f"{kind}$")).filter(has_text=text).first.click()
    expect(dialog).to_have_count(0)


DIALOGS = (
    ("New configuration", "New configuration"),
    ("New group", "New group"),
    ("New statistics script", "New script"),
    ("New calculation", "New script"),
    ("New balance", "New script"),
    ("New retainer", "New script"),
)
"""What one can begin by the search, and the dialog that it opens."""


def test_the_search_begins_what_one_may_make(admin: Tab, plant: DemoPlant) -> None:
    page = admin.page
    for action, title in DIALOGS:
        search(admin, action, "action")
        dialog = page.get_by_role("dialog", name=title)
        expect(dialog, action).to_be_visible()
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
    for action, place in (("New mapping", "mapping/mapping"), ("New control table", "mapping/control")):
        search(admin, action, "action")
        page.wait_for_url(re.compile(f"#/{place}/\\w+"))
    search(admin, "New dashboard", "action")
    page.wait_for_url(re.compile(r"#/dashboards/\w+\?edit=1"))


def test_the_search_finds_records_and_keys(admin: Tab, plant: DemoPlant) -> None:
    plant.call("create_api_key", name="of the search", role="viewer", days=1)
    board = plant.call("create_dashboard", name="Wall of the search", category="pro", script="{}")
    plant.call("renew_wall_link", uid=board["uid"])
    search(admin, "of the search", "API key")
    expect(admin.page.get_by_role("row").filter(has_text="of the search")).to_be_visible()
    search(admin, "Wall of the search", "link for a wall")
    expect(admin.page.get_by_role("dialog")).to_be_visible()
    admin.page.keyboard.press("Escape")
