"""Objects and dashboards: what they say, commands, curves, widgets, and the editor."""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser, Page, Route, expect

from running import wait_for

HOSTILE = "<img src=x onerror=alert(1)>\u202e😀" + "x" * 20
TYPES = ("crd", "vlu", "lin", "gag", "pie", "rad", "bar", "dzc", "aqi", "mxa", "scd", "ddc")


def object_id(plant: DemoPlant, name: str) -> str:
    rows = plant.call("get_object_list", where_and=[["name", "like", f"{name}%"]])["data"]
    return str(rows[0]["id"])


def open_object(tab: Tab, plant: DemoPlant, name: str = "Chiller 1", query: str = "") -> Page:
    tab.open(f"#/objects/{object_id(plant, name)}{query}")
    tab.page.wait_for_selector(".chart canvas")
    tab.page.wait_for_selector("table.variables tbody tr")
    return tab.page


def test_an_object_is_found_and_says_what_it_is_now(admin: Tab) -> None:
    admin.open("#/objects")
    admin.page.get_by_placeholder("Search by name").fill("chiller 1")
    expect(admin.page.locator("tbody tr")).to_have_count(1)
    admin.page.locator("tbody a").click()
    row = admin.page.locator("tr", has_text="TEMP_SUPPLY")
    expect(row.locator("td").nth(2)).to_have_text(re.compile(r"^\s*\d+\.\d+"))
    expect(row.locator("time")).to_have_text(re.compile(r"^\d+ s$"), timeout=60_000)
    expect(admin.page.get_by_role("heading", level=1)).to_contain_text("Chiller 1")


def test_groups_lead_to_their_objects(admin: Tab) -> None:
    admin.open("#/objects")
    admin.page.get_by_role("navigation", name="Groups").get_by_role("link", name=re.compile("Bottling hall")).click()
    expect(admin.page.locator("tbody tr")).to_have_count(1)
    expect(admin.page.locator("tbody")).to_contain_text("Bottling line 1")


def test_a_link_keeps_the_whole_view_of_a_chart(admin: Tab, plant: DemoPlant) -> None:
    page = open_object(admin, plant)
    page.get_by_label("Draw Return temperature").uncheck()
    page.get_by_label("Draw Water flow").check()
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function("location.hash.includes('from=')")
    page.get_by_role("button", name="Last week").click()
    page.get_by_role("button", name="Table").click()
    rows = page.locator(".chart-values tbody tr")
    expect(rows.first).to_be_visible()
    legend = page.locator(".legend").inner_text().splitlines()
    page.reload()
    expect(rows.first).to_be_visible()
    assert [line for line in page.locator(".legend").inner_text().splitlines() if "–" in line] == [
        line for line in legend if "–" in line
    ]
    expect(page.get_by_label("Draw Water flow")).to_be_checked()
    expect(page.get_by_role("button", name="Last week", exact=True)).to_have_attribute("aria-pressed", "true")


_DRAWN = """
(() => {
  const canvas = document.querySelector(".chart canvas");
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const [r, g, b] = [11, 110, 105]; // --s1
  let most = 0;
  for (let y = 0; y < height; y += 1) {
    let count = 0;
    for (let x = 0; x < width; x += 1) {
      const at = 4 * (y * width + x);
      const off = Math.abs(data[at] - r) + Math.abs(data[at + 1] - g) + Math.abs(data[at + 2] - b);
      if (data[at + 3] > 60 && off < 40) count += 1;
    }
    most = Math.max(most, count);
  }
  return most;
})()
"""
"""How many pixels of the first curve's colour stand in the row that has most."""


def test_a_week_before_is_said_drawn_and_taken_away_beside_what_is_now(admin: Tab, plant: DemoPlant) -> None:
    page = open_object(admin, plant)
    page.get_by_role("button", name="Last week").click()
    expect(page.locator(".legend button").first).to_contain_text(re.compile(r"°C last week [\d.]+ °C"))
    page.get_by_role("button", name="Table").click()
    expect(page.locator(".chart-values th").last).to_contain_text("a week before")
    with page.expect_download() as values:
        page.get_by_role("button", name="CSV").click()
    head, *rows = csv.reader(Path(values.value.path()).read_text(encoding="utf-8-sig").splitlines())
    assert head[-1] == f"{head[-1 - (len(head) - 2) // 2]}, a week before"
    assert [column for column in range(len(head)) if not any(row[column] for row in rows)] == [], head


