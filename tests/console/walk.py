"""A walk through views of the console, each as whoever may see it, for what holds on all of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from browser import Tab, open_tab
from demo_plant import DemoPlant
from playwright.sync_api import Browser
from routes import View

_TOO_WIDE = """
[document.documentElement, ...document.querySelectorAll("dialog[open], :is(main, dialog[open]) :is(.window, .card)")]
  .filter((each) => each.scrollWidth > each.clientWidth + 1)
  .map((each) => `${each.getAttribute("aria-label") || each.className || each.tagName} ${each.scrollWidth}`)
"""
"""What of a page has to be pushed aside to be read: the page, a dialog, a card, or a list whose rows are cut."""


def too_wide(tab: Tab) -> list[str]:
    """What of a view has to be pushed aside to be read."""
    return list(tab.run(_TOO_WIDE))


def visit(tab: Tab, view: View) -> None:
    """Goes to a view, and waits until it shows what it read."""
    show(tab, view.route, is_dialog=view.is_dialog, is_wall=view.is_wall)


def show(tab: Tab, route: str, *, is_dialog: bool = False, is_wall: bool = False) -> None:
    """Goes to a route, and waits until it shows what it read."""
    if is_wall:
        tab.page.goto("about:blank")  # else the page would begin anew by itself, at any moment
    tab.open(route)
    if is_dialog:
        tab.page.wait_for_selector("dialog[open]")  # by which the address has become another one
    elif not is_wall:
        tab.page.wait_for_selector("dialog[open]", state="detached")
    else:
        tab.page.wait_for_selector("main h1")
    tab.settle()


@contextmanager
def walk(
    browser: Browser, plant: DemoPlant, views: Sequence[View], *, login: tuple[str, str] | None = None, **look: Any
) -> Iterator[Iterator[tuple[View, Tab]]]:
    """The views, one after the other, each with the tab that shows it; nothing may be complained of.

    Args:
        login: name and password of the company's administrator, the demo's unless given.
        look: of the tabs, as Playwright's contexts take it.
    """
    of_machine = ("admin", plant.environment["TERRAZZO_ADMIN__PASSWORD"])
    logins = {
        False: login or ("demo-admin", plant.password("demo-admin")),
        True: of_machine,
    }
    tabs: dict[bool, Tab] = {}

    def visits() -> Iterator[tuple[View, Tab]]:
        for view in views:
            if view.is_super not in tabs:
                tabs[view.is_super] = _enter(browser, plant, *logins[view.is_super], **look)
            visit(tabs[view.is_super], view)
            yield view, tabs[view.is_super]

    yield visits()
    for tab in tabs.values():
        complaints = tab.complaints()
        tab.page.context.close()
        assert complaints == []


def _enter(browser: Browser, plant: DemoPlant, name: str, password: str, **look: Any) -> Tab:
    tab = open_tab(browser, plant.url, **look)
    tab.page.on("dialog", lambda dialog: tab.said.append(f"dialog: {dialog.message}"))  # which a script has opened
    tab.open()
    tab.login(name, password)
    return tab
