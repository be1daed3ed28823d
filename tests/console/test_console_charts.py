"""Charts: drawn as often as something is new, and read while they are moved."""

from __future__ import annotations

import json
import math
import re
import subprocess
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

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


def shown_range(admin: Tab) -> tuple[float, float]:
    """From when to when a chart shows, as the link keeps it, in seconds since 1970."""
    query = parse_qs(admin.page.url.partition("?")[2])
    ends = [datetime.fromisoformat(query[name][0].replace("Z", "+00:00")).timestamp() for name in ("from", "to")]
    return ends[0], ends[1]


def place_of_chart(admin: Tab) -> dict[str, float]:
    """Where its curves are, once it has some: what it is drawn on is another one then."""
    expect(admin.page.locator(".legend button").first).to_be_visible()
    admin.settle()
    found: dict[str, float] = wait_for(lambda: admin.page.locator(".chart .u-over").bounding_box(), "the chart")
    return found


def test_a_chart_is_zoomed_by_wheel_and_by_two_fingers_and_a_range_is_chosen(admin: Tab, plant: DemoPlant) -> None:
    own = plant.call("get_object_list", where_and=[["name", "like", "Chiller 1%"]])["data"][0]["id"]
    page = admin.page
    admin.open(f"#/objects/{own}?from=2026-01-01T00:00:00Z&to=2026-01-01T10:00:00Z")
    page.wait_for_selector("table.variables tbody tr")
    area = place_of_chart(admin)
    left, y, hour = area["x"], area["y"] + 60, 3_600
    begin, _ = shown_range(admin)
    page.mouse.move(left + area["width"] / 4, y)
    page.mouse.wheel(0, -100)  # alone it scrolls the page
    page.keyboard.down("Control")
    page.mouse.wheel(0, -100)
    page.keyboard.up("Control")
    wait_for(lambda: page.wait_for_timeout(20) or shown_range(admin)[0] > begin, "the zoomed view")
    from_s, to_s = shown_range(admin)
    assert abs((to_s - from_s) / (10 * hour) - math.exp(-1 / 3)) < 0.02
    assert abs((from_s + (to_s - from_s) / 4) - (begin + 2.5 * hour)) < 120, "what is under the pointer stays"
    page.keyboard.down("Shift")
    page.mouse.move(left + area["width"] * 0.5, y)
    page.mouse.down()
    page.mouse.move(left + area["width"] * 0.75, y, steps=3)
    page.mouse.up()
    page.keyboard.up("Shift")
    wait_for(lambda: page.wait_for_timeout(20) or shown_range(admin)[0] > from_s + 60, "the range that was chosen")
    chosen = shown_range(admin)
    assert abs(chosen[0] - (from_s + (to_s - from_s) / 2)) < 120
    assert abs(chosen[1] - (from_s + (to_s - from_s) * 0.75)) < 120
    touches = page.context.new_cdp_session(page)

    def touch(kind: str, *shares: float) -> None:
        points = [{"x": left + area["width"] * share, "y": y, "id": n} for n, share in enumerate(shares)]
        touches.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    touch("touchStart", 0.4, 0.6)
    for share in (0.65, 0.7, 0.8):
        touch("touchMove", 0.4, share)
    touch("touchEnd")
    wait_for(lambda: page.wait_for_timeout(20) or shown_range(admin) != chosen, "the pinched view")
    from_s, to_s = shown_range(admin)
    assert abs((to_s - from_s) / (chosen[1] - chosen[0]) - 0.5) < 0.05, "fingers twice as far apart"


def _seconds(text: str) -> float:
    return datetime.strptime(text[:19], "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()


def _alone(plant: DemoPlant) -> tuple[dict[str, Any], float, float]:
    """A label that was closed, with no other of its object near it; from when to when it was open."""
    ended = [each for each in plant.call("get_retainer_label_list", page_size=1_000)["data"] if each["close_at"]]
    times = [(each["object_id"], _seconds(each["opened_at"]), _seconds(each["close_at"])) for each in ended]
    for label, (own, opened, closed) in zip(ended, times, strict=True):
        near = 2 * (closed - opened)
        others = [each for each in times if each[0] == own and each[1] < closed + near and each[2] > opened - near]
        if closed - opened > 120 and len(others) == 1:
            return label, opened, closed
    raise AssertionError("the demo's week has none")


def test_a_label_is_a_mark_on_the_time_axis_while_it_was_open(admin: Tab, plant: DemoPlant) -> None:
    label, opened, closed = _alone(plant)
    ends = (opened - (closed - opened), closed + (closed - opened))
    span = [f"{datetime.fromtimestamp(at, UTC):%Y-%m-%dT%H:%M:%SZ}" for at in ends]
    admin.open(f"#/objects/{label['object_id']}?from={span[0]}&to={span[1]}")
    expect(admin.page.get_by_role("region", name="Events and labels")).to_contain_text(label["label_en"])
    area, legend = place_of_chart(admin), admin.page.locator(".legend")
    for share, times in ((0.1, 0), (0.5, 1), (0.9, 0)):
        admin.page.mouse.move(area["x"] + area["width"] * share, area["y"] + 60)
        expect(legend.get_by_text(label["label_en"])).to_have_count(times)


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