def test_the_pointer_names_what_happened(admin: Tab, plant: DemoPlant) -> None:
    own = object_id(plant, "Bottling line 1")
    event = plant.call("get_event_list", where_and=[["object_id", "=", own]], page_size=1)["data"][0]
    at, around = datetime.strptime(event["created"], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC), timedelta(minutes=30)
    span = {"from": f"{at - around:%Y-%m-%dT%H:%M:%SZ}", "to": f"{at + around:%Y-%m-%dT%H:%M:%SZ}"}
    page = open_object(admin, plant, "Bottling line 1", f"?{urlencode(span)}")
    expect(page.get_by_role("region", name="Events and labels")).to_contain_text(event["label_en"])
    expect(page.locator(".legend")).not_to_contain_text(event["label_en"])
    area = page.locator(".chart .u-over").bounding_box()
    assert area is not None
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + 60)
    expect(page.locator(".legend")).to_contain_text(event["label_en"])


def test_a_link_keeps_the_place_and_scale_of_the_map(admin: Tab) -> None:
    page = admin.page
    admin.open("#/objects?view=map")
    scale = page.locator(".map-scale")
    first = scale.inner_text()
    page.get_by_role("button", name="Closer").click()
    page.get_by_role("button", name="Closer").click()
    page.wait_for_url(re.compile("at="))
    closer = scale.inner_text()
    assert closer != first
    page.reload()
    expect(scale).to_have_text(closer)
    page.locator(".map-tools").get_by_role("button", name="All").click()
    expect(scale).to_have_text(first)
    page.wait_for_url(re.compile(r"view=map$"))


def test_a_value_that_did_not_change_in_the_time_that_is_shown_is_drawn(admin: Tab, plant: DemoPlant) -> None:
    (chiller,) = plant.call("get_object_list", where_and=[["name", "like", "Chiller 2%"]])["data"]
    admin.open(f"#/objects/{chiller['id']}?key=SETPOINT&span=3600000")
    setpoint = admin.page.locator(".legend button").first
    expect(setpoint).to_contain_text(re.compile(r"\d"))
    assert "Supply setpoint" in setpoint.inner_text()
    wait_for(lambda: admin.run(_DRAWN) > 500, "a line from edge to edge")


def test_a_chart_is_moved_by_keys_and_loads_what_it_then_needs(admin: Tab, plant: DemoPlant) -> None:
    page = open_object(admin, plant)
    chart = page.get_by_role("group", name=re.compile("Chiller 1"))
    chart.focus()
    for _each in range(4):
        page.keyboard.press("+")
    with page.expect_response(re.compile("get_mosaic_chart")) as answer:
        page.keyboard.press("+")
    asked_for = answer.value.request.post_data_json
    assert asked_for is not None
    assert asked_for["points"] >= 1000
    before = page.evaluate("new URLSearchParams(location.hash.split('?')[1]).get('from')")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("from => new URLSearchParams(location.hash.split('?')[1]).get('from') < from", arg=before)


