"""Charts: drawn as often as something is new, and read while they are moved."""

from __future__ import annotations

import json
import re
import subprocess
from datetime import UTC, datetime

from browser import Tab
from demo_plant import DemoPlant
from playwright.sync_api import Route, expect

from running import wait_for
from support import require_program

BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}

_COUNT = """
globalThis.draws = 0;
const clear = CanvasRenderingContext2D.prototype.clearRect;
CanvasRenderingContext2D.prototype.clearRect = function (...given) {
  globalThis.draws += 1;
  clear.apply(this, given);
};
const take = Response.prototype.arrayBuffer;
Response.prototype.arrayBuffer = async function () {
  const found = await take.call(this);
  globalThis.draws = 0;
  globalThis.came = true;
  return found;
};
"""
"""How often a chart is drawn since its curves came."""

_COUNT_STROKES = """
globalThis.most = 0;
let strokes = 0;
const clearAll = CanvasRenderingContext2D.prototype.clearRect;
CanvasRenderingContext2D.prototype.clearRect = function (...given) {
  strokes = 0;
  clearAll.apply(this, given);
};
const strokeOne = CanvasRenderingContext2D.prototype.stroke;
CanvasRenderingContext2D.prototype.stroke = function (...given) {
  if (given[0] instanceof Path2D) strokes += 1;  // a curve; axes have none
  globalThis.most = Math.max(globalThis.most, strokes);
  strokeOne.apply(this, given);
};
"""
"""How many strokes the curves of one drawing were at most."""

_LINES = """
(() => {
  const canvas = document.querySelector(".chart canvas");
  const { data, width, height } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  const found = [0, 0];
  for (let y = 0; y < height; y += 1) {
    const is = (x) => {
      const at = 4 * (y * width + x);
      const off = Math.abs(data[at] - 11) + Math.abs(data[at + 1] - 110) + Math.abs(data[at + 2] - 105); // --s1
      return data[at + 3] > 60 && off < 60;
    };
    let [drawn, runs] = [0, 0];
    for (let x = 1; x < width; x += 1) {
      drawn += is(x);
      runs += is(x) && !is(x - 1);
    }
    if (drawn > found[0]) found.splice(0, 2, drawn, runs);
  }
  return found;
})()
"""
"""Of the row of pixels that has most of the first curve: how many of these, and in how many pieces."""

_WATCH_LEGEND = """
globalThis.said = 0;
const legend = document.querySelector(".legend");
const all = { subtree: true, childList: true, characterData: true };
new MutationObserver(() => { globalThis.said += 1; }).observe(legend, all);
"""


def test_what_came_is_drawn_once(admin: Tab, plant: DemoPlant) -> None:
    mapping = plant.call("get_mapping_list", page_size=1)[0]["uid"]
    made = plant.call("create_object", name="Says nothing", mapping_id=mapping, terminal_list=[], **BY)
    code = plant.call("get_object_variable_list", object_id=str(made["id"]))[0]["code"]
    page, held = admin.page, list[Route]()
    page.add_init_script(_COUNT)
    page.reload()
    admin.open(f"#/objects/{made['id']}?key={code}&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z")
    page.wait_for_selector(".legend button")
    page.wait_for_load_state("networkidle")
    admin.run("globalThis.came = false, globalThis.draws = 0")
    page.route("**/get_mosaic_chart", lambda route: held.append(route))
    for _each in range(4):
        page.get_by_role("button", name="Zoom out").click()
    wait_for(lambda: page.wait_for_timeout(20) or held, "curves that are asked for")
    wait_for(lambda: admin.run("globalThis.draws"), "the view that was chosen")
    for each in held[:-1]:
        each.abort()
    held[-1].continue_()
    wait_for(lambda: admin.run("globalThis.came && globalThis.draws"), "the curves that came")
    page.wait_for_load_state("networkidle")
    assert admin.run("globalThis.draws") == 1
    plant.call("delete_object", uid=made["uid"])


def test_what_is_dragged_stays_under_the_pointer_and_is_not_said_again(admin: Tab, plant: DemoPlant) -> None:
    own = plant.call("get_object_list", where_and=[["name", "like", "Chiller 1%"]])["data"][0]["id"]
    page = admin.page
    admin.open(f"#/objects/{own}")
    page.wait_for_selector("table.variables tbody tr")
    page.get_by_role("button", name="Zoom out").click()  # a view that does not follow what comes
    expect(page.locator(".legend button").first).to_contain_text(re.compile(r"\d"))
    area = page.locator(".chart .u-over").bounding_box()
    assert area is not None
    x, y = area["x"] + area["width"] / 2, area["y"] + 60
    page.mouse.move(x, y)
    time = page.locator(".legend-time")
    expect(time).not_to_contain_text("–")
    pointed = time.inner_text()
    admin.run(_WATCH_LEGEND)
    page.mouse.down()
    page.mouse.move(x + 40, y, steps=20)
    assert admin.run("globalThis.said") == 0
    page.mouse.up()
    expect(time).to_have_text(pointed)


