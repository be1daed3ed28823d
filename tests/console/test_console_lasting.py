"""A page that stays open for a shift: all that comes live is shown, and takes no more memory later than before."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.request
from collections.abc import Iterator

import pytest
from browser import Tab, open_tab
from console_build import build_console
from playwright.sync_api import Browser, WebSocketRoute, expect

from migrated import PASSWORD
from running import Platform, wait_for
from support import require_program

PUMP = "pump-1"
CODES = ("FLOW", "HEAD", "POWER")
REPORTS = 150  # of each part: those of five minutes, one each two seconds
PARTS = 3
MOST_MIB = 1.0
"""What the heap may grow by from the second part on: 150 points of three curves are 0.01 MiB."""
_FOLLOW_MS = 120_000


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    build_console()
    with Platform(tmp_path_factory.mktemp("lasting") / "data") as found:
        found.login()
        yield found


@pytest.fixture(scope="module")
def pump(platform: Platform) -> str:
    """The number of an object with three variables of a terminal."""
    platform.add_terminal(PUMP, platform.add_config())
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    rows = [[code, code, code, "STA", f"$AdapterID-1.{code}", ""] for code in CODES]
    mapping = platform.call("create_mapping", name="pump", script=rows, **by)["uid"]
    made = platform.call("create_object", name="Pump", mapping_id=mapping, terminal_list=[PUMP], **by)
    publish(platform, range(1))
    return str(made["id"])


def publish(platform: Platform, numbers: range) -> None:
    """A report of each number, all different: what does not change is stored once."""
    reports = [json.dumps({code: number + at / 10 for at, code in enumerate(CODES)}) for number in numbers]
    login = ["-i", PUMP, "-u", f"u-{PUMP}", "-P", f"pin-{PUMP}"]
    command = [require_program("mosquitto_pub"), "-p", str(platform.mqtt), *login, "-q", "1", "-t", f"g/{PUMP}/r", "-l"]
    subprocess.run(command, input="\n".join(reports).encode(), check=True, timeout=120)


def heap_mib(tab: Tab) -> float:
    """JavaScript's heap without what nobody holds any more."""
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("HeapProfiler.collectGarbage")
    used: float = session.send("Runtime.getHeapUsage")["usedSize"]
    session.detach()
    return used / 2**20


@pytest.mark.timeout(400)
def test_live_values_take_no_memory_for_good(platform: Platform, browser: Browser, pump: str) -> None:
    tab = open_tab(browser, platform.url)
    tab.open()
    tab.login("admin", PASSWORD)
    tab.open(f"#/objects/{pump}")
    tab.settle()
    heaps = []
    for part in range(PARTS):
        numbers = range(1 + part * REPORTS, 1 + (part + 1) * REPORTS)
        publish(platform, numbers)
        tab.page.locator(".legend b", has_text=str(numbers[-1])).first.wait_for(timeout=_FOLLOW_MS)
        heaps.append(heap_mib(tab))
    assert tab.complaints() == []
    tab.page.context.close()
    assert heaps[-1] - heaps[1] < MOST_MIB, heaps


class HeldAsks:
    """What a page asks its live connection for, until it is let through."""

    def __init__(self, tab: Tab) -> None:
        self._held: list[str | bytes] | None = []
        self._server: WebSocketRoute | None = None
        tab.page.route_web_socket("**/apiproxy/api", self._connect)

    def _connect(self, connection: WebSocketRoute) -> None:
        self._server = connection.connect_to_server()
        connection.on_message(self._take)

    def _take(self, message: str | bytes) -> None:
        if self._held is not None:
            self._held.append(message)
        elif self._server is not None:
            self._server.send(message)

    def let_through(self) -> None:
        held, self._held = self._held or [], None
        assert held
        for message in held:
            self._take(message)


def test_what_happens_before_a_page_is_subscribed_is_shown(platform: Platform, browser: Browser, pump: str) -> None:
    """On a slow way a page reads before its subscription is there; what comes in between is read again."""
    tab = open_tab(browser, platform.url)
    asks = HeldAsks(tab)
    tab.open()
    tab.login("admin", PASSWORD)
    tab.open(f"#/objects/{pump}")
    tab.settle()
    tab.page.locator(".legend b", has_text=re.compile(r"\d")).first.wait_for()  # it has read
    publish(platform, range(7_000, 7_001))
    assert tab.page.locator(".legend b", has_text="7000").count() == 0
    asks.let_through()
    tab.page.locator(".legend b", has_text="7000").first.wait_for()
    assert tab.complaints() == []
    tab.page.context.close()


_HIDDEN = """
window.isHidden = false;
Object.defineProperty(Document.prototype, "hidden", { get: () => window.isHidden });
window.look = (isHidden) => {
  window.isHidden = isHidden;
  document.dispatchEvent(new Event("visibilitychange"));
};
"""


