"""A dashboard on a wall: a link shows it without a login, live, and nothing else; and objects on a map."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from pictures import png
from playwright.sync_api import Browser, expect

from running import wait_for


@pytest.fixture
def address(admin: Tab, plant: DemoPlant) -> str:
    """A new link of the demo's dashboard, made in the console."""
    dashboard = next(each for each in plant.call("get_dashboard_list")["data"] if "Energy centre" in each["name"])
    admin.open(f"#/dashboards/{dashboard['uid']}")
    admin.page.get_by_role("button", name="Link for a wall").click()
    dialog = admin.page.get_by_role("dialog")
    dialog.get_by_role("button", name="Make").click()
    found = dialog.locator("pre").inner_text()
    assert found.startswith(f"{admin.base}/#/wall?key=tzw_")
    return found


@pytest.fixture
def wall(address: str, browser: Browser, plant: DemoPlant) -> Iterator[Tab]:
    """A browser that has nothing but the link."""
    tab = open_tab(browser, plant.url)
    tab.page.goto(address)
    yield tab
    complaints = tab.complaints()
    tab.page.context.close()
    assert complaints == []


def test_a_wall_shows_its_dashboard_live_and_asks_for_nothing_else(wall: Tab, plant: DemoPlant) -> None:
    expect(wall.page.get_by_role("heading", level=1)).to_contain_text("Energy centre")
    energy = wall.page.get_by_role("group", name="Energy 总电量")
    expect(energy).to_contain_text("kWh")
    before = energy.inner_text()
    expect(energy).not_to_have_text(before, timeout=60_000)  # it counts on
    expect(wall.page.locator("nav")).to_have_count(0)
    expect(wall.page.locator("main a")).to_have_count(0)  # it shows nothing else, so that nothing leads there
    chart = "performance.getEntriesByType('resource').some((each) => each.name.endsWith('/get_wall_chart'))"
    wait_for(lambda: wall.run(chart), "curves", timeout_s=60)
    actions = {url.rpartition("/apiproxy/api/")[2] for url in wall.asked if "/apiproxy/" in url}
    assert actions == {"get_wall", "get_wall_values", "get_wall_chart"}, actions
    assert wall.run("performance.getEntriesByType('resource').filter((e) => e.name.includes('tzw_')).length") == 0
    assert wall.accessibility() == []


def test_a_wall_outlives_a_lost_connection(wall: Tab) -> None:
    wall.expected = ["ERR_INTERNET_DISCONNECTED"]
    expect(wall.page.get_by_role("group").first).to_be_visible()
    wall.page.context.set_offline(True)
    told = wall.page.locator("header").get_by_role("alert")
    expect(told).to_contain_text("what is shown is old")
    wall.page.context.set_offline(False)
    expect(told).to_have_count(0)


def test_a_wall_is_left_and_come_back_to_by_its_address(wall: Tab, address: str) -> None:
    heading = wall.page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("Energy centre")
    wall.run("void (location.hash = '#/overview')")
    expect(wall.page.get_by_label("User name")).to_be_visible()
    wall.run(f"void (location.hash = '{address.partition('#')[2]}')")
    expect(heading).to_contain_text("Energy centre")
    expect(wall.page.get_by_label("User name")).to_have_count(0)


def test_a_wall_turns_its_pages_and_fills_the_screen(wall: Tab, address: str) -> None:
    heading = wall.page.get_by_role("heading", level=1)
    expect(heading).to_contain_text("Energy centre 动力站")
    wall.page.get_by_role("button", name="Full screen").click()
    wait_for(lambda: wall.run("document.fullscreenElement?.classList.contains('wall')"), "the full screen")
    wall.run("void document.exitFullscreen()")
    rotating = wall.page.get_by_role("button", name="Rotate pages")
    for pressed in ("true", "false"):  # as the link has it, until one stops it
        expect(rotating).to_have_attribute("aria-pressed", pressed)
        rotating.click()
    wall.page.goto("about:blank")
    wall.page.clock.install()
    wall.page.goto(address)
    expect(wall.page.get_by_text("Page 1 of 2")).to_be_visible()
    for page in ("Page 2 of 2", "Page 1 of 2"):
        wait_for(lambda page=page: _turned(wall, page), page)  # type: ignore[misc]
    for size in ({"width": 1280, "height": 720}, {"width": 1920, "height": 1080}):
        wall.page.set_viewport_size(size)  # type: ignore[arg-type]
        wait_for(lambda: wall.run(_CUT) == [], f"all of each widget at {size}")


def _turned(wall: Tab, page: str) -> bool:
    """Whether a page is shown, half a minute later by the browser's clock."""
    wall.page.clock.fast_forward(31_000)
    return wall.page.get_by_text(page).is_visible()


def test_a_wall_begins_anew_each_day_where_it_was(wall: Tab, address: str) -> None:
    wall.page.goto("about:blank")
    wall.page.clock.install()
    wall.page.goto(address)
    wait_for(lambda: _turned(wall, "Page 2 of 2"), "the second page")
    wall.page.get_by_role("button", name="Rotate pages", pressed=True).click()
    wall.run("void (window.isOld = true)")
    wall.page.clock.fast_forward("23:00:00")
    wall.page.wait_for_load_state("networkidle")
    assert wall.run("window.isOld")
    with wall.page.expect_navigation():
        wall.page.clock.fast_forward("01:01:00")
    expect(wall.page.get_by_text("Page 2 of 2")).to_be_visible()
    assert wall.run("window.isOld === undefined")
    expect(wall.page.get_by_role("button", name="Rotate pages", pressed=False)).to_be_visible()
    expect(wall.page.get_by_role("group").first).to_be_visible()


