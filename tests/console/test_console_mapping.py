"""The editors of mapping and control tables, and an object's logbook: what is typed, checked, saved and made again."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser, Locator, Page, Route, expect

from running import wait_for

HOSTILE = "<img src=x onerror=alert(1)>\u202e😀" + "x" * 20


def chiller(plant: DemoPlant) -> dict[str, Any]:
    rows = plant.call("get_object_list", where_and=[["name", "like", "Chiller 1%"]])["data"]
    return dict(rows[0])


def own_mapping(plant: DemoPlant, name: str, rows: list[Any]) -> tuple[str, int]:
    """A mapping with an object of its own, on the first chiller's terminal; the mapping's uid and the object's id."""
    like = plant.call("get_object_item", uid=str(chiller(plant)["id"]))
    author = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    mapping = plant.call("create_mapping", name=name, script=rows, **author)
    found = plant.call("get_mapping_item", uid=mapping["uid"])
    fields = {"control_id": like["control_id"], "customer_id": like["customer_id"], "mapping_id": found["id"]}
    made = plant.call("create_object", name=f"Of {name}", terminal_list=["demo-chiller-1"], **fields)
    return str(mapping["uid"]), int(made["id"])


def point(plant: DemoPlant) -> str:
    """A point with a number that the first chiller reports."""
    data = plant.call("get_last_grid", terminal_id="demo-chiller-1")["data"]
    payloads = [each["payload"] for each in data if isinstance(each["payload"], dict)]
    return next(name for payload in payloads for name, value in payload.items() if type(value) in (int, float))


def is_of_today(plant: DemoPlant) -> bool:
    """Whether the first chiller's reports of the last hour are there."""
    data = plant.call("get_last_grid", terminal_id="demo-chiller-1")["data"]
    newest = max(str(each["time"]) for each in data)
    return newest > time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 3_600))


def script(plant: DemoPlant, uid: str) -> Any:
    return plant.call("get_mapping_item", uid=uid)["script"]


def cell(page: Page, column: str, row: int) -> Locator:
    return page.get_by_label(f"{column}, row {row}", exact=True)


def save(page: Page) -> None:
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Save", exact=True).click()


def test_a_row_is_typed_by_keys_with_points_of_real_messages_and_saved(admin: Tab, plant: DemoPlant) -> None:
    name = point(plant)
    uid, object_id = own_mapping(plant, "Typed", [["A", "First", "甲", "STA", f"$AdapterID-1.{name}", ""]])
    page = admin.page
    admin.open("#/mapping")
    page.locator(f"a[href='#/mapping/mapping/{uid}']").click()
    expect(page.locator(".through")).to_contain_text('"A":')
    cell(page, "Code", 1).focus()
    page.keyboard.press("Control+Enter")
    expect(cell(page, "Code", 2)).to_be_focused()
    page.keyboard.type("B")
    cell(page, "Point or source", 2).click()
    page.keyboard.type(name[:4])
    expect(page.locator(".completions li").first).to_contain_text("$AdapterID-1.")
    page.locator(".completions li").filter(has_text=f"$AdapterID-1.{name}").first.click()
    expect(cell(page, "Point or source", 2)).to_have_value(f"$AdapterID-1.{name}")
    cell(page, "Expression or argument", 2).click()
    page.keyboard.type("x * 0 + 42")
    expect(page.locator("td.now").nth(1)).to_have_text(re.compile(r"^42(\.0)?$"))
    expect(page.get_by_role("region", name="What changes")).to_contain_text("added")
    page.get_by_role("button", name="Save", exact=True).click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Of Typed")
    expect(dialog.locator("tr", has_text="B")).to_contain_text("42")
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator(".toasts")).to_contain_text("Saved")
    expect(page.locator(".banner").get_by_role("link", name="Replay")).to_have_attribute(
        "href", re.compile("tab=replay")
    )
    added = ["B", "", "", "STA", "Changed", f"$AdapterID-1.{name}", "", "x * 0 + 42"]
    assert script(plant, uid)[1] == added
    assert script(plant, uid)[0] == ["A", "First", "甲", "STA", f"$AdapterID-1.{name}", ""]
    plant.call("delete_object", uid=str(object_id))


