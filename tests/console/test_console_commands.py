"""Commands that wait or expired, reached from the overview: recalled, or sent again."""

from __future__ import annotations

import re

from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser, expect


def given(plant: DemoPlant, *values: str) -> None:
    """Commands for a terminal that is away."""
    for value in values:
        plant.call("publish_terminal_command", terminal_id="demo-spare", command="SetPoint", value=value)


def test_what_waits_is_one_step_from_the_overview_and_recalled(admin: Tab, plant: DemoPlant) -> None:
    given(plant, "101", "102", "103")
    page = admin.page
    page.get_by_role("region", name="Open now").get_by_role("link", name="Commands waiting").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Commands")
    one = page.get_by_role("row").filter(has_text="SetPoint = 101")
    one.get_by_role("button", name="Recall").click()
    page.get_by_role("dialog").get_by_role("button", name="Recall").click()
    expect(page.get_by_text("1 command recalled")).to_be_visible()
    expect(one).to_have_count(0)
    for value in ("102", "103"):
        page.get_by_role("row").filter(has_text=f"SetPoint = {value}").get_by_role("checkbox").check()
    page.get_by_role("toolbar").get_by_role("button", name="Recall").click()
    page.get_by_role("dialog").get_by_role("button", name="Recall").click()
    expect(page.get_by_text("2 commands recalled")).to_be_visible()
    expect(page.get_by_role("row").filter(has_text="SetPoint = 10")).to_have_count(0)
    page.get_by_role("navigation", name="Commands").get_by_role("link", name="All").click()
    ended = page.get_by_role("row").filter(has_text="SetPoint = 102")
    expect(ended).to_contain_text(re.compile("failed.*recalled by demo-admin", re.DOTALL))
    said = plant.call("get_audit_list", where_and=[["action", "=", "recall"]])["data"]
    assert len(said) == 3


def test_what_failed_is_sent_again_once(admin: Tab, plant: DemoPlant) -> None:
    given(plant, "201")
    waiting = plant.call("get_command_list", terminal_id="demo-spare", states=["queued"])["data"]
    plant.call("recall_commands", uids=[each["uid"] for each in waiting])
    admin.open("#/commands/expired")
    page = admin.page
    page.get_by_role("row").filter(has_text="SetPoint = 201").get_by_role("button", name="Send").click()
    asked = page.get_by_role("dialog")
    expect(asked).to_contain_text("Send SetPoint = 201 to demo-spare again?")
    asked.get_by_role("button", name="Send").click()
    expect(asked).to_have_count(0)
    page.get_by_role("navigation", name="Commands").get_by_role("link", name="Waiting").click()
    expect(page.get_by_role("row").filter(has_text="SetPoint = 201")).to_have_count(1)
    page.get_by_role("link", name="demo-spare").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("A terminal for you")


def test_why_a_command_failed_is_said_in_chinese(plant: DemoPlant, browser: Browser) -> None:
    given(plant, "301")
    waiting = plant.call("get_command_list", terminal_id="demo-spare", states=["queued"])["data"]
    plant.call("recall_commands", uids=[each["uid"] for each in waiting])
    tab = open_tab(browser, plant.url, locale="zh-CN")
    tab.open("#/commands/expired")
    tab.login("demo-viewer", plant.password("demo-viewer"))
    row = tab.page.get_by_role("row").filter(has_text="SetPoint = 301")
    expect(row).to_contain_text("由 demo-admin 撤回")
    expect(row.get_by_role("button")).to_have_count(0)
    tab.open("#/terminals/demo-spare?tab=commands")
    expect(tab.page.get_by_text("由 demo-admin 撤回").first).to_be_visible()
    assert tab.complaints() == []
    tab.page.context.close()
