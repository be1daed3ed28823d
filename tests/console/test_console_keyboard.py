"""The console by keyboard alone: nothing here touches a pointer, and where the focus is one sees."""

from __future__ import annotations

import re

import pytest
from browser import Tab
from demo_plant import DemoPlant
from keys import Keys
from playwright.sync_api import Browser, Locator, expect
from routes import ROUTES, View
from walk import walk

from length import IS_LONG

PARTS = 6  # in which the pages are gone through
STOPS = 150 if IS_LONG else 40
"""Keys that are pressed on a page at most."""
BACK = pytest.mark.skipif(not IS_LONG, reason="the same pages backwards: minutes")


@pytest.fixture
def keys(tab: Tab) -> Keys:
    return Keys(tab)


def enter(tab: Tab, keys: Keys, plant: DemoPlant, name: str = "demo-admin") -> None:
    """Logs in: the field for the name has the focus from the beginning."""
    expect(tab.page.locator("input[name=username]")).to_be_focused()
    keys.write(name)
    keys.to("Password", "input")
    keys.write(plant.password(name))
    keys.press("Enter")
    tab.page.wait_for_selector("main#main")


def finder(tab: Tab) -> Locator:
    """The field that a search is typed in."""
    return tab.page.get_by_role("combobox", name="Find anything by its name")


def search(tab: Tab, keys: Keys, text: str, found: str) -> None:
    """Opens what a search finds."""
    keys.press("Control+k")
    expect(finder(tab)).to_be_focused()
    keys.write(text)
    expect(tab.page.get_by_role("listbox")).to_have_attribute("aria-busy", "false")
    options = tab.page.get_by_role("option")
    expect(options.filter(has_text=found).first).to_be_visible()
    for _ in range(options.count()):
        if found in tab.page.locator("[role=option][aria-selected=true]").inner_text():
            break
        keys.press("ArrowDown")
    keys.press("Enter")
    expect(finder(tab)).to_have_count(0)


