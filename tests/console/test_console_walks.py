"""What holds on every view of the console, dialogs and walls too: each is visited, as whoever may see it."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl

import pytest
from browser import Tab
from demo_plant import DemoPlant
from other_company import HOSTILE_NAMES
from playwright.sync_api import Browser, expect
from routes import View
from walk import too_wide, walk

pytestmark = pytest.mark.timeout(400)  # all views, one after the other


@pytest.fixture(scope="module")
def hostile(plant: DemoPlant) -> list[View]:
    """Terminals whose names are hostile."""
    config = plant.call("get_terminal_config_list")[0]["uid"]
    for kind, name in HOSTILE_NAMES.items():
        plant.add_terminal(f"hostile-{kind}", config, name=name, description=name * 3)
    return [View(f"hostile-{kind}", f"#/terminals/hostile-{kind}") for kind in HOSTILE_NAMES]


_PARTS = "[...document.querySelectorAll('main .tabs a, nav.side a')].map((each) => each.getAttribute('href'))"
"""Where a page's tabs and the menu lead."""


@pytest.mark.parametrize(("scheme", "language"), [("light", "en-US"), ("dark", "zh-CN")])
def test_every_page_is_accessible(
    plant: DemoPlant, browser: Browser, views: list[View], scheme: str, language: str
) -> None:
    found: dict[str, list[str]] = {}
    parts: set[tuple[str, ...]] = set()
    with walk(browser, plant, views, color_scheme=scheme, locale=language) as visits:
        for view, tab in visits:
            parts |= {_kind(route) for route in tab.run(_PARTS)}
            if findings := tab.accessibility():
                found[view.name] = findings
    assert found == {}
    assert parts - {_kind(view.route) for view in views} == set(), "parts of pages that no walk visits"


def _kind(route: str) -> tuple[str, ...]:
    """Which view a route is of, whatever the record."""
    path, _, query = route.removeprefix("#/").partition("?")
    page, *rest = path.split("/")
    if page in ("terminals", "objects", "dashboards", "customers", "campaigns"):
        rest = ["one"] * len(rest)
    records = ["one"] * len(rest[1:])
    asked = [value if name == "tab" else name for name, value in parse_qsl(query)]
    return (page, *rest[:1], *records, *asked)


_PLANTED = """
const faint = document.createElement("p");
faint.textContent = "faint";
faint.style = "color: #eee; background: #fff";
document.querySelector("main").append(document.createElement("img"), document.createElement("button"), faint);
0
"""
"""What nobody could read or name, put into a page."""


def test_what_is_not_accessible_is_told_with_its_place(admin: Tab) -> None:
    admin.open("#/no-such-page")
    admin.settle()
    assert admin.accessibility() == []
    admin.run(_PLANTED)
    found = {line.partition(":")[0]: line for line in admin.accessibility()}
    assert {"image-alt", "button-name", "color-contrast"} <= found.keys()
    assert "faint</p>" in found["color-contrast"]


_TOUCHING = """
[...document.querySelectorAll("main tbody tr :is(button, .button):not(.plain)")]
  .map((each) => ({ each, own: each.getBoundingClientRect(), row: each.closest("tr").getBoundingClientRect() }))
  .filter(({ own, row }) => own.height && Math.min(own.top - row.top, row.bottom - own.bottom) < 3)
  .map(({ each }) => each.textContent)
"""
"""Buttons that touch the line above or below their row."""


_BAR = "document.querySelector('nav.side')?.style.setProperty('position', '{}'); 0"
"""Puts the bar at the bottom elsewhere: what lies below it axe-core takes for out of reach, as if nobody scrolled."""


def test_every_page_fits_a_phone(plant: DemoPlant, browser: Browser, views: list[View], hostile: list[View]) -> None:
    wide: dict[str, list[str]] = {}
    with walk(browser, plant, [*hostile, *views], viewport={"width": 360, "height": 740}) as visits:
        for view, tab in visits:
            found = [*too_wide(tab), *tab.run(_TOUCHING)]
            tab.run(_BAR.format("static"))
            if found := [*found, *tab.accessibility()]:
                wide[view.name] = found
            tab.run(_BAR.format(""))
            if view.name == "mapping":  # stands behind "More", which says so
                expect(tab.page.get_by_role("button", name="More")).to_have_class(re.compile(r"\bhere\b"))
    assert wide == {}
