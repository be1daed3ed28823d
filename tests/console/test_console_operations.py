"""Operations: who may log in, rules, campaigns, statistics, audit, the broker and the machine; who sees what."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser, expect
from routes import ROUTES

from running import wait_for

BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
"""What the documents ask of whoever makes a record."""


@pytest.fixture
def root(tab: Tab, plant: DemoPlant) -> Tab:
    """The tab, with the super user logged in."""
    tab.login("admin", plant.environment["TERRAZZO_ADMIN__PASSWORD"])
    return tab


def _menu(tab: Tab) -> list[str]:
    return tab.page.get_by_role("navigation", name="Main menu").get_by_role("link").all_inner_texts()


def test_a_user_is_made_changed_and_removed(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/access")
    admin.page.get_by_role("button", name="New user").click()
    dialog = admin.page.get_by_role("dialog", name="New user")
    dialog.get_by_label("User name").fill("night-shift")
    dialog.get_by_label("Password").fill("long enough for it")
    dialog.get_by_label("Role").select_option("operator")
    dialog.get_by_role("button", name="Save").click()
    row = admin.page.get_by_role("row").filter(has_text="night-shift")
    expect(row).to_contain_text("operator")
    row.get_by_role("button", name="Edit").click()
    dialog = admin.page.get_by_role("dialog", name="User night-shift")
    dialog.get_by_label("May log in").uncheck()
    dialog.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("deactivated")
    assert plant.ask("login", username="night-shift", password="long enough for it")["code"] == 10402
    row.get_by_role("button", name="Remove").click()
    admin.page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_what_is_wrong_stands_at_its_field_and_nothing_is_lost(admin: Tab) -> None:
    admin.open("#/access")
    admin.page.get_by_role("button", name="New user").click()
    dialog = admin.page.get_by_role("dialog", name="New user")
    dialog.get_by_label("User name").fill("demo-viewer")
    dialog.get_by_label("Password").fill("long enough for it")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_be_visible()
    expect(dialog.get_by_label("User name")).to_have_value("demo-viewer")


def test_an_api_key_is_shown_once_works_and_ends(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/access/api-keys")
    admin.page.get_by_role("button", name="New API key").click()
    dialog = admin.page.get_by_role("dialog", name="New API key")
    dialog.get_by_label("Name").fill("line 4")
    dialog.get_by_role("button", name="Save").click()
    once = admin.page.get_by_role("dialog", name="API key line 4")
    key = once.locator("pre").inner_text().strip()
    assert key.startswith("tzk_")
    asked = urllib.request.Request(
        f"{plant.url}/apiproxy/api/ping",
        data=b"{}",
        headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=20) as answer:
        assert json.load(answer)["code"] == 200
    once.get_by_role("button", name="I have kept it").click()
    assert key not in admin.page.content()
    admin.page.get_by_role("button", name="End the key line 4").click()
    admin.page.get_by_role("dialog").get_by_role("button", name="End").click()
    expect(admin.page.get_by_text("No API keys")).to_be_visible()


def test_a_claim_key_is_made_and_shown_once(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/access/claim-keys")
    admin.page.get_by_role("button", name="New claim key").click()
    dialog = admin.page.get_by_role("dialog", name="New claim key")
    dialog.get_by_label("Name").fill("delivery 7")
    dialog.get_by_label("Terminals that may use it").fill("40")
    dialog.get_by_role("button", name="Save").click()
    once = admin.page.get_by_role("dialog", name="Claim key delivery 7")
    assert once.locator("pre").inner_text().strip().startswith("ck-")
    once.get_by_role("button", name="I have kept it").click()
    expect(admin.page.get_by_role("row").filter(has_text="delivery 7")).to_contain_text("0 of 40 used")


def test_a_company_is_made_by_super_users_alone(root: Tab, plant: DemoPlant, browser: Browser) -> None:
    root.open("#/access/companies")
    root.page.get_by_role("button", name="New company").click()
    dialog = root.page.get_by_role("dialog", name="New company")
    dialog.get_by_label("Name").fill("Other Works")
    dialog.get_by_role("button", name="Save").click()
    expect(root.page.get_by_role("row").filter(has_text="Other Works")).to_contain_text("open")
    other = open_tab(browser, plant.url)
    other.open()
    other.login("demo-admin", plant.password("demo-admin"))
    other.open("#/access/companies")
    expect(other.page.get_by_role("link", name="Companies")).to_have_count(0)
    assert "Other Works" not in other.page.content()
    assert other.complaints() == []
    other.page.context.close()


def test_a_rule_is_written_started_and_removed(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/rules")
    admin.page.get_by_role("button", name="New rule").click()
    dialog = admin.page.get_by_role("dialog", name="New rule")
    dialog.get_by_label("Name").fill("Gone <b>terminals</b>")
    dialog.get_by_label("Tells of").select_option("offline,back")
    dialog.get_by_label("Channel").select_option("webhook")
    dialog.get_by_label("Address of the webhook").fill("https://hooks.example/x")
    dialog.get_by_label("Secret of the webhook").fill("no word, but long")
    dialog.get_by_role("button", name="Save").click()
    row = admin.page.get_by_role("row").filter(has_text="Gone <b>terminals</b>")
    expect(row).to_contain_text("stopped")
    row.get_by_role("button", name="Start").click()
    expect(row).to_contain_text("running")
    row.get_by_role("button", name="Edit").click()
    dialog = admin.page.get_by_role("dialog", name=re.compile("^Rule Gone"))
    dialog.get_by_label("Minutes away").fill("15")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    rule = plant.call("get_rule_list")["data"][-1]
    assert (rule["minutes"], rule["url"], rule["is_active"]) == (15, "https://hooks.example/x", 1)
    row.get_by_role("button", name="Remove the rule").click()
    admin.page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_have_count(0)


def test_a_campaign_shows_its_waves(admin: Tab, plant: DemoPlant) -> None:
    firmware = {"lua_file": "http://files.example/a.bin", "lua_version": "9"}
    config = plant.call("create_terminal_config", name="waves", **firmware, **BY)
    uids = [f"wave-{number}" for number in range(4)]
    for uid in uids:
        plant.add_terminal(uid, config["uid"])
    admin.open("#/campaigns")
    admin.page.get_by_role("button", name="New campaign").click()
    dialog = admin.page.get_by_role("dialog", name="New campaign")
    dialog.get_by_label("Name").fill("Spring")
    dialog.get_by_label("Configuration whose").select_option(config["uid"])
    dialog.get_by_role("textbox", name="Waves").fill("25, 75")
    dialog.get_by_role("button", name="Save").click()
    admin.page.get_by_role("link", name="Spring").click()
    admin.page.get_by_role("button", name="Start").click()
    admin.page.get_by_role("dialog").get_by_role("button", name="Start").click()
    waves = admin.page.get_by_role("row").filter(has_text=re.compile(r"^Wave \d"))
    expect(waves).to_have_count(2)
    expect(waves.nth(0)).to_contain_text("0 of 1")
    expect(waves.nth(1)).to_contain_text("0 of 3")
    expect(admin.page.get_by_role("row").filter(has_text="wave-3")).to_have_count(1)
    admin.page.get_by_role("button", name="Pause").click()
    expect(admin.page.get_by_role("button", name="Go on")).to_be_visible()
    admin.page.get_by_role("button", name="Abort").click()
    admin.page.get_by_role("dialog").get_by_role("button", name="Abort").click()
    expect(admin.page.locator(".head").get_by_text("aborted")).to_be_visible()


def test_statistics_have_curves_and_can_be_stopped(admin: Tab, plant: DemoPlant) -> None:
    for action in ("get_statistics_script_list", "get_calculate_script_list"):  # made when the week is there
        wait_for(lambda: plant.call(action)["data"], action, timeout_s=100)  # noqa: B023 - called at once
    admin.open("#/statistics")
    admin.page.get_by_role("link", name=re.compile("^Chillers")).click()
    expect(admin.page.locator(".chart canvas").first).to_be_visible()
    admin.page.get_by_label("Period").select_option("2")
    admin.page.wait_for_url(re.compile("type=2"))
    admin.open("#/statistics/calculate")
    row = admin.page.get_by_role("row").filter(has_text="Chillers")
    row.get_by_role("button", name="Stop").click()
    expect(row).to_contain_text("stopped")
    row.get_by_role("button", name="Start").click()
    expect(row).to_contain_text("running")


def test_the_audit_log_says_who_changed_what(admin: Tab, plant: DemoPlant) -> None:
    plant.change_terminal("demo-spare", description="moved to <i>hall 2</i>")
    admin.open("#/audit?uid=demo-spare&entity=terminal")
    admin.page.get_by_role("button", name="demo-spare").first.click()
    dialog = admin.page.get_by_role("dialog", name=re.compile("^Audit entry"))
    expect(dialog.get_by_role("row").filter(has_text="description")).to_contain_text("moved to <i>hall 2</i>")


def test_clients_subscriptions_and_what_is_retained(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/broker")
    expect(admin.page.get_by_role("row").filter(has_text="demo-chiller-1")).to_contain_text("MQTT")
    admin.page.get_by_role("button", name="End the connection of demo-meter-air").click()
    admin.page.get_by_role("dialog").get_by_role("button", name="End").click()
    expect(admin.page.get_by_role("dialog")).to_have_count(0)
    admin.page.get_by_label("Only those that are too slow").check()
    expect(admin.page.get_by_text("Nobody is too slow")).to_be_visible()
    admin.open("#/broker/subscriptions")
    expect(admin.page.get_by_role("row").filter(has_text="p2p/demo-chiller-1")).to_have_count(1)
    admin.open("#/broker/retained?filter=g/+/none")
    expect(admin.page.get_by_text("Nothing is retained")).to_be_visible()


def test_super_users_see_the_machine_and_nobody_else(root: Tab, plant: DemoPlant, browser: Browser) -> None:
    assert "Machine" in _menu(root)
    root.open("#/machine")
    expect(root.page.get_by_role("row").filter(has_text="backup")).to_contain_text("running")
    expect(root.page.get_by_text("% free")).to_be_visible()
    root.open("#/broker/now")
    expect(root.page.locator(".figure").first).to_contain_text(re.compile(r"\d"))
    seen = {}
    for name in ("demo-admin", "demo-operator", "demo-viewer"):
        tab = open_tab(browser, plant.url)
        tab.open()
        tab.login(name, plant.password(name))
        seen[name] = set(_menu(tab))
        tab.open("#/machine")
        expect(tab.page.get_by_text("There is no such page")).to_be_visible()
        assert tab.complaints() == []
        tab.page.context.close()
    assert {name: "Audit" in pages for name, pages in seen.items()} == {
        "demo-admin": True,
        "demo-operator": False,
        "demo-viewer": False,
    }
    assert not any("Machine" in pages for pages in seen.values())


MARK = "zq-only-of-the-second"


@pytest.fixture(scope="module")
def neighbour(plant: DemoPlant) -> tuple[str, str]:
    """A user of a second company with records of each kind, all of which carry ``MARK``: name and password."""
    plant.login("admin", plant.environment["TERRAZZO_ADMIN__PASSWORD"])
    company = plant.call("create_company", name=f"{MARK} company")
    name, password = f"{MARK}-admin", "long enough for it"
    plant.call("create_user", username=name, password=password, role="admin", permission_company_id=company["id"])
    plant.login(name, password)
    config = plant.call("create_terminal_config", name=f"{MARK} configuration", **BY)["uid"]
    plant.add_terminal(f"{MARK}-terminal", config, name=f"{MARK} terminal", description=MARK)
    plant.call("create_api_key", name=f"{MARK} key")
    plant.call("create_claim_key", name=f"{MARK} claim")
    rule = {"kinds": ["event"], "channel": "webhook", "url": f"https://{MARK}.example/", "secret": "no word, but long"}
    plant.call("create_rule", name=f"{MARK} rule", **rule)
    plant.call("create_dashboard", name=f"{MARK} dashboard", category="c", script={})
    plant.login("demo-admin", plant.password("demo-admin"))
    return name, password


def test_two_sessions_at_once_see_no_word_of_each_other(
    plant: DemoPlant, browser: Browser, neighbour: tuple[str, str]
) -> None:
    first, second = open_tab(browser, plant.url), open_tab(browser, plant.url)
    frames: list[str] = []
    second.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(str(frame))))
    for tab, (name, password) in ((first, ("demo-admin", plant.password("demo-admin"))), (second, neighbour)):
        tab.open()
        tab.login(name, password)
    told: dict[str, list[str]] = {}
    for name, route in ROUTES.items():
        for tab, strange in ((first, MARK), (second, "chiller")):
            tab.open(route)
            tab.settle()
            if strange in tab.page.locator("main").inner_text().lower():
                told.setdefault(strange, []).append(name)
    assert MARK not in told
    assert set(told.get("chiller", ())) <= _NAMED_BY_LINK
    for tab, strange in ((first, MARK), (second, "chiller")):
        tab.page.keyboard.press("Control+k")
        tab.page.keyboard.type(strange)
        expect(tab.page.get_by_role("dialog").get_by_text("Nothing found")).to_be_visible()
    second.page.keyboard.press("Escape")
    second.open("#/audit")
    expect(second.page.get_by_role("row").filter(has_text=f"{MARK}-terminal").first).to_be_visible()
    assert frames
    assert [each for each in frames if "demo-" in each and "no record" not in each] == []  # but for its own words back
    for tab in (first, second):
        tab.expected = ["status of 40[0-9]"]
        assert tab.complaints() == []
        tab.page.context.close()


_NAMED_BY_LINK = {"terminal", "messages", "commands", "trace", "connect"}
"""Pages whose link has the uid that the page shows: it is the reader's own word."""
