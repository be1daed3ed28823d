"""Configurations of terminals, and lists of terminals that an address narrows."""

from __future__ import annotations

import re
import subprocess
from typing import Any

from browser import OFTEN, Tab
from demo_plant import DemoPlant
from playwright.sync_api import expect

from support import require_program

FLOOD = 5
VERSION = '{"lua_version": "9"}'


def publish(plant: DemoPlant, uid: str, pin: str, topic: str, payload: str) -> None:
    """By mosquitto_pub, whatever becomes of it."""
    login = ["-i", uid, "-u", f"u-{uid}", "-P", pin, "-q", "1", "-t", topic, "-m", payload]
    command = [require_program("mosquitto_pub"), "-p", str(plant.mqtt), *login]
    subprocess.run(command, capture_output=True, check=False, timeout=60)


def test_a_flood_leads_to_the_terminals_of_its_site(admin: Tab, plant: DemoPlant) -> None:
    config = plant.add_config("flooded")
    for number in range(FLOOD):
        plant.add_terminal(f"flood-{number}", config)
        publish(plant, f"flood-{number}", "wrong-pin", "g/x/r", "{}")
    page = admin.page
    admin.open("#/overview")
    row = page.locator(".todo li", has_text=re.compile(r"\d+ terminals at 127\.0\.0\.1"))
    expect(row).to_be_visible(timeout=60_000)
    row.get_by_role("link", name="Open").click()
    expect(page.get_by_role("button", name="from 127.0.0.1")).to_be_visible()
    table = page.get_by_role("region", name="Terminals").get_by_role("table")
    expect(table).to_contain_text("flood-0")
    refused = plant.call("get_terminal_list", refused_after="2020-01-01 00:00:00", site="127.0.0.1")
    expect(table).to_have_attribute("aria-rowcount", str(len(refused) + 1))
    assert {f"flood-{number}" for number in range(FLOOD)} <= {each["uid"] for each in refused}
    page.get_by_role("button", name="from 127.0.0.1").click()
    expect(page.get_by_role("button", name="from 127.0.0.1")).to_have_count(0)
    assert "site=" not in page.url


def test_configurations_are_listed_written_compared_and_removed(admin: Tab, plant: DemoPlant) -> None:
    page = admin.page
    admin.open("#/terminals")
    page.get_by_role("link", name="Configurations").click()
    page.get_by_role("button", name="New configuration").click()
    dialog = page.get_by_role("dialog", name="New configuration")
    dialog.get_by_label("Name", exact=True).fill("Roof <b>units</b>")
    script = dialog.get_by_label("What terminals should have (JSON)")
    script.fill('{"interval": 30,}')
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("config_script")
    script.fill('{"interval": 30}')
    dialog.get_by_label("Send it to the terminals").check()
    dialog.get_by_role("button", name="Save").click()
    row = page.locator("tbody tr", has_text="Roof <b>units</b>")
    expect(row).to_contain_text("sent")
    (made,) = plant.call("get_terminal_config_list", where_and=[["name", "=", "Roof <b>units</b>"]])
    assert (made["config_script"], made["deliver"], made["payload"]) == ({"interval": 30}, 1, {})
    for uid in ("roof-1", "roof-2", "roof-3"):
        plant.add_terminal(uid, made["uid"])
    publish(plant, "roof-1", "pin-roof-1", "g/roof-1/p", '{"interval": 60}')
    publish(plant, "roof-2", "pin-roof-2", "g/roof-2/p", '{"interval": 30}')
    page.reload()
    expect(row.get_by_role("link", name="1", exact=True)).to_have_count(2)  # one reports otherwise, one nothing
    row.get_by_role("link", name="Roof <b>units</b>").click()
    card = page.get_by_role("region", name="Wanted and reported")
    expect(card.locator(".figure")).to_have_text(["3", "1", "1", "1"])
    expect(card).to_contain_text("interval: 30 wanted, 60 reported")
    assert admin.accessibility() == []
    card.locator(".figure a").nth(2).click()
    expect(page.get_by_role("link", name="roof-1", exact=True)).to_be_visible()
    expect(page.get_by_role("link", name="roof-2", exact=True)).to_have_count(0)
    page.get_by_role("button", name=re.compile("^Configuration: differs")).click()
    expect(page.get_by_role("link", name="roof-2", exact=True)).to_be_visible()
    admin.open(f"#/terminals?configurations={made['uid']}")
    page.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Configuration Roof <b>units</b>")
    expect(dialog).to_contain_text("3 terminals have this configuration")
    dialog.get_by_label("Send it to the terminals").uncheck()
    dialog.get_by_role("button", name="Save").click()
    expect(card).to_contain_text("It is not sent to the terminals")
    page.get_by_role("button", name="Remove").click()
    asked = page.get_by_role("dialog", name="Remove the configuration Roof <b>units</b>")
    asked.get_by_role("button", name="Remove").click()
    expect(asked.get_by_role("alert")).to_contain_text("terminal")
    asked.get_by_role("button", name="Cancel").click()
    unused = plant.add_config("Unused")
    admin.open(f"#/terminals?configurations={unused}")
    page.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Configurations")
    assert plant.call("get_terminal_config_list", where_and=[["name", "=", "Unused"]]) == []


