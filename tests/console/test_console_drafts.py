"""What somebody types outlives an upgrade under the open tab and the end of a session, and is nobody else's."""

from __future__ import annotations

import re
import socket
from dataclasses import dataclass
from pathlib import Path

import pytest
from browser import Tab, open_tab
from console_build import build_console
from playwright.sync_api import Browser, Dialog, Locator, expect
from upgraded import UpgradedPlatform, next_console

from migrated import PASSWORD
from mqtt_bytes import login, publish
from running import Platform, wait_for

PUMP = "pump-1"
HEALED_MS = 60_000  # the platform starts again on a busy machine, and the page tries ever more seldom
NOISE = ["ERR_CONNECTION_REFUSED", "WebSocket connection", "ERR_EMPTY_RESPONSE", "ERR_CONNECTION_RESET", "status of 4"]
SECRET = "correct horse battery"
BACK = "You typed this before"
SIGNED = {"created_by": 1, "last_modified_by": 1, "is_available": 1}


@dataclass(frozen=True)
class Site:
    """What there is to be changed, by uid."""

    mapping: str
    control: str
    dashboard: str
    object_id: str


def make_site(platform: Platform) -> Site:
    """An object with tables, an event that is raised, and a dashboard."""
    platform.add_terminal(PUMP, platform.add_config(), name="Pump 1")
    rows = [
        ["FLOW", "Flow", "", "STA", "$AdapterID-1.flow", ""],
        ["LOW", "Flow is low", "", "EVNT", "$AdapterID-1.flow", "", "x < 1"],
    ]
    mapping = platform.call("create_mapping", name="Pumps", script=rows, **SIGNED)["uid"]
    written = [["SPEED", "Speed", "", "OBJ", "$AdapterID-1.SPEED", ""]]
    control = platform.call("create_control", name="Speeds", script=written)["uid"]
    made = platform.call(
        "create_object", name="Pump", mapping_id=mapping, control_id=control, terminal_list=[PUMP], **SIGNED
    )
    widgets = [{"type": "vlu", "name": "Flow", "xys": {"pos": [0, 0], "len": [6, 4]}, "attribute": {"values": []}}]
    page = {"name": "One", "col": 24, "row": 12, "data": widgets, "dataType": "mosaic"}
    dashboard = platform.call("create_dashboard", name="Hall", script={"Dashboard-1": page}, **SIGNED)["uid"]
    with socket.create_connection(("127.0.0.1", platform.mqtt)) as connection:
        connection.sendall(login(PUMP, f"u-{PUMP}", f"pin-{PUMP}"))
        assert connection.recv(4) == b"\x20\x02\x00\x00"
        connection.sendall(publish(f"g/{PUMP}/r", b'{"flow": 0}'))
        assert connection.recv(4)[:2] == b"\x40\x02"
    wait_for(lambda: platform.call("get_event_list")["data"], "the event is raised")
    return Site(mapping, control, dashboard, str(made["uid"]))


def kept(tab: Tab) -> str:
    """All that the tab has in its storage."""
    return str(tab.run("JSON.stringify(Object.entries(sessionStorage)) + JSON.stringify(Object.entries(localStorage))"))