def test_what_is_wrong_stands_at_its_cell_and_nothing_is_saved(admin: Tab, plant: DemoPlant) -> None:
    rows = [["A", "", "", "STA", "$AdapterID-1.t", ""], ["B", "", "", "FUNC", "", "A * 2"]]
    uid, _ = own_mapping(plant, "Wrong", rows)
    page = admin.page
    admin.open(f"#/mapping/mapping/{uid}")
    cell(page, "Expression or argument", 1).fill("x +")
    cell(page, "Point or source", 1).fill("nothing")
    cell(page, "Expression or argument", 2).fill("A *")
    expect(page.locator(".wrong-line")).to_have_count(2)
    expect(page.locator(".wrong-line").nth(1)).to_contain_text("Row 2, Expression or argument:")
    expect(cell(page, "Expression or argument", 2)).to_have_attribute("aria-invalid", "true")
    save(page)
    expect(page.locator(".toasts")).to_contain_text("Not accepted")
    admin.expected.append("40[01]")
    assert script(plant, uid) == rows
    page.locator(".toast button").first.click()
    cell(page, "Code", 1).focus()
    for _each in range(3):
        page.keyboard.press("Control+z")
    expect(page.locator(".wrong-line")).to_have_count(0)
    expect(cell(page, "Expression or argument", 2)).to_have_value("A * 2")
    page.keyboard.press("Control+y")
    expect(page.get_by_role("button", name="Undo")).to_be_enabled()


def test_what_is_typed_survives_a_reload_and_another_editor_is_told(admin: Tab, plant: DemoPlant) -> None:
    admin.expected = ["status of 500"]  # of what was not saved
    rows = [["A", "", "", "STA", "$AdapterID-1.t", ""]]
    uid, _ = own_mapping(plant, "Kept", rows)
    page = admin.page
    admin.open(f"#/mapping/mapping/{uid}")
    cell(page, "English label", 1).fill("Typed and not saved")
    page.reload()
    expect(cell(page, "English label", 1)).to_have_value("Typed and not saved")
    fields = plant.call("get_mapping_item", uid=uid)
    theirs = [["A", "Theirs", "", "STA", "$AdapterID-1.t", ""]]
    author = {name: fields[name] for name in ("created_by", "last_modified_by", "is_available")}
    plant.call("update_mapping", uid=uid, name="Kept", script=theirs, **author)
    save(page)
    expect(page.get_by_role("alert")).to_contain_text("Somebody else has changed this table")
    assert script(plant, uid) == theirs
    page.get_by_role("button", name="Show theirs").click()
    expect(cell(page, "English label", 1)).to_have_value("Theirs")
    expect(page.get_by_role("alert")).to_have_count(0)
    cell(page, "English label", 1).fill("Mine")
    save(page)
    expect(page.locator(".toasts")).to_contain_text("Saved")
    assert script(plant, uid)[0][1] == "Mine"


def test_files_go_out_and_come_in(admin: Tab, plant: DemoPlant, tmp_path: Path) -> None:
    rows = [
        ["A", "First, of two", "甲", "STA", "$AdapterID-1.t", "x"],
        ["S", "", "", "STT", "Changed", "600", "", {"fn": "avg", "of": "A"}],
    ]
    uid, _ = own_mapping(plant, "Files", rows)
    page = admin.page
    admin.open(f"#/mapping/mapping/{uid}")
    taken = {}
    for kind in ("CSV", "JSON"):
        with page.expect_download() as download:
            page.get_by_role("button", name=kind, exact=True).click()
        taken[kind] = Path(download.value.path()).read_text(encoding="utf-8-sig")
    assert json.loads(taken["JSON"]) == rows
    file = tmp_path / "rows.csv"
    file.write_text(taken["CSV"].replace("First, of two", "From a file"), encoding="utf-8")
    page.locator("input[type=file]").set_input_files(file)
    expect(cell(page, "English label", 1)).to_have_value("From a file")
    save(page)
    expect(page.locator(".toasts")).to_contain_text("Saved")
    assert script(plant, uid) == [["A", "From a file", *rows[0][2:]], rows[1]]
    file.write_text("a,b,c\n", encoding="utf-8")
    page.locator("input[type=file]").set_input_files(file)
    expect(page.get_by_role("alert")).to_contain_text("Row 1 does not have as many cells")