def test_the_first_stop_leads_past_the_menu(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    enter(tab, keys, plant)
    tab.page.reload()
    tab.page.wait_for_selector("main#main")
    tab.settle()
    keys.press("Tab")
    assert keys.seen().name == "To the content"
    keys.press("Enter")
    expect(tab.page.locator("main#main")).to_be_focused()
    keys.press("Tab")
    assert tab.run("document.querySelector('main').contains(document.activeElement)")
    keys.seen()


def test_a_search_that_is_given_up_leaves_the_focus_where_it_was(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    enter(tab, keys, plant)
    before = keys.to("^Events$", "a")
    keys.press("Control+k")
    expect(finder(tab)).to_be_focused()
    keys.seen()
    keys.press("Escape")
    expect(tab.page.get_by_role("dialog")).to_have_count(0)
    assert keys.seen() == before


def test_who_types_and_presses_enter_at_once_gets_what_was_typed(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    enter(tab, keys, plant)
    keys.press("Control+k")
    keys.write("dashb")
    keys.press("Enter")
    expect(tab.page.get_by_role("heading", level=1)).to_have_text("Dashboards")
    expect(finder(tab)).to_have_count(0)


def test_a_terminal_is_found_and_told_something(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    enter(tab, keys, plant)
    search(tab, keys, "demo-chiller-2", "demo-chiller-2")
    expect(tab.page.get_by_role("heading", level=1)).to_contain_text("Chiller 2")
    tab.settle()
    keys.to("^Commands$", "a")
    keys.press("Enter")
    tab.settle()
    keys.to(r"^Command\b", "input")
    keys.write("Diag")
    keys.press("Enter", "Enter")  # the second one, as of a key that is held down, sends nothing
    expect(tab.page.get_by_role("dialog")).to_contain_text("Send Diag?")
    keys.to("^Send now$", "button")
    keys.press("Enter")
    expect(tab.page.get_by_role("dialog")).to_contain_text(re.compile("delivered|answered"))
    keys.press("Escape")
    assert re.search("Command", keys.seen().name)
    first = tab.page.locator(".messages li").first
    expect(first).to_contain_text("Diag")
    expect(first).to_contain_text(re.compile("delivered|answered"))


def test_a_command_is_looked_at_before_it_is_sent(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    enter(tab, keys, plant)
    search(tab, keys, "Chiller 2", "object")
    expect(tab.page.get_by_role("heading", level=1)).to_contain_text("Chiller 2")
    tab.settle()
    opener = keys.to("^Send$", "button")
    keys.press("Enter")
    dialog = tab.page.get_by_role("dialog")
    expect(dialog).to_be_visible()
    keys.seen()
    keys.press("Escape")
    expect(dialog).to_have_count(0)
    assert keys.seen() == opener
    keys.press("Enter")
    keys.to("New value", "input")
    keys.press("Enter")
    expect(dialog.get_by_role("button", name="Send now")).to_be_visible()
    assert keys.at() is not None, "the field that had the focus is gone, and the focus with it"
    keys.to("^Send now$", "button")
    keys.press("Enter")
    expect(dialog).to_contain_text(re.compile("delivered|answered"))
    assert keys.at() is not None, "the button that had the focus is gone, and the focus with it"
    keys.press("Escape")
    expect(dialog).to_have_count(0)
    assert keys.seen() == opener


def test_what_is_shown_once_stays_however_often_escape_is_pressed(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    enter(tab, keys, plant)
    search(tab, keys, "Access", "Access")
    tab.settle()
    keys.to("^API keys$", "a")
    keys.press("Enter")
    tab.settle()
    opener = keys.to("^New API key$", "button")
    keys.press("Enter")
    keys.to("^Name$", "input")
    keys.write("by keys")
    keys.press("Enter")
    once = tab.page.get_by_role("dialog", name="API key by keys")
    expect(once).to_be_visible()
    keys.press("Escape", "Escape", "Escape")
    expect(once).to_contain_text("tzk_")
    keys.to("^I have kept it$", "button")
    keys.press("Enter")
    expect(once).to_have_count(0)
    assert keys.seen() == opener


FOUND = {
    "New user": ("Access", "dialog"),
    "New rule": ("Rules", "dialog"),
    "New customer": ("Customers", "dialog"),
    "New campaign": ("Campaigns", "dialog"),
    "New claim key": ("Access", "dialog"),
    "Add a terminal": ("Terminals", "dialog"),
    "Add an object": ("Objects", "dialog"),
    "Account": ("Access", "dialog"),  # over the page that one is on
    "Claim keys": ("Access", "part"),
    "Handover": ("Events", "part"),
    "Control tables": ("Mapping", "part"),
    "Calculations": ("Statistics", "part"),
    "Messages sent": ("Rules", "part"),
    "Subscriptions": ("Broker", "part"),
}
"""What a search finds beside pages and records: of which page, and whether it is a dialog or a part of it."""


def test_what_one_can_begin_is_found_by_its_name(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    enter(tab, keys, plant)
    tab.page.wait_for_selector("h1")
    for name, (page, kind) in sorted(FOUND.items(), key=lambda each: each[1]):
        search(tab, keys, name, "action" if kind == "dialog" else "part of a page")
        if kind == "dialog":
            dialog = tab.page.get_by_role("dialog", name=name)
            expect(dialog).to_be_visible()
            keys.press("Escape")
            expect(dialog).to_have_count(0)
            assert "do=" not in tab.page.url
        else:
            expect(tab.page.locator(".tabs [aria-current]")).to_have_text(name)
        expect(tab.page.get_by_role("heading", level=1)).to_contain_text(page)
        tab.settle()
    search(tab, keys, "Dark theme", "action")
    assert tab.run("document.documentElement.dataset.theme") == "dark"


def test_a_viewer_finds_nothing_to_begin_that_needs_another_role(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    enter(tab, keys, plant, "demo-viewer")
    keys.press("Control+k")
    keys.write("new ")
    options = tab.page.get_by_role("option")
    expect(options.filter(has_text="New API key")).to_have_count(1)
    expect(options.filter(has_text="action")).to_have_count(1)


def test_an_event_is_acknowledged(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    enter(tab, keys, plant)
    search(tab, keys, "Events", "Events")
    tab.settle()
    rows = tab.page.get_by_role("row")
    expect(rows.nth(1)).to_be_visible()
    tab.page.wait_for_selector("tbody a[href*='event=']")
    before = tab.page.locator("tbody a[href*='event=']").count()
    name = re.escape(tab.page.locator("tbody a[href*='event=']").first.inner_text())
    opener = keys.to(f"^{name}$", "a")
    keys.press("Enter")
    dialog = tab.page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Acknowledge")).to_be_visible()
    keys.press("Escape")
    expect(dialog).to_have_count(0)
    assert keys.seen() == opener
    keys.press("Enter")
    expect(dialog.get_by_role("button", name="Acknowledge")).to_be_visible()
    keys.to("^Acknowledge$", "button")
    keys.press("Enter")
    expect(dialog).to_contain_text("acknowledged")
    expect(tab.page.locator("tbody a[href*='event=']")).not_to_have_count(before)
    keys.press("Escape")  # the list shows open events alone: what the dialog was opened with is not there any more
    expect(dialog).to_have_count(0)
    assert keys.at() is not None, "the link that had the focus is gone, and the focus with it"


def _dashboard(plant: DemoPlant) -> str:
    """One with a free place below its two widgets."""
    kind = {"type": "vlu", "attribute": {"values": []}}
    data = [{**kind, "name": f"Widget {n}", "xys": {"pos": [6 * n, 0], "len": [6, 4]}} for n in range(2)]
    script = {"Dashboard-1": {"name": "First", "col": 24, "row": 12, "data": data}}
    return str(plant.call("create_dashboard", name="By keys", category="pro", script=script)["uid"])


def test_a_widget_is_moved_removed_and_brought_back(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    uid = _dashboard(plant)
    enter(tab, keys, plant)
    search(tab, keys, "By keys", "By keys")
    tab.settle()
    keys.to("^Edit$")
    keys.press("Enter")
    expect(tab.page.locator(".editing .widget")).to_have_count(2)
    keys.to("^Widget 0", "button")
    for _ in range(5):  # below the other one: it is read after it then
        keys.press("ArrowDown")
        assert keys.seen().name.startswith("Widget 0")
    keys.press("Shift+ArrowRight")
    expect(tab.page.get_by_role("status").filter(has_text="Widget 0")).to_be_visible()
    keys.press("Delete")
    expect(tab.page.locator(".editing .widget")).to_have_count(1)
    keys.press("Control+z")
    expect(tab.page.locator(".editing .widget")).to_have_count(2)
    keys.press("Control+s")
    expect(tab.page.locator(".toasts")).to_contain_text("Saved")
    data = plant.call("get_dashboard_item", uid=uid)["script"]["Dashboard-1"]["data"]
    assert data[0]["xys"] == {"pos": [0, 5], "len": [7, 4]}
    keys.to("^Widget 1", "button")
    keys.press("ArrowRight")
    keys.to("^Undo$", "button", key="Shift+Tab")
    keys.press("Enter")
    expect(tab.page.get_by_role("button", name="Save")).to_be_disabled()
    keys.press("Control+Shift+Z")
    expect(tab.page.get_by_role("button", name="Save")).to_be_enabled()
    plant.call("delete_dashboard", uid=uid)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("key", ["Tab", pytest.param("Shift+Tab", marks=BACK)])
def test_every_stop_of_every_page_is_seen_and_none_holds_the_focus(
    plant: DemoPlant, browser: Browser, views: list[View], key: str, part: int
) -> None:
    unseen = []
    with walk(browser, plant, views[part::PARTS]) as visits:
        for view, tab in visits:
            keys = Keys(tab)
            stops = keys.around(key=key, most=STOPS)
            assert len(stops) > (2 if view.is_dialog or view.is_wall else 10), view.name
            unseen += [f"{view.name}: {each.html}" for each in stops if not each.is_outlined]
            unseen += [f"{view.name}, out of sight: {each.html}" for each in stops if not each.is_in_view]
            if view.is_dialog:
                keys.press("Escape")
                expect(tab.page.get_by_role("dialog")).to_have_count(0)
                assert keys.at() is not None, f"{view.name} is closed, and the focus is nowhere"
    assert unseen == []


def test_on_a_phone_nothing_lies_over_what_has_the_focus(tab: Tab, keys: Keys, plant: DemoPlant) -> None:
    tab.page.set_viewport_size({"width": 360, "height": 640})
    enter(tab, keys, plant)
    unseen = []
    for name in ("overview", "events", "terminal", "object", "mapping-table", "handover"):
        tab.open(ROUTES[name])
        tab.settle()
        for key in ("Tab", "Shift+Tab"):
            unseen += [f"{name} {key}: {each.html}" for each in keys.around(key=key) if not each.is_in_view]
    assert unseen == []
