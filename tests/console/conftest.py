"""A served demo and a browser, one of each for the tests of a file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser

sys.path.insert(0, str(Path(__file__).parent))
from browser import Tab, chromium, open_tab
from console_build import build_console
from demo_plant import DemoPlant, complete_demo, demo_plant
from routes import View, views_of

from demo_week import copy_demo


@pytest.fixture(scope="module")
def plant(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DemoPlant]:
    """The demo with its simulated fleet, and its week."""
    build_console()
    data = tmp_path_factory.mktemp("console") / "data"
    copy_demo(tmp_path_factory, data)
    with demo_plant(data) as running:
        yield running


@pytest.fixture(scope="module")
def views(plant: DemoPlant) -> list[View]:
    """All views, none of which is empty; the plant has a record of each kind from then on."""
    complete_demo(plant)
    return views_of(plant)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture
def tab(plant: DemoPlant, browser: Browser) -> Iterator[Tab]:
    """A tab at the login; whatever a test does, nothing may be complained of in it."""
    opened = open_tab(browser, plant.url)
    opened.open()
    yield opened
    complaints = opened.complaints()
    opened.page.context.close()
    assert complaints == []


@pytest.fixture
def admin(tab: Tab, plant: DemoPlant) -> Tab:
    """The tab, with the demo company's admin logged in."""
    tab.login("demo-admin", plant.password("demo-admin"))
    return tab
