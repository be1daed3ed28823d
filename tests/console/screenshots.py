"""Pictures of every view of the console, on the demo's plant: ``make screenshots``.

They come into ``screenshots/``: light and dark, desktop and phone, English and Chinese. Look at them.
``make screenshots ONLY="phone dark zh"`` makes a part of them: by size, theme, language and names of views.
``make screenshots ONLY=documents`` makes those that ``README.md`` and ``docs/console.md`` show.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import product
from pathlib import Path

sys.path.extend([str(Path(__file__).parent), str(Path(__file__).parents[1])])
from browser import Tab, chromium, open_tab
from console_build import builder
from demo_plant import DemoPlant, complete_demo, demo_plant
from playwright.sync_api import Browser
from routes import View, record_routes, views_of
from walk import visit

from running import wait_for

FOLDER = Path("screenshots")
DOCUMENTS = Path("docs") / "pictures"
PAGES = {"overview": "#/overview", "object": "#/objects/2"}
"""What ``README.md`` shows, beside the dashboard on a wall."""
PARTS = {
    "part-list": ("#/terminals", "main .card"),
    "part-bars": ("#/events?state=all", ".columns"),
    "part-facts": ("#/customers/1", "main .card"),
    "part-empty": ("#/broker/bridges", "main .card"),
    "part-problem": ("#/objects/999999", ".problem"),
    "part-chart": ("#/objects/2", "main .card"),
    "part-tabs": ("#/terminals/demo-chiller-1", "main .tabs"),
    "part-json": ("#/terminals/demo-compressor-3?tab=messages", ".messages .json"),
    "part-dialog": ("#/access/claim-keys?do=add", "dialog[open]"),
}
"""What ``docs/console.md`` shows: where it is, and which part."""
ON_A_PHONE = {"part-lines": ("#/events?state=all", "main .window"), "part-footer": ("#/rules?do=add", "dialog[open]")}
"""The same, on a phone in the dark."""
SIZES = {"desktop": {"width": 1440, "height": 900}, "phone": {"width": 360, "height": 740}}
SCHEMES = ("light", "dark")
LANGUAGES = {"en": "en-US", "zh": "zh-CN"}
_SETTLED_MS = 1_500  # after a page has read what it shows: charts draw themselves, and rates take two readings
_RATES_MS = 20_000  # until rates have some history, and a wall the values beside its curves
_WEEK_S = 600.0


def main() -> None:
    """Takes all of them, or those of the documents."""
    builder().build(only_if_stale=True)
    with tempfile.TemporaryDirectory() as folder, demo_plant(Path(folder) / "data") as plant, chromium() as browser:
        wait_for(lambda: _is_of_now(plant), "the week before, which the fleet reports first", timeout_s=_WEEK_S)
        if sys.argv[1:] == ["documents"]:
            _take_documents(plant, browser)
            return
        FOLDER.mkdir(exist_ok=True)
        complete_demo(plant)
        views = {view.name: view for view in views_of(plant)}
        wanted = [views[name] for name in _wanted(views)]
        for size, scheme, language in product(_wanted(SIZES), _wanted(SCHEMES), _wanted(LANGUAGES)):
            look = {"viewport": SIZES[size], "color_scheme": scheme, "locale": LANGUAGES[language]}
            _take_all(open_tab(browser, plant.url, **look), plant, wanted, f"-{size}-{scheme}-{language}.png")
    print(f"{len(list(FOLDER.glob('*.png')))} pictures in {FOLDER}/")


def _wanted(names: Iterable[str]) -> list[str]:
    """Those that the command line names; all where it names none of them."""
    every = list(names)
    return [each for each in every if each in sys.argv[1:]] or every


def _take_all(tab: Tab, plant: DemoPlant, views: Iterable[View], ending: str) -> None:
    tab.open()
    tab.page.wait_for_selector("form")
    tab.page.screenshot(path=FOLDER / f"login{ending}")
    tab.login("admin", plant.environment["TERRAZZO_ADMIN__PASSWORD"])
    _take(tab, views, FOLDER, ending)
    tab.page.context.close()


def _is_of_now(plant: DemoPlant) -> bool:
    """Whether the first chiller's newest reports are not those of its last week any more."""
    data = plant.call("get_last_grid", terminal_id="demo-chiller-1")["data"]
    newest = max(str(each["time"]) for each in data)
    return newest > time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(time.time() - 60))


def _take(tab: Tab, views: Iterable[View], folder: Path, ending: str = ".png") -> None:
    for view in views:
        _show(tab, view)
        tab.page.screenshot(path=folder / f"{view.name}{ending}")


def _show(tab: Tab, view: View, settled_ms: float = _SETTLED_MS) -> None:
    visit(tab, view)
    tab.page.wait_for_timeout(settled_ms)


def _take_documents(plant: DemoPlant, browser: Browser) -> None:
    tab = open_tab(browser, plant.url, viewport=SIZES["desktop"], color_scheme="light")
    tab.open()
    tab.login("admin", plant.environment["TERRAZZO_ADMIN__PASSWORD"])
    pages = [View(name, route) for name, route in PAGES.items()]
    _show(tab, pages[0], _RATES_MS)
    _take(tab, pages, DOCUMENTS)
    tab.page.set_viewport_size({"width": 1000, "height": 640})
    _take_parts(tab, PARTS)
    phone = open_tab(browser, plant.url, viewport=SIZES["phone"], color_scheme="dark")
    phone.open()
    phone.login("admin", plant.environment["TERRAZZO_ADMIN__PASSWORD"])
    _take_parts(phone, ON_A_PHONE)
    phone.page.context.close()
    tab.page.set_viewport_size(SIZES["desktop"])
    _show(tab, View("wall", record_routes(plant)["wall"]), _RATES_MS)
    tab.page.screenshot(path=DOCUMENTS / "dashboard.png")
    tab.page.context.close()


def _take_parts(tab: Tab, parts: dict[str, tuple[str, str]]) -> None:
    for name, (route, part) in parts.items():
        _show(tab, View(name, route))
        tab.run("document.querySelector('nav.side').style.visibility = 'hidden'")  # on a phone it lies over the page
        tab.page.locator(part).first.screenshot(path=DOCUMENTS / f"{name}.png")


if __name__ == "__main__":
    main()
