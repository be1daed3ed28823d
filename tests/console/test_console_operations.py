"""Operations: who may log in, rules, campaigns, statistics, audit, the broker and the machine; who sees what."""

from __future__ import annotations

import json
import re
import urllib.request

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser, expect

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


def test_choices_that_come_later_are_chosen_from(root: Tab, plant: DemoPlant) -> None:
    for route, name in (("#/access?do=add", "Company"), ("#/campaigns?do=add", "Configuration whose")):
        root.open(route)  # as a search opens it: nothing of the page has been read yet
        chosen = root.page.get_by_role("dialog").get_by_label(name)
        expect(chosen).not_to_have_value("")


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
    expect(dialog.get_by_label(re.compile("Minutes away|of the webhook"))).to_have_count(0)  # of a mail about events
    dialog.get_by_label("Tells of").select_option("offline,back")
    dialog.get_by_label("Channel").select_option("webhook")
    expect(dialog.get_by_label(re.compile("^Codes|At least|Recipients"))).to_have_count(0)
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
    admin.page.get_by_role("button", name="Compute again").click()
    dialog = admin.page.get_by_role("dialog", name=re.compile("^Compute Chillers.* again$"))
    end = dialog.get_by_label("until")
    now = end.input_value()
    end.fill("yesterday")
    dialog.get_by_role("button", name="Compute again").click()
    expect(dialog.get_by_role("alert")).to_contain_text("end_time")
    end.fill(now)
    dialog.get_by_role("button", name="Compute again").click()
    expect(admin.page.get_by_text("It is computed again")).to_be_visible()
    expect(dialog).to_have_count(0)
    expect(admin.page.get_by_text("All of it is computed again")).to_be_visible(timeout=60_000)
    admin.open("#/statistics/calculate")
    row = admin.page.get_by_role("row").filter(has_text="Chillers")
    row.get_by_role("button", name="Stop").click()
    expect(row).to_contain_text("stopped")
    row.get_by_role("button", name="Start").click()
    expect(row).to_contain_text("running")