def test_units_and_names_of_states_are_edited_by_code(admin: Tab, plant: DemoPlant) -> None:
    uid, _ = own_mapping(plant, "Units", [["A", "First", "", "STA", "$AdapterID-1.t", ""]])
    page = admin.page
    admin.open(f"#/mapping/mapping/{uid}?tab=variables")
    page.get_by_label("A: Unit").fill("°C")
    page.get_by_label("A: Decimals").fill("2")
    states = page.get_by_label("A: Names of states")
    states.fill("0=Off|关; 1")
    expect(page.get_by_role("alert")).to_contain_text("Expected value=English|Chinese")
    states.fill("0=Off|关; 1=On|开")
    expect(page.get_by_role("alert")).to_have_count(0)
    save(page)
    expect(page.locator(".toasts")).to_contain_text("Saved")
    (said,) = plant.call("get_variable_definition_list", mapping_id=uid)
    assert (said["unit"], said["decimals"]) == ("°C", 2)
    assert said["states"]["1"] == {"label_en": "On", "label_cn": "开"}


def test_the_past_is_made_again_and_the_page_may_be_left(admin: Tab, plant: DemoPlant) -> None:
    name = point(plant)
    wait_for(lambda: is_of_today(plant), "reports of now, after those of the demo's week", timeout_s=100)
    uid, object_id = own_mapping(plant, "Again", [["A", "", "", "STA", "Cycled", f"$AdapterID-1.{name}", "", ""]])
    page = admin.page
    admin.open(f"#/mapping/mapping/{uid}?tab=replay")
    expect(page.get_by_label("Of Again")).to_be_checked()
    page.get_by_role("button", name="Replay", exact=True).click()
    expect(page.locator(".toasts")).to_contain_text("1 replay begins")
    admin.open("#/overview")
    page.wait_for_selector("h1")
    admin.open(f"#/mapping/mapping/{uid}?tab=replay")
    row = page.get_by_role("row", name=re.compile("Of Again"))
    expect(row).to_contain_text("done", timeout=60_000)
    assert plant.call("get_replay_list", object_id=object_id)["data"][0]["mosaic_after"] > 0


def test_a_control_table_is_edited_the_same_way(admin: Tab, plant: DemoPlant) -> None:
    author = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    row = ["SET", "Setpoint", "设定", "OBJ", "$AdapterID-1.sp", ""]
    uid = plant.call("create_control", name="Own control", script=[row], **author)["uid"]
    page = admin.page
    admin.open(f"#/mapping/control/{uid}")
    cell(page, "Default value", 1).fill("7")
    cell(page, "Control point", 1).fill("odd")
    save(page)
    expect(page.locator(".wrong-line")).to_contain_text("Row 1, Control point:")
    admin.expected.append("40[01]")
    cell(page, "Control point", 1).fill("$AdapterID-1.sp")
    save(page)
    expect(page.locator(".toasts")).to_contain_text("Saved")
    assert plant.call("get_control_item", uid=uid)["script"] == [[*row[:5], "7"]]


def test_a_table_is_removed_when_no_object_names_it(admin: Tab, plant: DemoPlant) -> None:
    uid, object_id = own_mapping(plant, "Old <b>table</b>", [["A", "", "", "STA", "$AdapterID-1.t", ""]])
    admin.open("#/mapping")
    admin.page.get_by_role("searchbox").fill("Old <b")
    admin.page.get_by_role("button", name="Remove Old <b>table</b>").click()
    asked = admin.page.get_by_role("dialog", name="Remove Old <b>table</b>")
    asked.get_by_role("button", name="Remove").click()
    expect(asked.get_by_role("alert")).to_contain_text("is in use by object")
    plant.call("delete_object", object_id=str(object_id))
    asked.get_by_role("button", name="Remove").click()
    expect(admin.page.get_by_text("Nothing found")).to_be_visible()
    assert plant.ask("get_mapping_item", uid=uid)["code"] == 10404