class Work:
    """Something of each kind that one types or composes: begun, and looked at again."""

    def __init__(self, tab: Tab, site: Site) -> None:
        self.tab, self.page, self.site = tab, tab.page, site
        self.dialog = tab.page.get_by_role("dialog")

    def begin(self) -> None:
        """Types all of it, and sends nothing."""
        self.field_of(f"#/terminals/{PUMP}?tab=commands", "Command").fill("Flush")
        self.field("Value").fill("1.50")
        self.opened(f"#/objects/{self.site.object_id}", "Send").get_by_label("New value").fill("42")
        for kind, uid in (("mapping", self.site.mapping), ("control", self.site.control)):
            self.label_of(kind, uid).fill(f"{kind} label")
        self.field_of(f"#/mapping/mapping/{self.site.mapping}?tab=replay", "From").fill("2026-01-01 00:00:00")
        for tab, name in (("", "Nightly"), ("/calculate", "Ratio"), ("/balance", "Heat")):
            self.opened(f"#/statistics{tab}", "New script").get_by_label("Name").fill(name)
        self.opened("#/statistics", "New script").get_by_label("Variable, row 1").fill("FLOW")
        self.event().get_by_label("Comment").fill("the fitter comes at nine")
        self.field_of("#/events/handover", "Notes").fill("Pump 1 leaks")
        user = self.opened("#/access/users?do=add")
        user.get_by_label("User name", exact=True).fill("relief")
        user.get_by_label("Password").fill(SECRET)
        self.opened("#/customers?do=add").get_by_label("Name", exact=True).fill("Acme")
        self.opened("#/terminals?do=import").get_by_role("textbox").fill(f"uid,name,pin\np9,Pump 9,{SECRET}")
        expect(self.opened("#/terminals?do=import").get_by_role("textbox")).to_have_value(re.compile(SECRET))
        assert SECRET not in kept(self.tab)
        self.dialog.get_by_role("textbox").fill("uid,name\np9,Pump 9")
        self.move_widget()

    def look(self) -> None:
        """All of it is there again, and said to be what was typed before."""
        expect(self.field_of(f"#/terminals/{PUMP}?tab=commands", "Command")).to_have_value("Flush")
        expect(self.field("Value")).to_have_value("1.50")
        self.is_back(self.opened(f"#/objects/{self.site.object_id}", "Send"), "New value", "42")
        self.tab.open(f"#/dashboards/{self.site.dashboard}?edit=1")
        expect(self.page.locator(".head .sub")).to_have_text("not saved")
        expect(self.page.get_by_role("textbox", name="Name").first).to_have_value("Hall 2")
        for kind, uid in (("mapping", self.site.mapping), ("control", self.site.control)):
            expect(self.label_of(kind, uid)).to_have_value(f"{kind} label")
        replay = self.field_of(f"#/mapping/mapping/{self.site.mapping}?tab=replay", "From")
        expect(replay).to_have_value("2026-01-01 00:00:00")
        for tab, name in (("/calculate", "Ratio"), ("/balance", "Heat"), ("", "Nightly")):
            self.is_back(self.opened(f"#/statistics{tab}", "New script"), "Name", name)
        expect(self.dialog.get_by_label("Variable, row 1")).to_have_value("FLOW")
        expect(self.event().get_by_label("Comment")).to_have_value("the fitter comes at nine")
        expect(self.field_of("#/events/handover", "Notes")).to_have_value("Pump 1 leaks")
        user = self.opened("#/access/users?do=add")
        self.is_back(user, "User name", "relief")
        expect(user.get_by_label("Password")).to_have_value("")
        self.is_back(self.opened("#/customers?do=add"), "Name", "Acme")
        expect(self.opened("#/terminals?do=import").get_by_role("textbox")).to_have_value("uid,name\np9,Pump 9")

    def field(self, label: str) -> Locator:
        return self.page.locator("main").get_by_role("textbox", name=label)

    def field_of(self, route: str, label: str) -> Locator:
        self.tab.open(route)
        return self.field(label)

    def opened(self, route: str, button: str = "") -> Locator:
        """The dialog that a page opens by itself, or by a button."""
        self.tab.open("#/overview")
        self.tab.settle()
        self.tab.open(route)
        if button:
            self.page.locator("main").get_by_role("button", name=button, exact=True).first.click()
        return self.dialog

    def event(self) -> Locator:
        self.tab.open("#/events")
        self.page.get_by_role("link", name="Flow is low").click()
        return self.dialog

    def label_of(self, kind: str, uid: str) -> Locator:
        self.tab.open(f"#/mapping/{kind}/{uid}")
        return self.page.get_by_label("English label, row 1", exact=True)

    def move_widget(self) -> None:
        self.tab.open(f"#/dashboards/{self.site.dashboard}?edit=1")
        self.page.locator(".editing .widget").first.focus()
        self.page.keyboard.press("ArrowDown")
        self.page.get_by_role("textbox", name="Name").first.fill("Hall 2")

    def is_back(self, dialog: Locator, label: str, value: str) -> None:
        expect(dialog.get_by_label(label, exact=True)).to_have_value(value)
        expect(dialog.get_by_role("status").first).to_contain_text(BACK)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build_console()
    return tmp_path_factory.mktemp("drafts")


