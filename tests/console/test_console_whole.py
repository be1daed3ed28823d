"""Nothing that matters is missing: all that happened to an object, and what a phone shows."""

from __future__ import annotations

import re
from typing import Any

from browser import Tab
from demo_plant import DemoPlant
from playwright.sync_api import expect


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
    expect(page.get_by_role("heading", level=1)).to_contain_text("demo-chiller-1")
    page.go_back()
    page.get_by_role("button", name="Records and files").click()
    page.get_by_role("link", name="equipment repaired: New seal").click()
    expect(page.get_by_role("dialog").get_by_label("What was done")).to_have_value("New seal")
