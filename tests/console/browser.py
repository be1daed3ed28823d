"""Chromium with a console in it: what it complained of, what it asked for, and what axe-core finds."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from console_build import CONSOLE
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from migrated import PASSWORD
from running import wait_for
from support import require_chromium

AXE = CONSOLE / "node_modules" / "axe-core" / "axe.min.js"
WITHOUT = ["--no-sandbox", "--disable-dev-shm-usage", "--no-first-run", "--disable-gpu"]  # which would be simulated
# The form that the page comes with asks for the focus; where the page's script was quicker, Chromium remarks upon it.
FOCUSED_BEFORE = r"^info: Autofocus processing was blocked because a document already has a focused element"
OFTEN = """
{
  const real = globalThis.setInterval;
  globalThis.setInterval = (work, ms, ...given) => real(work, Math.min(ms, 1_000), ...given);
}
"""
"""Of a page that it is given to: what it does from time to time it does each second."""
_IS_OF_ADDRESS = "document.querySelector('main#main')?.dataset.route === location.hash"  # which `do=` leaves by itself
_MS = 20_000  # that something may take on a busy machine


@dataclass
class Tab:
    """A page of the console, and all that must not be said of it.

    Attributes:
        expected: patterns of console messages that a test provokes.
    """

    page: Page
    base: str
    said: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)

    def listen(self) -> None:
        """Notes what happens from now on."""
        self.page.set_default_timeout(_MS)
        self.page.on("console", lambda message: self.said.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.said.append(f"error: {error}"))
        self.page.on("request", lambda request: self.asked.append(request.url))

    def open(self, route: str = "") -> None:
        """Goes to a page of the console."""
        self.page.goto(f"{self.base}/{route}")

    def settle(self) -> None:
        """Waits until the page of the address shows what it read."""
        main = self.page.locator("main#main")
        wait_for(lambda: self.run(_IS_OF_ADDRESS), "the page of the address", timeout_s=_MS / 1_000)
        expect(main).to_have_attribute("aria-busy", "false")

    def seen(self) -> str:
        """All that the page shows, what stands in its fields too."""
        fields = self.run(
            "[...document.querySelectorAll('main :is(input, select, textarea)')].map((e) => e.value).join()"
        )
        return f"{self.page.locator('main').inner_text()} {fields}"

    def login(self, username: str, password: str) -> None:
        """Logs in at the form."""
        self.page.fill("input[name=username]", username)
        self.page.fill("input[name=password]", password)
        self.page.click("form button.primary")
        self.page.wait_for_selector("main#main")

    def run(self, script: str) -> Any:
        """The value of a script, which the page's policy does not stop: it comes from the debugger."""
        session = self.page.context.new_cdp_session(self.page)
        asked = {"expression": script, "awaitPromise": True, "returnByValue": True}
        found = session.send("Runtime.evaluate", asked)
        session.detach()
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def complaints(self) -> list[str]:
        """Console messages, errors, violations of the policy and requests to others."""
        patterns = [re.compile(each) for each in (*self.expected, FOCUSED_BEFORE)]
        said = [each for each in self.said if not any(pattern.search(each) for pattern in patterns)]
        own = (self.base, self.base.replace("http", "ws", 1), "data:", "blob:")
        return said + [f"foreign request: {url}" for url in self.asked if not url.startswith(own)]

    def accessibility(self) -> list[str]:
        """What axe-core finds, each with the place."""
        if not self.run("'axe' in window"):  # it is half a megabyte, and stays until the page is left
            self.run(AXE.read_text(encoding="utf-8") + "\n;0")
        tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
        # of what passes axe would collect each element, which takes as long as all its checks
        options = {"runOnly": tags, "resultTypes": ["violations"]}
        violations = self.run(f"axe.run(document, {json.dumps(options)}).then((found) => found.violations)")
        return [
            f"{each['id']}: {node['html'][:200]} ({node.get('failureSummary', '')[:300]})"
            for each in violations
            for node in each["nodes"]
        ]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, headless."""
    program = require_chromium()
    expect.set_options(timeout=_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=WITHOUT)
        try:
            yield browser
        finally:
            browser.close()


def open_tab(browser: Browser, base: str, **context: Any) -> Tab:
    """A tab of a profile of its own, 1280 by 800 unless told otherwise."""
    options: dict[str, Any] = {"viewport": {"width": 1280, "height": 800}, "locale": "en-US", **context}
    return tab_of(browser.new_context(**options), base)


def tab_of(context: BrowserContext, base: str) -> Tab:
    """One more tab of a profile."""
    tab = Tab(context.new_page(), base)
    tab.listen()
    return tab


@contextmanager
def tab_of_administrator(browser: Browser, base: str, *scripts: str) -> Iterator[Tab]:
    """A tab in which ``admin`` has logged in; nothing may be complained of. ``scripts`` run before each page's own."""
    opened = open_tab(browser, base)
    for script in scripts:
        opened.page.add_init_script(script)
    opened.open()
    opened.login("admin", PASSWORD)
    yield opened
    complaints = opened.complaints()
    opened.page.context.close()
    assert complaints == []