def test_whatever_is_typed_outlives_an_upgrade_and_is_nobody_elses(folder: Path, browser: Browser) -> None:
    old = Platform(folder / "data").login()
    site = make_site(old)
    old.call("create_user", username="other", password=PASSWORD, role="admin", authority_id=1, **SIGNED)
    tab = open_tab(browser, old.url)
    tab.expected = NOISE
    tab.open()
    tab.login("admin", PASSWORD)
    work = Work(tab, site)
    asked: list[Dialog] = []
    tab.page.on("dialog", lambda dialog: (asked.append(dialog), dialog.accept()))
    work.begin()
    assert old.stop() == 0
    environment = {**old.environment, "CONSOLE": str(next_console(folder))}
    with UpgradedPlatform(old.data, env=environment, ports=old.ports) as platform:
        platform.login()
        banner = tab.page.locator(".banner", has_text="The platform was upgraded")
        expect(banner).to_contain_text("what you typed stays", timeout=HEALED_MS)
        banner.get_by_role("button", name="Reload").click()
        expect(banner).to_have_count(0)
        assert not asked  # whether to leave: nothing is lost
        assert SECRET not in kept(tab)
        work.look()
        moved = platform.call("get_dashboard_item", uid=site.dashboard)
        tab.open(f"#/dashboards/{site.dashboard}?edit=1")
        tab.page.get_by_role("button", name="Save", exact=True).click()
        expect(tab.page.locator(".head .sub")).to_have_text("")
        saved = platform.call("get_dashboard_item", uid=site.dashboard)
        (before,), (after,) = (each["script"]["Dashboard-1"]["data"] for each in (moved, saved))
        assert (before["xys"]["pos"], after["xys"]["pos"], saved["name"]) == ([0, 0], [0, 1], "Hall 2")
        wait_for(lambda: "Hall 2" not in kept(tab), "what was saved is not kept any more")
        sees_nothing(tab, work)
        assert tab.complaints() == []
        tab.page.context.close()


def sees_nothing(tab: Tab, work: Work) -> None:
    """The session ends, and another user logs in in the same tab."""
    tab.page.context.clear_cookies()
    tab.page.reload()
    tab.login("other", PASSWORD)
    expect(work.field_of("#/events/handover", "Notes")).to_have_value("")
    dialog = work.opened("#/customers?do=add")
    expect(dialog.get_by_label("Name", exact=True)).to_have_value("")
    expect(dialog.get_by_text(BACK)).to_have_count(0)
    assert "leaks" not in kept(tab)
    assert "Acme" not in kept(tab)


def test_a_form_outlives_the_end_of_a_session_and_is_begun_anew_by_a_button(folder: Path, browser: Browser) -> None:
    with Platform(folder / "session").login() as platform:
        tab = open_tab(browser, platform.url)
        tab.expected = NOISE
        tab.open()
        tab.login("admin", PASSWORD)
        page = tab.page
        dialog = page.get_by_role("dialog")
        name = dialog.get_by_label("Name", exact=True)
        tab.open("#/customers?do=add")
        name.fill("Acme")
        page.context.clear_cookies()
        page.reload()
        tab.login("admin", PASSWORD)
        page.get_by_role("button", name="New customer").click()
        expect(name).to_have_value("Acme")
        assert tab.accessibility() == []
        dialog.get_by_role("button", name="Start over").click()
        expect(name).to_have_value("")
        expect(dialog.get_by_text(BACK)).to_have_count(0)
        name.fill("Acme & Sons")
        page.keyboard.press("Escape")
        page.get_by_role("button", name="New customer").click()
        expect(name).to_have_value("Acme & Sons")  # closed by a slip
        dialog.get_by_role("button", name="Cancel").click()
        page.get_by_role("button", name="New customer").click()
        expect(name).to_have_value("")
        name.fill("Acme")
        dialog.get_by_role("button", name="Save").click()
        expect(dialog).to_have_count(0)
        assert "Acme" not in kept(tab)
        assert tab.complaints() == []
        page.context.close()
