"""What the console costs whoever looks: weight, time to interactive, search among many terminals.

``python benchmarks/console.py [TERMINALS]`` (100,000) starts a platform with so many terminals, and Debian's Chromium.
"""

from __future__ import annotations

import csv
import io
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from statistics import quantiles

sys.path.extend([str(Path(__file__).parents[1] / "tests"), str(Path(__file__).parents[1] / "tests" / "console")])
from browser import Tab, chromium, open_tab
from console_build import builder

from migrated import PASSWORD
from running import Platform

TERMINALS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
THROTTLED = 4  # times slower than this processor
STARTS = 5
SEARCHES = 40
GOALS = {"weight": 60 * 1024, "interactive": 1_000, "search": 100}


def main() -> None:
    """Prints each figure beside its goal."""
    builder().build(only_if_stale=True)
    with tempfile.TemporaryDirectory() as folder, Platform(Path(folder) / "data") as platform, chromium() as browser:
        platform.login()
        fill(platform)
        weight = max(weigh(open_tab(browser, platform.url)) for _ in range(2))
        show("from the login to a usable overview, transferred", f"{weight:,} B", weight, GOALS["weight"])
        starts = [time_start(open_tab(browser, platform.url)) for _ in range(STARTS)]
        show(f"login can be typed in, cold cache, processor {THROTTLED}x slower", told(starts), max(starts), 1_000)
        searches = time_searches(open_tab(browser, platform.url))
        p95 = quantiles(searches, n=20)[-1]
        show(f"search among {TERMINALS:,} terminals, key to results", told(searches), p95, GOALS["search"])


def show(what: str, found: str, value: float, goal: float) -> None:
    """One line."""
    print(f"{what}: {found} ({'met' if value <= goal else 'MISSED'}: {goal:,})", flush=True)


def told(values: list[float]) -> str:
    """Median, 95th percentile and most, milliseconds."""
    cuts = quantiles(values, n=20)
    return f"median {cuts[9]:.0f} ms, p95 {cuts[-1]:.0f} ms, most {max(values):.0f} ms"


def fill(platform: Platform) -> None:
    """Imports the terminals."""
    config, text = platform.add_config(), io.StringIO()
    table = csv.writer(text)
    table.writerow(["uid", "name", "type", "config_id", "mode", "username", "pin", "access", "topic", "is_available"])
    for number in range(TERMINALS):
        uid = f"t-{number:06d}"
        names = [uid, f"Pump {number} of hall {number % 97}", "Adapter-II", config]
        table.writerow([*names, "pwd", f"u{number}", f"pin-{number}", "all", "all", 1])
    headers = {"Authorization": f"Bearer {platform.token}", "Content-Type": "text/csv"}
    asked = urllib.request.Request(f"{platform.url}/bulk/terminals", text.getvalue().encode(), headers, method="POST")
    with urllib.request.urlopen(asked, timeout=600) as answer:
        print(answer.read()[:200].decode(), file=sys.stderr)


def weigh(tab: Tab) -> int:
    """Bytes over the wire, heads and answers of the API among them."""
    sizes: list[int] = []

    def count(request: object) -> None:
        found = request.sizes()  # type: ignore[attr-defined]
        sizes.append(found["responseBodySize"] + found["responseHeadersSize"])

    tab.page.on("requestfinished", count)
    login(tab)
    tab.page.wait_for_load_state("networkidle")
    tab.page.context.close()
    return sum(sizes)


def login(tab: Tab) -> None:
    """To the overview."""
    tab.open()
    tab.login("admin", PASSWORD)
    tab.page.wait_for_selector(".todo, .empty")


def time_start(tab: Tab) -> float:
    """Milliseconds from the address to a login that takes letters."""
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Emulation.setCPUThrottlingRate", {"rate": THROTTLED})
    tab.page.goto("about:blank")
    began = time.perf_counter()
    tab.page.goto(f"{tab.base}/", wait_until="commit")
    tab.page.wait_for_selector("input[name=username]")
    tab.page.keyboard.type("a")
    spent = (time.perf_counter() - began) * 1_000
    tab.page.context.close()
    return spent


def time_searches(tab: Tab) -> list[float]:
    """Milliseconds from the request of a search to its rows in the document, as the page itself measures."""
    login(tab)
    tab.open("#/terminals")
    tab.page.wait_for_selector("tbody tr td a")
    spent = []
    for number in range(SEARCHES):
        wanted = f"t-{(number * 7_919) % TERMINALS:06d}"
        found = tab.run(_SEARCH % wanted)
        spent.append(float(found))
    tab.page.context.close()
    return spent


_SEARCH = """
new Promise((done) => {
  const input = document.querySelector('input[type=search]');
  input.value = '%s';
  const began = performance.now();
  input.dispatchEvent(new Event('input', {bubbles: true}));
  const look = () => {
    const rows = document.querySelectorAll('tbody tr:not(.gap)');
    const is = rows.length === 1 && rows[0].textContent.includes(input.value);
    if (is) done(performance.now() - began); else requestAnimationFrame(look);
  };
  look();
})
"""


if __name__ == "__main__":
    main()