_CUT = """
[...document.querySelectorAll('.widget')].filter((each) => each.scrollHeight > each.clientHeight + 1)
  .map((each) => each.innerText)
"""


def test_a_link_that_was_ended_says_so(admin: Tab, address: str, browser: Browser, plant: DemoPlant) -> None:
    expect(admin.page.get_by_role("dialog").get_by_role("img", name="The link as a QR code")).to_be_visible()
    admin.page.get_by_role("dialog").get_by_role("button", name="End it").click()
    expect(admin.page.get_by_role("dialog").get_by_role("button", name="Make a link")).to_be_visible()
    tab = open_tab(browser, plant.url)
    tab.page.goto(address)
    expect(tab.page.get_by_text("This link shows nothing any more")).to_be_visible()
    assert tab.complaints() == []
    tab.page.context.close()


def test_objects_stand_on_a_picture_that_was_uploaded(
    admin: Tab, browser: Browser, plant: DemoPlant, tmp_path: Path
) -> None:
    chiller = plant.call("get_object_list", where_and=[["name", "like", "Chiller 1%"]])["data"][0]
    values = [{"objectId": str(chiller["id"]), "code": "TEMP_SUPPLY"}]
    widget = {"type": "vlu", "name": "Supply", "xys": {"pos": [3, 2], "len": [6, 2]}, "attribute": {"values": values}}
    script = {"Dashboard-1": {"name": "Hall", "col": 24, "row": 12, "data": [widget]}}
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    uid = plant.call("create_dashboard", name="Hall plan", script=script, **by)["uid"]
    (tmp_path / "hall.png").write_bytes(png(160, 90))
    admin.open(f"#/dashboards/{uid}?edit=1")
    admin.page.locator("input[type=file]").set_input_files(tmp_path / "hall.png")
    expect(admin.page.locator("img.plan-picture")).to_be_visible()
    admin.page.get_by_role("button", name="Save").click()
    expect(admin.page.get_by_role("button", name="Save")).to_be_disabled()
    admin.open(f"#/dashboards/{uid}")
    picture, on_it = admin.page.locator("img.plan-picture"), admin.page.get_by_role("group", name="Supply")
    expect(on_it).to_contain_text(re.compile(r"\d\.\d"))
    width = "document.querySelector('img.plan-picture').naturalWidth"
    assert admin.run(width) == 160
    box, place = picture.bounding_box(), on_it.bounding_box()
    assert box is not None
    assert place is not None
    assert box["x"] <= place["x"] < box["x"] + box["width"] / 4
    key = plant.call("renew_wall_link", uid=uid)["key"]
    wall = open_tab(browser, plant.url)
    wall.page.goto(f"{plant.url}/#/wall?key={key}")
    expect(wall.page.locator("img.plan-picture")).to_be_visible()
    wait_for(lambda: wall.run(width) == 160, "the picture")
    assert wall.complaints() == []
    wall.page.context.close()
    plant.call("delete_dashboard", uid=uid)


def test_objects_stand_on_a_map(admin: Tab, plant: DemoPlant) -> None:
    total = plant.call("get_object_list", page_size=1)["total_records"]
    admin.open("#/objects?view=map")
    marks = admin.page.locator(".mark")
    expect(marks.first).to_be_visible()
    expect(admin.page.get_by_text(f"{total} objects on the map")).to_be_visible()
    assert any("land-" in url for url in admin.asked)
    marks.first.click()
    expect(admin.page.locator("section.card table a").first).to_be_visible()
    admin.page.get_by_role("button", name="All", exact=True).click()
    admin.page.get_by_role("searchbox").fill("Chiller 1")
    expect(admin.page.get_by_text("1 object on the map")).to_be_visible()
    expect(marks).to_have_count(1)
    marks.first.click()
    admin.page.locator("section.card table a").first.click()
    expect(admin.page.get_by_role("heading", level=1)).to_contain_text("Chiller 1")


def test_a_chart_that_was_dragged_on_a_wall_follows_the_clock_again_by_itself(wall: Tab) -> None:
    page = wall.page
    chart = page.locator(".chart-box", has=page.locator(".chart canvas")).first
    expect(chart.locator(".legend button b").first).to_contain_text(re.compile(r"\d"))
    page.clock.install()
    chart.scroll_into_view_if_needed()
    area = chart.locator(".u-over").bounding_box()
    assert area is not None
    page.mouse.move(area["x"] + 20, area["y"] + 60)
    page.mouse.down()
    page.mouse.move(area["x"] + area["width"] / 2, area["y"] + 60, steps=5)
    page.mouse.up()
    follow = chart.get_by_role("button", name="Live")
    expect(follow).to_be_visible()
    page.clock.run_for(1_000)  # the frame after that it is drawn in, which begins the rest
    page.clock.fast_forward("05:01")
    expect(follow).to_have_count(0)