def test_what_a_variable_was_before_the_range_is_drawn_in_dots(admin: Tab, plant: DemoPlant) -> None:
    plant.add_terminal("seldom", plant.add_config("seldom"))
    script = [["MODE", "Mode", "模式", "STA", "$AdapterID-1.Mode", ""]]
    mapping = plant.call("create_mapping", name="Of seldom", script=script, **BY)["uid"]
    made = plant.call("create_object", name="Seldom", mapping_id=mapping, terminal_list=["seldom"], **BY)
    login = ["-i", "seldom", "-u", "u-seldom", "-P", "pin-seldom", "-q", "1", "-t", "g/seldom/r", "-s"]
    report = json.dumps({"Time": int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()), "Mode": 3})
    subprocess.run(
        [require_program("mosquitto_pub"), "-p", str(plant.mqtt), *login], input=report.encode(), timeout=60, check=True
    )
    asked = {"object_id": str(made["id"]), "keys": ["MODE"]}
    wait_for(lambda: plant.call("get_last_mosaic", **asked)["data"], "the value")
    assert plant.call("get_last_mosaic", **asked)["data"][0]["time"].startswith("2026-01-01")
    admin.open(f"#/objects/{made['id']}?key=MODE&from=2026-01-05T00:00:00Z&to=2026-01-06T00:00:00Z")
    legend = admin.page.locator(".legend")
    expect(legend.get_by_role("button").first).to_contain_text("3")
    expect(legend).to_contain_text("the value from before")
    drawn, _runs = wait_for(lambda: (found := admin.run(_LINES))[1] > 100 and found, "dots from edge to edge")
    assert drawn < 900, "a line would be from edge to edge"
    admin.open(f"#/objects/{made['id']}?key=MODE&from=2025-12-31T12:00:00Z&to=2026-01-01T12:00:00Z")
    expect(legend.get_by_role("button").first).to_contain_text("3")
    expect(legend).not_to_contain_text("the value from before")


def test_a_chart_of_a_dashboard_stays_where_it_was_dragged(admin: Tab, plant: DemoPlant) -> None:
    own = plant.call("get_object_list", where_and=[["name", "like", "Chiller 1%"]])["data"][0]["id"]
    values = [{"objectId": str(own), "code": "TEMP_SUPPLY"}]
    place = {"pos": [0, 0], "len": [24, 8]}
    line = {"type": "lin", "name": "Dragged", "xys": place, "attribute": {"values": values, "hours": 1}}
    script = {"Dashboard-1": {"name": "One", "col": 24, "row": 12, "data": [line], "dataType": "mosaic"}}
    uid = plant.call("create_dashboard", name="Dragged", category="pro", script=script)["uid"]
    page, asked = admin.page, list[str]()
    page.on("request", lambda sent: asked.append(json.dumps(sent.post_data_json)) if "_chart" in sent.url else None)
    admin.open(f"#/dashboards/{uid}")
    expect(page.locator(".legend button b").first).to_contain_text(re.compile(r"\d"))
    page.wait_for_load_state("networkidle")
    first = len(asked)
    assert first
    area = page.locator(".chart .u-over").bounding_box()
    assert area is not None
    follow = page.locator(".legend").get_by_role("button", name="Live")
    expect(follow).to_have_count(0)
    for _each in range(3):  # further than what was loaded around the last hour
        page.mouse.move(area["x"] + 20, area["y"] + 60)
        page.mouse.down()
        page.mouse.move(area["x"] + area["width"] - 20, area["y"] + 60, steps=5)
        page.mouse.up()
        expect(follow).to_be_visible()
    wait_for(lambda: page.wait_for_timeout(20) or len(asked) > first, "what was before")
    page.locator(".legend button").first.click()
    expect(page.locator(".legend button").first).to_have_attribute("aria-pressed", "false")
    expect(follow).to_be_visible()
    follow.click()
    expect(follow).to_have_count(0)
    expect(page.locator(".legend button").first).to_have_attribute("aria-pressed", "false")
    plant.call("delete_dashboard", uid=uid)


def test_a_view_that_is_chosen_before_the_variables_are_there_has_their_curves(admin: Tab, plant: DemoPlant) -> None:
    own = plant.call("get_object_list", where_and=[["name", "like", "Chiller 1%"]])["data"][0]["id"]
    page, held = admin.page, list[Route]()
    page.route("**/get_object_variable_list", lambda route: held.append(route))
    admin.open(f"#/objects/{own}")
    page.get_by_role("button", name="Zoom out").click()
    expect(page.locator(".chart-box")).to_contain_text("Choose a variable")
    wait_for(lambda: page.wait_for_timeout(20) or held, "the question for the variables")
    page.route("**/get_object_variable_list", lambda route: route.continue_())
    for each in held[:]:
        each.continue_()
    expect(page.locator(".legend button").first).to_contain_text(re.compile(r"\d"))
    assert "from=" in page.url, "the view that was chosen"
    while page.locator(".legend button").count():  # whoever takes them all away has none
        shown = page.locator(".legend button").count()
        page.locator("table.variables").get_by_role("checkbox", checked=True).first.click()
        expect(page.locator(".legend button")).to_have_count(shown - 1)
    page.get_by_role("button", name="Zoom out").click()
    page.reload()
    page.wait_for_selector("table.variables tbody tr")
    expect(page.locator(".legend button")).to_have_count(0)


def test_curves_that_look_alike_are_one_stroke(admin: Tab, plant: DemoPlant) -> None:
    own = plant.call("get_object_list", where_and=[["name", "like", "Chiller 1%"]])["data"][0]["id"]
    every = plant.call("get_object_variable_list", object_id=str(own))
    codes = [each["code"] for each in every if isinstance(each["value"], int | float)][:8]
    assert len(codes) == 8
    admin.page.add_init_script(_COUNT_STROKES)
    admin.page.reload()
    admin.open(f"#/objects/{own}?{'&'.join(f'key={each}' for each in codes)}")
    expect(admin.page.locator(".legend button")).to_have_count(8)
    expect(admin.page.locator(".legend button b").last).to_contain_text(re.compile(r"\d"))
    wait_for(lambda: admin.run("globalThis.most"), "lines")
    assert admin.run("globalThis.most") <= 6, "there are six colours"