def test_what_happens_while_nobody_looks_is_there_when_somebody_does(platform: Platform, browser: Browser) -> None:
    tab = open_tab(browser, platform.url)
    tab.page.add_init_script(_HIDDEN)
    tab.open()
    tab.login("admin", PASSWORD)
    tab.open("#/terminals")
    tab.settle()
    tab.run("look(true)")
    platform.add_terminal("seen-late", platform.add_config("late"))
    tab.page.wait_for_timeout(7_000)  # the page reads again after a moment, which is what this is about: not now
    assert tab.page.get_by_text("seen-late").count() == 0
    tab.run("look(false)")
    tab.page.get_by_text("seen-late").first.wait_for()
    tab.page.context.close()


_ROUND = """
{
  const [every, end, once, stop] = [setInterval, clearInterval, setTimeout, clearTimeout];
  const works = new Map();
  globalThis.setInterval = (work, ms, ...given) => {
    const id = every(work, ms, ...given);
    works.set(id, () => work(...given));
    return id;
  };
  globalThis.setTimeout = (work, ms, ...given) => {
    const done = () => { works.delete(id); stop(id); work(...given); };
    const id = once(done, ms);
    if (ms >= 1000) works.set(id, done);
    return id;
  };
  globalThis.clearInterval = (id) => { works.delete(id); end(id); };
  globalThis.clearTimeout = (id) => { works.delete(id); stop(id); };
  globalThis.round = () => [...works.values()].forEach((work) => work());
}
"""
"""What a page does from time to time, or later, it does now: once."""

_POLLING = ["overview", "events", "terminals", f"terminals/{PUMP}", f"terminals/{PUMP}?tab=messages", "objects"]
_POLLING += ["campaigns", "rules/messages", "commands", "broker", "broker/now", "broker/bridges", "machine"]


def asked_in_a_round(tab: Tab) -> set[str]:
    """What a tab asks the platform for in a round."""
    before = len(tab.asked)
    tab.run("round()")
    tab.run("fetch('readyz?mark').then(() => 0)")  # what was asked before it has left before it
    return {url.rpartition("/")[2] for url in tab.asked[before:] if "mark" not in url}


def test_nothing_is_asked_in_a_tab_that_nobody_looks_at(platform: Platform, browser: Browser, pump: str) -> None:
    tab = open_tab(browser, platform.url)
    for script in (_HIDDEN, _ROUND):
        tab.page.add_init_script(script)
    tab.open()
    tab.login("admin", PASSWORD)
    for route in (*_POLLING, f"objects/{pump}"):
        tab.open(f"#/{route}")
        tab.settle()
        assert asked_in_a_round(tab), f"{route}: looked at, it asks at least for the session"
        tab.settle()
        tab.run("look(true)")
        # of what needs a person the count in the title is kept up, where something has happened
        assert asked_in_a_round(tab) <= {"get_attention"}, route
        tab.run("look(false)")
    tab.page.context.close()


def test_a_wall_that_nobody_looks_at_asks_for_nothing(platform: Platform, browser: Browser, pump: str) -> None:
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    values = [{"objectId": pump, "code": "FLOW"}]
    widget = {"type": "vlu", "name": "Flow", "xys": {"pos": [0, 0], "len": [6, 4]}, "attribute": {"values": values}}
    script = {"Dashboard-1": {"name": "Hall", "col": 24, "row": 12, "data": [widget]}}
    uid = platform.call("create_dashboard", name="Hall", category="pro", script=script, **by)["uid"]
    tab = open_tab(browser, platform.url)
    for script_text in (_HIDDEN, _ROUND):
        tab.page.add_init_script(script_text)
    tab.open(f"#/wall?key={platform.call('renew_wall_link', uid=uid)['key']}")
    expect(tab.page.get_by_role("group", name="Flow")).to_be_visible()
    assert "get_wall_values" in asked_in_a_round(tab)
    tab.page.wait_for_load_state("networkidle")
    tab.run("look(true)")
    assert asked_in_a_round(tab) == set()
    assert asked_in_a_round(tab) == set()
    tab.run("look(false)")
    assert "get_wall_values" in asked_in_a_round(tab)
    tab.page.context.close()


def figures(platform: Platform) -> dict[str, float]:
    """What is done for those who look: subscriptions now, frames and requests since the start."""
    with urllib.request.urlopen(f"{platform.url}/metrics", timeout=20) as answer:
        lines = answer.read().decode().splitlines()
    names = ("terrazzo_live_subscriptions", "terrazzo_live_frames_sent_total", "terrazzo_api_requests_total")
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line.startswith(names)}


def test_no_work_is_done_when_the_last_page_is_closed(platform: Platform, browser: Browser, pump: str) -> None:
    tab = open_tab(browser, platform.url)
    tab.open()
    tab.login("admin", PASSWORD)
    for route in ("objects", f"terminals/{PUMP}", f"objects/{pump}"):
        tab.open(f"#/{route}")
        tab.settle()
    wait_for(lambda: figures(platform)["terrazzo_live_subscriptions"] > 0, "subscriptions")
    publish(platform, range(8_000, 8_003))
    wait_for(lambda: figures(platform)["terrazzo_live_frames_sent_total"] > 0, "frames")
    tab.page.context.close()
    wait_for(lambda: figures(platform)["terrazzo_live_subscriptions"] == 0, "the last subscription's end")
    before = figures(platform)
    publish(platform, range(9_000, 9_100))
    assert figures(platform) == before