def test_a_viewer_sees_configurations_and_changes_none(tab: Tab, plant: DemoPlant) -> None:
    tab.login("demo-viewer", plant.password("demo-viewer"))
    tab.open("#/terminals?configurations=1")
    row = tab.page.get_by_role("region", name="Configurations").locator("tbody tr").first
    expect(row).to_be_visible()
    expect(tab.page.get_by_role("button", name="New configuration")).to_have_count(0)
    row.get_by_role("link").first.click()
    expect(tab.page.get_by_role("region", name="Wanted and reported")).to_be_visible()
    expect(tab.page.get_by_role("button", name="Edit")).to_have_count(0)


def test_a_campaign_shows_how_far_each_wave_is_while_it_goes(admin: Tab, plant: DemoPlant) -> None:
    firmware = {"lua_file": "http://files.example/b.bin", "lua_version": "9"}
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    config = plant.call("create_terminal_config", name="rolled out", **firmware, **by)["uid"]
    uids = [f"rolled-{n}" for n in range(4)]
    for uid in uids:
        plant.add_terminal(uid, config)
    made = plant.call("create_campaign", name="Rolled out", config_id=config, unit="LUA", waves=[25, 75])["uid"]
    plant.call("start_campaign", uid=made)
    admin.page.add_init_script(OFTEN)
    admin.page.reload()
    admin.open(f"#/campaigns/{made}")
    waves = admin.page.get_by_role("row").filter(has_text=re.compile(r"^Wave \d"))
    expect(waves.nth(0)).to_contain_text(re.compile(r"now.*0 of 1", re.DOTALL))
    first = next(each["terminal_id"] for each in _of_campaign(plant, made) if each["wave"] == 1)
    publish(plant, first, f"pin-{first}", f"g/{first}/v", VERSION)
    expect(waves.nth(0)).to_contain_text("1 of 1")
    expect(waves.nth(1)).to_contain_text(re.compile(r"now.*0 of 3", re.DOTALL))
    rest = [uid for uid in uids if uid != first]
    publish(plant, rest[0], f"pin-{rest[0]}", f"g/{rest[0]}/v", VERSION)
    expect(waves.nth(1)).to_contain_text("1 of 3")
    for uid in rest[1:]:
        publish(plant, uid, f"pin-{uid}", f"g/{uid}/v", VERSION)
    expect(waves.nth(1)).to_contain_text("3 of 3")
    expect(admin.page.get_by_role("row").filter(has_text="rolled-").filter(has_text="done")).to_have_count(4)
    expect(admin.page.get_by_role("button", name="Abort")).to_have_count(0)
    plant.call("delete_terminals", uids=uids)


def _of_campaign(plant: DemoPlant, uid: str) -> list[dict[str, Any]]:
    return list(plant.call("get_campaign_terminal_list", uid=uid, page_size=100)["data"])