def test_what_is_shown_is_taken_away_as_a_file_and_a_picture(admin: Tab, plant: DemoPlant) -> None:
    page = open_object(admin, plant)
    expect(page.locator(".legend button").nth(1)).to_contain_text(re.compile(r"\d"))
    with page.expect_download() as values:
        page.get_by_role("button", name="CSV").click()
    lines = Path(values.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert lines[0].startswith("time,offset,")
    assert len(lines) > 10
    with page.expect_download() as picture:
        page.get_by_role("button", name="PNG").click()
    assert Path(picture.value.path()).read_bytes().startswith(b"\x89PNG")
    with page.expect_download() as table:
        page.get_by_role("button", name="Parquet").click()
    assert Path(table.value.path()).read_bytes()[:4] == b"PAR1"


def test_a_command_is_checked_sent_once_and_followed_to_the_answer(admin: Tab, plant: DemoPlant) -> None:
    page = open_object(admin, plant)
    card = page.get_by_role("region", name="Commands")
    card.locator("li", has_text="Supply setpoint").first.get_by_role("button", name="Send").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("New value").fill("6.75")
    dialog.get_by_role("button", name="Check").dblclick()  # of which the second click sends nothing yet
    expect(dialog).to_contain_text("= 6.75?")
    expect(dialog).to_contain_text("Present value")
    expect(dialog).to_contain_text("It expires if the terminal has not acknowledged it within 24 h")
    dialog.get_by_role("button", name="Send now").dblclick()
    expect(dialog.get_by_role("status")).to_contain_text("answered", timeout=30_000)
    sent = plant.call("get_command_list", terminal_id="demo-chiller-1")["data"]
    assert [each["value"] for each in sent].count("6.75") == 1


def test_a_viewer_is_told_why_there_is_nothing_to_send_and_edits_no_dashboard(tab: Tab, plant: DemoPlant) -> None:
    tab.login("demo-viewer", plant.password("demo-viewer"))
    page = open_object(tab, plant)
    expect(page.get_by_role("region", name="Commands")).to_contain_text("Needs the role operator")
    expect(page.get_by_role("button", name="Send")).to_have_count(0)
    tab.open("#/dashboards")
    page.locator("tbody a").first.click()
    page.wait_for_selector(".widget")
    expect(page.get_by_role("link", name="Edit")).to_have_count(0)


def dashboard(plant: DemoPlant, name: str, widgets: list[Any], **page: Any) -> str:
    first = {"name": "One", "col": 24, "row": 12, "data": widgets, "dataType": "mosaic", **page}
    made = plant.call(
        "create_dashboard", name=name, category="pro", script={"Dashboard-1": first, "vendor": {"keep": 1}}
    )
    return str(made["uid"])


def widget(number: int, kind: str, values: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    place = {"pos": [number % 4 * 6, number // 4 * 4], "len": [6, 4]}
    return {"type": kind, "name": f"{kind} {number}", "xys": place, "attribute": {"values": values}, **more}


def test_each_type_of_widget_shows_its_values(admin: Tab, plant: DemoPlant) -> None:
    own = object_id(plant, "Chiller 1")
    values = [{"objectId": own, "code": code} for code in ("TEMP_SUPPLY", "TEMP_RETURN", "STATE")]
    uid = dashboard(plant, "All types", [widget(number, kind, values) for number, kind in enumerate(TYPES)])
    admin.open(f"#/dashboards/{uid}")
    for number, kind in enumerate(TYPES):
        shown = admin.page.get_by_role("group", name=f"{kind} {number}").first
        expect(shown).to_contain_text(re.compile(r"\d\.\d"))


def test_one_dashboard_serves_many_objects_and_follows_no_foreign_address(admin: Tab, plant: DemoPlant) -> None:
    first, second = object_id(plant, "Chiller 1"), object_id(plant, "Chiller 2")
    socket = {"url": "wss://elsewhere.example/live", "projectId": "1", "objectId": first}
    uid = dashboard(plant, "Of any chiller", [widget(0, "crd", [{"objectId": first, "code": "COP"}])], webSocket=socket)
    sockets: list[str] = []
    admin.page.on("websocket", lambda opened: sockets.append(opened.url))
    admin.open(f"#/dashboards/{uid}")
    link = admin.page.locator(".widget a")
    expect(link).to_have_attribute("href", re.compile(f"objects/{first}\\b"))
    admin.open(f"#/dashboards/{uid}?object={second}")
    expect(link).to_have_attribute("href", re.compile(f"objects/{second}\\b"))
    assert not any("elsewhere" in url for url in sockets)


def test_all_charts_of_a_page_have_one_cursor(admin: Tab, plant: DemoPlant) -> None:
    dashboard = plant.call("get_dashboard_list")["data"][0]
    admin.open(f"#/dashboards/{dashboard['uid']}")
    admin.settle()
    charts = admin.page.locator(".chart")
    expect(charts.locator("canvas")).not_to_have_count(1)
    first = charts.first.bounding_box()
    assert first is not None
    expect(charts.locator(".chart-cursor:not([hidden])")).to_have_count(0)
    admin.page.mouse.move(first["x"] + first["width"] * 0.7, first["y"] + first["height"] / 2)
    expect(charts.locator(".chart-cursor:not([hidden])")).to_have_count(charts.count())
    admin.page.mouse.move(1, 1)
    expect(charts.locator(".chart-cursor:not([hidden])")).to_have_count(0)


def test_an_editor_moves_sizes_undoes_and_saves_and_keeps_what_it_does_not_know(admin: Tab, plant: DemoPlant) -> None:
    own = object_id(plant, "Chiller 1")
    odd = widget(0, "gag", [{"objectId": own, "code": "COP"}], blink={"deep": [1]})
    uid = dashboard(plant, "Edited", [odd, widget(1, "hologram", [])], future="kept")
    before = plant.call("get_dashboard_item", uid=uid)["script"]
    page = admin.page
    admin.open(f"#/dashboards/{uid}?edit=1")
    first = page.locator(".editing .widget").first
    first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Shift+ArrowDown")
    page.keyboard.press("ArrowRight")  # another widget is there
    expect(page.locator(".canvas [role=status]")).to_contain_text("another widget")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Control+z")
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toasts")).to_contain_text("Saved")
    after = plant.call("get_dashboard_item", uid=uid)["script"]
    before["Dashboard-1"]["data"][0]["xys"] = {"pos": [0, 1], "len": [6, 5]}
    assert after == before


def test_a_widget_is_dragged_and_a_new_one_gets_a_variable(admin: Tab, plant: DemoPlant) -> None:
    uid = dashboard(plant, "Dragged", [widget(0, "vlu", [])])
    page = admin.page
    admin.open(f"#/dashboards/{uid}?edit=1")
    box = page.locator(".editing .widget").first.bounding_box()
    grid = page.locator(".editing").bounding_box()
    assert box is not None
    assert grid is not None
    page.mouse.move(box["x"] + 40, box["y"] + 40)
    page.mouse.down()
    page.mouse.move(box["x"] + 40 + grid["width"] / 2, box["y"] + 42, steps=5)
    page.mouse.up()
    page.get_by_role("button", name="Add widget").click()
    name = page.locator(".widget-form").get_by_label("Name")
    before = name.input_value()
    name.press_sequentially("of the hall")
    page.get_by_role("button", name="Undo").click()  # all of it: a step is a field, not a letter
    expect(name).to_have_value(before)
    choices = page.locator(".widget-form select")
    choices.nth(1).select_option(object_id(plant, "Chiller 1"))
    choices.nth(2).select_option("COP")
    page.get_by_role("button", name="Add variable").click()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toasts")).to_contain_text("Saved")
    data = plant.call("get_dashboard_item", uid=uid)["script"]["Dashboard-1"]["data"]
    assert data[0]["xys"]["pos"] == [12, 0]
    assert data[1]["attribute"]["values"] == [{"objectId": object_id(plant, "Chiller 1"), "code": "COP"}]


def test_a_widget_is_sized_by_its_corner_and_undone(admin: Tab, plant: DemoPlant) -> None:
    uid = dashboard(plant, "Sized", [widget(0, "vlu", [])])
    page = admin.page
    admin.open(f"#/dashboards/{uid}?edit=1")
    own, save = page.locator(".editing .widget").first, page.get_by_role("button", name="Save")
    box, grid = own.bounding_box(), page.locator(".editing").bounding_box()
    assert box is not None
    assert grid is not None
    expect(own).to_contain_text("6 by 4")
    page.mouse.move(box["x"] + box["width"] - 3, box["y"] + box["height"] - 3)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 3 + grid["width"] / 4, box["y"] + box["height"] - 3, steps=5)
    page.mouse.up()
    expect(own).to_contain_text("12 by 4")
    expect(save).to_be_enabled()
    page.get_by_role("button", name="Undo").click()
    expect(own).to_contain_text("6 by 4")
    expect(save).to_be_disabled()
    page.get_by_role("button", name="Redo").click()
    save.click()
    expect(page.locator(".toasts")).to_contain_text("Saved")
    place = plant.call("get_dashboard_item", uid=uid)["script"]["Dashboard-1"]["data"][0]["xys"]
    assert place == {"pos": [0, 0], "len": [12, 4]}
    plant.call("delete_dashboard", uid=uid)


def test_pages_are_named_sized_and_removed_and_a_dashboard_too(admin: Tab, plant: DemoPlant) -> None:
    own = object_id(plant, "Chiller 1")
    uid = dashboard(plant, "Pages", [widget(0, "lin", [{"objectId": own, "code": "COP"}])], vendor="kept")
    page = admin.page
    admin.open(f"#/dashboards/{uid}?edit=1")
    form = page.locator(".widget-form")
    form.get_by_label("Name", exact=True).fill("North <b>hall</b>")
    form.get_by_label("Columns").fill("4")
    form.get_by_label("Columns").blur()
    expect(form).to_contain_text("1 widget lies outside")
    form.get_by_label("Columns").fill("12")
    form.get_by_label("Columns").blur()
    form.get_by_label("The page's own object").select_option(own)
    page.get_by_role("button", name="Add page").click()
    form.get_by_role("button", name="Remove the page").click()
    page.locator(".editing .widget").first.click()
    expect(form).to_contain_text("Chiller 1")
    form.get_by_label("Hours back").fill("48")
    form.get_by_label("Hours back").blur()
    page.get_by_role("button", name="Save").click()
    expect(page.locator(".toasts")).to_contain_text("Saved")
    script = plant.call("get_dashboard_item", uid=uid)["script"]
    first = script["Dashboard-1"]
    assert script.keys() == {"Dashboard-1", "vendor"}
    assert (first["name"], first["col"], first["webSocket"]["objectId"]) == ("North <b>hall</b>", 12, own)
    assert (first["vendor"], first["data"][0]["attribute"]["hours"]) == ("kept", 48)
    admin.open("#/dashboards")
    page.get_by_role("searchbox").fill("Pages")
    page.get_by_role("button", name="Remove Pages").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove", exact=True).click()
    expect(page.get_by_text("Nothing found")).to_be_visible()
    assert plant.ask("get_dashboard_item", uid=uid)["code"] == 10404


def test_two_editors_at_once_are_told(admin: Tab, plant: DemoPlant) -> None:
    admin.expected = ["status of 500"]  # of what was not saved
    uid = dashboard(plant, "Two editors", [widget(0, "vlu", [])])
    page = admin.page
    admin.open(f"#/dashboards/{uid}?edit=1")
    page.locator(".editing .widget").first.focus()
    page.keyboard.press("ArrowDown")
    theirs = plant.call("get_dashboard_item", uid=uid)["script"]
    theirs["Dashboard-1"]["name"] = "Theirs"
    plant.call("update_dashboard", uid=uid, script=theirs)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("Somebody else has changed this dashboard")
    assert plant.call("get_dashboard_item", uid=uid)["script"] == theirs
    page.get_by_role("button", name="Show theirs").click()
    expect(page.locator(".tools")).to_contain_text("Theirs")
    expect(page.get_by_role("alert")).to_have_count(0)


def test_of_two_who_save_at_the_same_moment_the_later_one_is_told(admin: Tab, plant: DemoPlant) -> None:
    uid = dashboard(plant, "Both", [widget(0, "vlu", [])])
    page = admin.page
    held: list[Route] = []

    def hold(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    page.route("**/apiproxy/api/update_dashboard", hold)
    admin.expected = ["status of 500"]
    admin.open(f"#/dashboards/{uid}?edit=1")
    name = page.get_by_role("textbox", name="Name").first
    name.fill("Mine")
    save = page.get_by_role("button", name="Save", exact=True)
    with page.expect_request("**/apiproxy/api/update_dashboard"):
        save.click()
    plant.call("update_dashboard", uid=uid, name="Theirs")  # while mine is under way
    save.click()  # again, as it takes long: it is sent once
    held[0].continue_()
    expect(page.get_by_role("alert")).to_contain_text("Somebody else has changed this dashboard")
    expect(page.get_by_role("alert")).to_contain_text("Nothing was saved")
    assert plant.call("get_dashboard_item", uid=uid)["name"] == "Theirs"
    expect(name).to_have_value("Mine")
    page.get_by_role("button", name="Save mine over it").click()
    expect(page.locator(".head .sub")).to_have_text("")
    expect(page.get_by_role("alert")).to_have_count(0)
    assert plant.call("get_dashboard_item", uid=uid)["name"] == "Mine"
    name.fill("Mine, again")  # over what was saved here there is nobody's
    page.keyboard.press("Control+s")
    expect(page.locator(".head .sub")).to_have_text("")
    assert plant.call("get_dashboard_item", uid=uid)["name"] == "Mine, again"


def hostile_object(plant: DemoPlant, scheme: str) -> int:
    like = plant.call("get_object_item", uid=object_id(plant, "Chiller 1"))
    fields = {name: like[name] for name in ("mapping_id", "control_id", "customer_id")}
    made = plant.call("create_object", name=f"{HOSTILE}{scheme}", description=HOSTILE, terminal_list=[], **fields)
    return int(made["id"])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_hostile_names_are_text_and_nothing_is_hard_to_reach(plant: DemoPlant, browser: Browser, scheme: str) -> None:
    own = hostile_object(plant, scheme)
    hostile = {**widget(0, "crd", [{"objectId": str(own), "code": HOSTILE}]), "name": HOSTILE * 20}
    uid = dashboard(plant, f"{HOSTILE}{scheme}", [hostile, widget(1, HOSTILE, [])])
    tab = open_tab(browser, plant.url, color_scheme=scheme)
    tab.open()
    tab.login("demo-admin", plant.password("demo-admin"))
    routes = {
        "#/objects": "td a",
        f"#/objects/{own}": "table.variables tbody tr",
        f"#/objects/{object_id(plant, 'Chiller 1')}": "table.variables tbody tr",
        "#/dashboards": "td a",
        f"#/dashboards/{uid}": ".widget",
        f"#/dashboards/{uid}?edit=1": ".editing .widget",
    }
    found = []
    for route, selector in routes.items():
        tab.open(route)
        tab.page.wait_for_selector(selector)
        found += [f"{route}: {each}" for each in tab.accessibility()]
        assert tab.page.locator("main img").count() == 0
    assert found == []
    assert tab.complaints() == []
    tab.page.context.close()
