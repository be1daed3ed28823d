"""What the console costs whoever looks: weight, time to interactive, search among many terminals, charts.

``python benchmarks/console.py [TERMINALS]`` (100,000) starts a platform with so many terminals, and Debian's Chromium.
"""

from __future__ import annotations

import csv
import io
import json
import math
import subprocess
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
from running import Platform, wait_for

TERMINALS = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
THROTTLED = 4  # times slower than this processor
STARTS = 5
SEARCHES = 40
CURVES, POINTS, PANS = 50, 2_000, 5
GOALS = {"weight": 60 * 1024, "interactive": 1_000, "search": 100, "curves": 50, "pan": 33}


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
        drawn, gaps = time_charts(open_tab(browser, platform.url), fill_curves(platform))
        many = f"{CURVES} curves of {POINTS:,} points"
        show(f"{many}, last answer to drawn", f"{drawn:.0f} ms", drawn, GOALS["curves"])
        show(f"{PANS} pans over them, longest time between frames", told(gaps), max(gaps), GOALS["pan"])


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


def fill_curves(platform: Platform) -> str:
    """The uid of a dashboard whose one widget shows them; the values come as a terminal reports them."""
    by = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
    platform.add_terminal("curves", platform.add_config("curves"))
    rows = [[f"V{each}", f"V{each}", f"V{each}", "STA", f"$AdapterID-1.v{each}", ""] for each in range(CURVES)]
    mapping = platform.call("create_mapping", name="curves", script=rows, **by)["uid"]
    made = platform.call("create_object", name="curves", mapping_id=mapping, terminal_list=["curves"], **by)
    now = int(time.time())
    reports = [
        json.dumps({"Time": now - 8 * POINTS + 8 * point, **{f"v{each}": wave(point, each) for each in range(CURVES)}})
        for point in range(POINTS)
    ]
    login = ["-p", str(platform.mqtt), "-i", "curves", "-u", "u-curves", "-P", "pin-curves"]
    subprocess.run(
        ["mosquitto_pub", *login, "-q", "1", "-t", "g/curves/r", "-l"], input="\n".join(reports).encode(), check=True
    )
    values = [{"objectId": str(made["id"]), "code": f"V{each}"} for each in range(CURVES)]
    widget = {
        "type": "lin",
        "name": "All",
        "xys": {"pos": [0, 0], "len": [24, 12]},
        "attribute": {"values": values, "hours": 6},
    }
    script = {"Dashboard-1": {"name": "All", "col": 24, "row": 12, "data": [widget]}}
    return str(platform.call("create_dashboard", name="Curves", script=script, **by)["uid"])


def wave(point: int, curve: int) -> float:
    """A value that goes up and down over an hour or two, with some noise, as temperatures do."""
    return round(50 + 40 * math.sin(point / (60 + 3 * curve)) + 3 * math.sin(point * 1.7 + curve), 2)


def time_charts(tab: Tab, dashboard: str) -> tuple[float, list[float]]:
    """Milliseconds from the last curves' arrival to the frame that has the last line; those between frames in drags."""
    tab.page.add_init_script(_WATCH)
    login(tab)
    tab.open(f"#/dashboards/{dashboard}")
    until = "globalThis.arrived > 0 && globalThis.drawn > globalThis.arrived"
    wait_for(lambda: tab.run(until), "the curves", timeout_s=60)
    tab.page.wait_for_load_state("networkidle")
    drawn = tab.run("globalThis.drawn - globalThis.arrived")
    box = tab.page.locator("canvas").bounding_box()
    assert box is not None
    gaps: list[float] = []
    for pan in range(PANS):
        tab.run(_FRAMES)
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        tab.page.mouse.move(*middle)
        tab.page.mouse.down()
        tab.page.mouse.move(middle[0] + (300 if pan % 2 else -300), middle[1], steps=60)
        tab.page.mouse.up()
        gaps.extend(tab.run("(globalThis.isWatched = false, globalThis.gaps)"))
    tab.page.context.close()
    return float(drawn), gaps


_WATCH = """
globalThis.arrived = 0;
globalThis.drawn = 0;
const take = Response.prototype.arrayBuffer;
Response.prototype.arrayBuffer = async function () {
  const found = await take.call(this);
  globalThis.arrived = performance.now();
  return found;
};
const stroke = CanvasRenderingContext2D.prototype.stroke;
CanvasRenderingContext2D.prototype.stroke = function (...given) {
  stroke.apply(this, given);
  requestAnimationFrame(() => { globalThis.drawn = performance.now(); });
};
"""

_FRAMES = """
{
  globalThis.gaps = [];
  globalThis.isWatched = true;
  let last = performance.now();
  const frame = (now) => {
    globalThis.gaps.push(now - last);
    last = now;
    if (globalThis.isWatched) requestAnimationFrame(frame);
  };
  requestAnimationFrame((now) => { last = now; requestAnimationFrame(frame); });
}
"""

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