def test_a_script_is_written_and_what_is_wrong_stands_at_its_cell(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/statistics")
    admin.page.get_by_role("button", name="New script").click()
    dialog = admin.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Night")
    dialog.get_by_label("Result, row 1").fill("T_AVG")
    dialog.get_by_label("Variable, row 1").fill("TEMP_SUPPLY")
    dialog.get_by_role("button", name="Add a row").click()
    dialog.get_by_label("Result, row 2").fill("T_MAX")
    dialog.get_by_label("Function, row 2").fill("highest")
    dialog.get_by_label("Variable, row 2").fill("TEMP_SUPPLY")
    dialog.get_by_role("checkbox", name=re.compile("Chiller 1")).check()
    dialog.get_by_role("button", name="Save").click()
    wrong = dialog.get_by_label("Function, row 2")
    expect(wrong).to_have_attribute("aria-invalid", "true")
    expect(dialog.get_by_role("alert")).to_contain_text("expected one of avg")
    wrong.fill("max")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    admin.page.get_by_role("link", name="Night").click()
    admin.page.get_by_role("button", name="Edit").click()
    expect(dialog.get_by_label("Function, row 2")).to_have_value("max")
    dialog.get_by_role("button", name="Remove row 1").click()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    (made,) = (each for each in plant.call("get_statistics_script_list")["data"] if each["name"] == "Night")
    assert (made["script"], len(made["object_list"])) == ([["T_MAX", "max", "TEMP_SUPPLY"]], 1)


def test_calculations_and_balances_are_written_too(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/statistics/calculate")
    admin.page.get_by_role("button", name="New script").click()
    dialog = admin.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Fahrenheit")
    dialog.get_by_label("Result, row 1").fill("T_F")
    dialog.get_by_label("Expression, row 1").fill("T_AVG * (9")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("character")
    dialog.get_by_label("Expression, row 1").fill("T_AVG * 9 / 5 + 32")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    admin.open("#/statistics/balance")
    admin.page.get_by_role("button", name="New script").click()
    dialog.get_by_label("Name").fill("Heat")
    dialog.get_by_label("Target").fill("POWER")
    dialog.get_by_label("Inputs").fill("FLOW, COOLING")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    (made,) = (each for each in plant.call("get_balance_list")["data"] if each["name"] == "Heat")
    assert (made["target_code"], made["input_codes"], made["window"]) == ("POWER", ["FLOW", "COOLING"], 86_400)


def test_a_script_is_removed(admin: Tab, plant: DemoPlant) -> None:
    made = {
        kind: plant.call(f"create_{kind}", name=f"Old {kind}", object_list=[], script=rows, **BY) for kind, rows in _OLD
    }
    for kind, record in made.items():
        base = "#/events/retainers" if kind == "retainer" else f"#/statistics/{kind}"
        admin.open(f"{base}/{record['uid']}")
        admin.page.get_by_role("button", name="Edit").click()
        admin.page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
        asked = admin.page.get_by_role("dialog", name=f"Remove Old {kind}")
        asked.get_by_role("button", name="Remove").click()
        expect(asked).to_have_count(0)
        admin.page.wait_for_url(f"**/{base}")
        expect(admin.page.get_by_role("link", name=f"Old {kind}")).to_have_count(0)
        assert plant.ask(f"get_{kind}_item", uid=record["uid"])["code"] == 10404


_OLD = (
    ("statistics", [["A", "avg", "T"]]),
    ("calculate", [["B", "A * 2"]]),
    ("retainer", [["T", "On", "开", "1", ""]]),
)


def test_a_retainer_is_written_started_and_keeps_its_label_open(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/events/retainers")
    admin.page.get_by_role("button", name="New script").click()
    dialog = admin.page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("Runs <b>now</b>")
    dialog.get_by_label("Variable, row 1").fill("RUNNING")
    dialog.get_by_label("Label (English), row 1").fill("Runs")
    dialog.get_by_role("checkbox", name=re.compile("Chiller 1")).check()
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_label("Opens at, row 1")).to_have_attribute("aria-invalid", "true")
    dialog.get_by_label("Opens at, row 1").fill("1")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    row = admin.page.get_by_role("row").filter(has_text="Runs <b>now</b>")
    row.get_by_role("button", name="Start").click()
    expect(row).to_contain_text("running")
    row.get_by_role("link").click()
    expect(admin.page.get_by_role("link", name=re.compile("Chiller 1"))).to_be_visible()
    expect(admin.page.get_by_role("row").filter(has_text="RUNNING")).to_contain_text("Runs")
    (made,) = (each for each in plant.call("get_retainer_list")["data"] if each["name"] == "Runs <b>now</b>")
    assert (made["script"], made["is_active"]) == ([["RUNNING", "Runs", "", "1", ""]], 1)


def test_a_customer_is_made_has_its_objects_and_is_removed(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/customers")
    admin.page.get_by_role("button", name="New customer").click()
    dialog = admin.page.get_by_role("dialog", name="New customer")
    dialog.get_by_label("Name").fill("Harbour works")
    dialog.get_by_label("E-mail").fill("night@harbour.example")
    dialog.get_by_role("button", name="Save").click()
    expect(admin.page.get_by_role("heading", level=1)).to_have_text("Harbour works")
    expect(admin.page.get_by_text("No object names this customer")).to_be_visible()
    (made,) = (each for each in plant.call("get_customer_list")["data"] if each["name"] == "Harbour works")
    by_mapping = {"mapping_id": plant.call("get_mapping_list")[0]["uid"], "customer_id": made["uid"]}
    known = plant.call("create_object", name="Crane 4", terminal_list=[], **by_mapping, **BY)
    admin.page.reload()
    expect(admin.page.get_by_role("link", name="Crane 4")).to_have_attribute("href", f"#/objects/{known['id']}")
    admin.page.get_by_role("button", name="Edit").click()
    dialog = admin.page.get_by_role("dialog", name="Customer Harbour works")
    expect(dialog.get_by_label("E-mail")).to_have_value("night@harbour.example")
    dialog.get_by_label("Contact").fill("Mr <i>Sand</i>")
    dialog.get_by_role("button", name="Save").click()
    expect(admin.page.get_by_text("Mr <i>Sand</i>")).to_be_visible()
    admin.open("#/customers")
    admin.page.get_by_role("searchbox").fill("Sand")
    expect(admin.page.get_by_role("row")).to_have_count(2)
    admin.page.get_by_role("link", name="Harbour works").click()
    admin.page.get_by_role("button", name="Edit").click()
    dialog.get_by_role("button", name="Remove").click()
    asked = admin.page.get_by_role("dialog", name="Remove Harbour works")
    asked.get_by_role("button", name="Remove").click()
    expect(asked.get_by_role("alert")).to_contain_text("is in use by object")
    plant.call("delete_object", object_id=str(known["id"]))
    asked.get_by_role("button", name="Remove").click()
    admin.page.wait_for_url("**/#/customers")
    assert plant.ask("get_customer_item", uid=made["uid"])["code"] == 10404


def test_what_the_search_finds_is_shown_where_it_leads(admin: Tab, plant: DemoPlant) -> None:
    search = admin.page.get_by_role("dialog", name="Find anything by its name")
    for kind, word in _FOUND.items():
        (hit,) = plant.call("search", text="e", kinds=[kind], limit=1)
        admin.page.keyboard.press("Control+k")
        search.get_by_role("combobox").fill(hit["name"][:64])
        search.get_by_role("option").filter(has_text=re.compile(f"{word}$")).filter(has_text=hit["name"]).first.click()
        admin.settle()
        shown = admin.page.locator("main h1, main td, main .groups a[aria-current]").filter(has_text=hit["name"])
        expect(shown.first, kind).to_be_visible()
        assert (
            kind in ("user", "group", "terminal_config")
            or hit["uid"] in admin.page.url
            or str(hit["id"]) in admin.page.url
        )


_FOUND = {"terminal": "terminal", "object": "object", "customer": "customer", "group": "group", "user": "user"}
_FOUND |= {"terminal_config": "configuration", "mapping": "mapping", "control": "control table", "retainer": "retainer"}
_FOUND |= {"statistics": "statistics", "calculate": "calculation", "dashboard": "dashboard"}
"""Kinds of records that the demo has, and what the console calls them."""


def test_the_audit_log_says_who_changed_what(admin: Tab, plant: DemoPlant) -> None:
    plant.change_terminal("demo-spare", description="moved to <i>hall 2</i>")
    admin.open("#/audit?uid=demo-spare&entity=terminal")
    expect(admin.page.get_by_label("Kind of record")).to_have_value("terminal")
    admin.page.get_by_role("button", name=re.compile("^update: show entry")).first.click()
    dialog = admin.page.get_by_role("dialog", name=re.compile("^Audit entry"))
    expect(dialog.get_by_role("row").filter(has_text="description")).to_contain_text("moved to <i>hall 2</i>")


def test_days_are_typed_in_the_language_of_the_page(admin: Tab) -> None:
    admin.run("localStorage.setItem('terrazzo-language', 'zh')")
    admin.open("?zh#/audit")
    start = admin.page.get_by_label("起始日期")
    for typed, day in (("2026年3月1日", "2026-03-01"), ("2026/3/2", "2026-03-02"), ("3月", "3月")):
        start.fill(typed)
        start.press("Tab")
        expect(start).to_have_value(day)
    assert start.evaluate("(each) => each.validationMessage").startswith("请按年、月、日")
    admin.page.wait_for_url(re.compile("start=2026-03-02"))


def test_clients_subscriptions_and_what_is_retained(admin: Tab, plant: DemoPlant) -> None:
    admin.open("#/broker")
    expect(admin.page.get_by_role("row").filter(has_text="demo-chiller-1")).to_contain_text("MQTT")
    admin.page.get_by_role("button", name="End the connection of demo-meter-air").click()
    admin.page.get_by_role("dialog").get_by_role("button", name="End").click()
    expect(admin.page.get_by_role("dialog")).to_have_count(0)
    one = admin.page.get_by_role("searchbox", name="Client ID")
    one.fill("demo-chiller-2")
    one.press("Enter")
    expect(admin.page.get_by_role("row")).to_have_count(2)
    expect(admin.page.get_by_role("row").nth(1)).to_contain_text("demo-chiller-2")
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
    root.run("localStorage.setItem('terrazzo-language', 'zh')")
    root.page.reload()
    expect(root.page.get_by_role("row").filter(has_text="接收写入")).to_contain_text("运行中")
    assert not re.search("ingest|spool|writer", root.seen())
    root.run("localStorage.setItem('terrazzo-language', 'en')")
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
