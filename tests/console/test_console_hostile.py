"""Whatever others may choose (names, descriptions, what terminals say) is text on every page, and keeps its place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from browser import Tab, open_tab
from demo_plant import DemoPlant
from other_company import OtherCompany, Texts, plant_company
from playwright.sync_api import Browser, expect
from walk import too_wide, walk

pytestmark = pytest.mark.timeout(400)  # all views, one after the other
MARKUP = "<img src=x onerror=alert(1)>'\""
TURNED = "abc\u202edef\u202c \u0627\u0644\u0645\u0636\u062e\u0629"
EMOJI = "\U0001f600\U0001f469\u200d\U0001f680 \u4e00\u53f7"
NAME = f"{MARKUP} {TURNED} {EMOJI}"
_HOSTILE = Texts(uid="hostile-1", name=NAME, short=EMOJI, command=MARKUP, long=f"{NAME} {'x' * 10_000}", client=MARKUP)
_MADE = "document.querySelectorAll('img[src=x], [onerror], body script').length"
"""Elements that a text has become."""
_TURNING = r"""
(() => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const loose = [];
  while (walker.nextNode()) {
    const text = walker.currentNode;
    if (!/[\u202a-\u202e\u2066-\u2069]/.test(text.data) || !text.parentElement.checkVisibility()) continue;
    let at = text.parentElement, kept = false;
    for (; at && !kept; at = at.parentElement) {
      const style = getComputedStyle(at);
      kept = /isolate|plaintext/.test(style.unicodeBidi);
      if (style.display !== "inline") break;
    }
    // a block of its own keeps its text to itself as well, where nothing else stands in it
    kept ||= at && at.textContent.trim() === text.data.trim();
    if (kept || text.parentElement.closest("option, textarea")) continue;
    loose.push(text.parentElement.outerHTML.slice(0, 200));
  }
  return loose;
})()
"""
"""Texts with marks of direction whose neighbours on the line are not safe from them."""
_WIDE = "document.documentElement.scrollWidth > innerWidth"


@pytest.fixture(scope="module")
def company(plant: DemoPlant) -> OtherCompany:
    return plant_company(plant, _HOSTILE)


@pytest.mark.parametrize("width", [1280, 360], ids=["desktop", "phone"])
def test_hostile_texts_are_text_on_every_page(
    plant: DemoPlant, browser: Browser, company: OtherCompany, width: int
) -> None:
    faults: dict[str, object] = {}
    showing = set()
    login = (company.username, company.password)
    look = {"viewport": {"width": width, "height": 800}}
    with walk(browser, plant, company.views(plant), login=login, **look) as visits:
        for view, tab in visits:
            text = tab.seen()
            if MARKUP in text or MARKUP[:24] in text:
                showing.add(view.name)
            wide = too_wide(tab) if width == 360 else tab.run(_WIDE)
            found = {"made": tab.run(_MADE), "turning": tab.run(_TURNING), "wide": wide}
            if any(found.values()):
                faults[view.name] = found
    assert faults == {}
    assert _SHOWN - showing == set()  # else the test would look at pages that show nothing of it


_SHOWN = {"overview", "events", "event", "handover", "terminals", "terminal", "messages", "commands", "mapping"}
_SHOWN |= {"mapping-table", "control-table", "objects", "object", "logbook", "statistics", "calculations", "balances"}
_SHOWN |= {"rules", "campaigns", "api-keys", "claim-keys", "dashboards", "dashboard", "editor"}
_SHOWN |= {
    "customers",
    "customer",
    "retainers",
    "retainer",
    "companies",
    "machine",
    "statistic",
    "calculation",
    "balance",
}
_SHOWN |= {"campaign", "rule", "configuration", "handover-kept", "wall", "control-tables"}
"""Views that have something of the company to show."""


@pytest.fixture(params=[1280, 360], ids=["desktop", "phone"])
def hostile(plant: DemoPlant, browser: Browser, company: OtherCompany, request: pytest.FixtureRequest) -> Iterator[Tab]:
    """Its administrator's tab; a dialog that a script opens is a complaint."""
    tab = open_tab(browser, plant.url, viewport={"width": request.param, "height": 800})
    tab.page.on("dialog", lambda dialog: tab.said.append(f"dialog: {dialog.message}"))
    tab.open()
    tab.login(company.username, company.password)
    yield tab
    assert tab.complaints() == []
    tab.page.context.close()


def test_hostile_names_are_found_as_text(hostile: Tab) -> None:
    hostile.page.keyboard.press("Control+k")
    hostile.page.keyboard.type("<img src")
    expect(hostile.page.get_by_role("option").first).to_contain_text(MARKUP)
    assert hostile.run(_MADE) == 0
    assert hostile.run(_TURNING) == []
