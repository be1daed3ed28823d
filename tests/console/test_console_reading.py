"""What is long, under way or far down is read without searching: messages, labels, periods that are computed again."""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

import pytest
from browser import Tab
from demo_plant import DemoPlant
from playwright.sync_api import expect

from running import wait_for
from support import require_program

BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
ROWS = 40


def publish(plant: DemoPlant, uid: str, payload: Any) -> None:
    """A report of a terminal that ``add_terminal`` made."""
    login = ["-i", uid, "-u", f"u-{uid}", "-P", f"pin-{uid}"[:16], "-q", "1", "-t", f"g/{uid}/r", "-s"]
    command = [require_program("mosquitto_pub"), "-p", str(plant.mqtt), *login]
    subprocess.run(command, input=json.dumps(payload).encode(), capture_output=True, timeout=60, check=True)


def object_of(plant: DemoPlant, uid: str, rows: list[list[str]], config: str = "") -> tuple[str, str]:
    """A terminal with an object of its own; the object's id and the mapping's."""
    plant.add_terminal(uid, config or plant.call("get_terminal_config_list")[0]["uid"])
    mapping = plant.call("create_mapping", name=f"Of {uid}", script=rows, **BY)
    like = plant.call("get_object_list", page_size=1)["data"][0]
    used = {name: like[name] for name in ("control_id", "customer_id")} | {"mapping_id": mapping["uid"]}
    made = plant.call("create_object", name=f"Fed by {uid}", terminal_list=[uid], **used, **BY)
    return str(made["id"]), str(mapping["id"])


def test_a_long_message_is_folded_and_its_types_are_told_apart(admin: Tab, plant: DemoPlant) -> None:
    object_of(plant, "long-1", [["A", "", "", "STA", "$AdapterID-1.P0", ""]])
    points = {f"P{number}": number for number in range(ROWS)} | {"Text": "<b>on</b>", "Is": True}
    publish(plant, "long-1", points)
    admin.open("#/terminals/long-1?tab=messages")
    shown = admin.page.locator(".messages .json").first
    expect(shown.locator("pre")).to_contain_text('"P0": 0,')
    assert shown.locator("pre").inner_text().count("\n") < 14
    button = shown.get_by_role("button", name=f"All {ROWS + 4} lines")
    expect(button).to_have_attribute("aria-expanded", "false")
    button.click()
    assert json.loads(shown.locator("pre").inner_text()) == points
    colours = {
        kind: shown.locator(f".json-{kind}").first.evaluate("(each) => getComputedStyle(each).color")
        for kind in ("name", "number", "text", "word")
    }
    assert len(set(colours.values())) == 4
    assert admin.accessibility() == []
    shown.get_by_role("button", name="Fewer lines").click()
    assert shown.locator("pre").inner_text().count("\n") < 14


def test_what_a_preview_cannot_read_is_said_in_chinese(tab: Tab, plant: DemoPlant) -> None:
    form = {"format": "array", "names": ["A", "B"]}
    config = plant.call("create_terminal_config", name="Arrays", payload=form, **BY)["uid"]
    _, mapping = object_of(plant, "array-1", [["A", "", "", "STA", "$AdapterID-1.A", ""]], config)
    publish(plant, "array-1", [1, 2])
    wait_for(lambda: plant.call("get_last_grid", terminal_id="array-1")["data"], "the report", timeout_s=60)
    longer = {"format": "array", "names": ["A", "B", "C"]}
    plant.call("update_terminal_config", uid=config, name="Arrays", payload=longer, **BY)
    tab.run("localStorage.setItem('terrazzo-language', 'zh')")
    tab.page.reload()
    tab.login("demo-admin", plant.password("demo-admin"))
    tab.open(f"#/mapping/mapping/{mapping}")
    problem = tab.page.locator(".through .is-bad").first
    expect(problem).to_contain_text("不是点的对象")
    assert not re.search("payload|object", problem.inner_text())


@pytest.fixture
def labels(plant: DemoPlant) -> list[dict[str, Any]]:
    """Open labels, more than a list shows at once; the newest last."""
    rows = [[f"V{n}", f"Value {n}", f"值{n}", "STA", "$AdapterID-1.T", ""] for n in range(ROWS)]
    own, _ = object_of(plant, "labels-1", rows)
    kept = [[f"V{n}", f"Label {n}", f"标签{n}", "1", "0"] for n in range(ROWS)]
    made = plant.call("create_retainer", name="Many", object_list=[own], script=kept, **BY)
    plant.call("start_retainer", uid=made["uid"])
    publish(plant, "labels-1", {"T": 1})

    def opened() -> list[dict[str, Any]]:
        asked = {"where_and": [["object_id", "=", own]], "order_by": ["opened_at", "asc"], "page_size": 100}
        return list(plant.call("get_open_retainer_list", **asked)["data"])

    return wait_for(lambda: (found := opened()) and len(found) == ROWS and found, "the labels", timeout_s=60)


def test_a_link_to_a_label_leads_to_its_row(admin: Tab, plant: DemoPlant, labels: list[dict[str, Any]]) -> None:
    todo = admin.page.locator(".todo li").filter(has=admin.page.get_by_text("label", exact=True)).first
    name = todo.get_by_role("link").first.inner_text()
    todo.get_by_role("link", name="Open").click()
    row = admin.page.locator("tr[aria-current]")
    expect(row).to_contain_text(name)
    expect(row).to_be_in_viewport()
    last = labels[-1]
    admin.page.set_viewport_size({"width": 1000, "height": 600})
    admin.open(f"#/events/labels?label={last['id']}")
    expect(row).to_contain_text(last["label_en"])
    expect(row).to_be_in_viewport()
    assert admin.run("document.querySelector('.window').scrollTop") > 0
    plant.call("close_retainer", object_id=last["object_id"], code=last["code"], template_id=last["template_id"])
    admin.page.reload()
    expect(admin.page.get_by_text("The label that the link leads to was closed at")).to_be_visible()
    expect(row).to_have_count(0)


def test_what_is_computed_again_is_followed_wherever_one_was_meanwhile(admin: Tab, plant: DemoPlant) -> None:
    script = plant.call("get_statistics_script_list")["data"][0]
    plant.call("stop_statistics", uid=script["uid"])  # so that it is under way for as long as this looks
    page = admin.page
    admin.open(f"#/statistics/statistics/{script['uid']}")
    page.get_by_role("button", name="Compute again").click()
    page.get_by_role("dialog").get_by_role("button", name="Compute again").click()
    under_way = page.get_by_role("status").filter(has_text="Computing again")
    expect(under_way).to_contain_text(f"{len(script['object_list'])} objects left")
    expect(under_way).to_contain_text("It waits until the script is started.")
    expect(under_way.get_by_role("progressbar", name="Computed again")).to_be_visible()
    admin.open("#/overview")
    admin.settle()
    admin.open(f"#/statistics/statistics/{script['uid']}")
    expect(under_way).to_be_visible()
    plant.call("start_statistics", uid=script["uid"])
    expect(page.get_by_text("All of it is computed again")).to_be_visible(timeout=60_000)
    expect(under_way).to_have_count(0)