def test_a_control_table_asks_for_messages_once(admin: Tab, plant: DemoPlant) -> None:
    asked: list[str] = []
    admin.page.on("request", lambda request: asked.append(request.url) if "check_mapping" in request.url else None)
    admin.open(f"#/mapping/control/{chiller(plant)['control_id']}")
    admin.settle()
    expect(cell(admin.page, "Control point", 1)).to_be_visible()
    admin.run("new Promise((done) => setTimeout(done, 2500))")  # by the clock: six times as long as typing has to rest
    assert len(asked) == 1


def test_a_viewer_looks_and_changes_nothing(tab: Tab, plant: DemoPlant) -> None:
    tab.login("demo-viewer", plant.password("demo-viewer"))
    tab.open("#/mapping")
    expect(tab.page.get_by_role("button", name="New mapping")).to_have_count(0)
    tab.page.locator("tbody a").first.click()
    expect(cell(tab.page, "Code", 1)).to_be_disabled()
    expect(tab.page.get_by_role("button", name="Save")).to_have_count(0)
    expect(tab.page.locator("main")).to_contain_text("needs the role admin")


def test_the_logbook_goes_on_is_filtered_and_paged(admin: Tab, plant: DemoPlant) -> None:
    object_id = chiller(plant)["id"]
    page = admin.page
    admin.open(f"#/objects/{object_id}?tab=log")
    entries = page.locator(".log li")
    expect(entries.first).to_be_visible()
    plant.call("publish_object_command", object_id=object_id, command="Setpoint", value="6.5")
    plant.call("update_object", uid=str(object_id), description="Seen in the logbook")
    page.get_by_role("button", name="Changes").click()
    expect(entries.first).to_contain_text("description")
    page.get_by_role("button", name="Commands").click()
    expect(page).to_have_url(re.compile("kind=commands"))
    expect(entries.first).to_contain_text("Setpoint = 6.5")
    page.get_by_role("button", name="All", exact=True).click()
    before = entries.count()
    earlier = page.get_by_role("button", name="Earlier")
    if earlier.count():
        earlier.click()
        expect(entries).not_to_have_count(before)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_are_text_on_a_phone_too(plant: DemoPlant, browser: Browser, scheme: str) -> None:
    rows = [
        ["A", HOSTILE, HOSTILE, "STA", "$AdapterID-1.t", ""],
        ["B", HOSTILE * 5, "", "EVNT", "$AdapterID-1.t", "x > 1"],
    ]
    uid, object_id = own_mapping(plant, f"{HOSTILE}{scheme}"[:64], rows)
    tab = open_tab(browser, plant.url, color_scheme=scheme, viewport={"width": 360, "height": 1600})
    tab.open()
    tab.login("demo-admin", plant.password("demo-admin"))
    found = []
    routes = {
        "#/mapping": "tbody a",
        f"#/mapping/mapping/{uid}": ".through li, .empty",
        f"#/mapping/mapping/{uid}?tab=variables": "table.cells",
        f"#/mapping/mapping/{uid}?tab=replay": ".choose",
        "#/mapping/control/1": "table.cells",
        f"#/objects/{object_id}?tab=log": ".log li, .empty",
    }
    for route, selector in routes.items():
        tab.open(route)
        tab.page.wait_for_selector(selector)
        found += [f"{route}: {each}" for each in tab.accessibility()]
        assert tab.page.locator("main img").count() == 0
        assert tab.run("document.documentElement.scrollWidth") <= 360, route
    assert found == []
    assert tab.complaints() == []
    tab.page.context.close()


def test_a_preview_waits_where_the_company_has_its_share_of_them(admin: Tab, plant: DemoPlant) -> None:
    mapping, _ = own_mapping(plant, "Waiting", [["A", "First", "", "STA", f"$AdapterID-1.{point(plant)}", ""]])
    busy = {"code": 500, "msg": "failure", "info": "mapping trials: 4 of your company wait already", "result": {}}
    left = [busy, busy]

    def refuse(route: Route) -> None:
        if left:
            route.fulfill(status=429, headers={"Retry-After": "1"}, json=left.pop())
        else:
            route.continue_()

    admin.expected = [r"^error: Failed to load resource.*429"]
    admin.page.route("**/apiproxy/api/check_mapping", refuse)
    admin.open(f"#/mapping/mapping/{mapping}")
    expect(admin.page.locator(".through li").first).to_be_visible()
    expect(admin.page.locator(".problem")).to_have_count(0)
    assert left == []
