"""What the console costs: weight, time to interactive, search among many terminals, charts, memory; open overviews.

``python benchmarks/console.py [TERMINALS]`` (100,000) starts a platform with so many terminals, and Debian's Chromium.
"""

from __future__ import annotations

import asyncio
import csv
import io
import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from statistics import quantiles
from typing import Any

import aiohttp

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
HOURS, EVERY_S, PARTS = 8, 2, 8  # of live data, as a terminal reports that says something each two seconds
_FOLLOW_MS = 300_000
GOALS = {
    "weight": 60 * 1024,
    "interactive": 1_000,
    "search": 100,
    "curves": 50,
    "pan": 33,
    "memory": 1,
    "overviews": 10,
}
OVERVIEWS, WATCHED_S = 100, 60.0


def main() -> None:
    """Prints each figure beside its goal."""
    builder().build(only_if_stale=True)
    with tempfile.TemporaryDirectory() as folder, Platform(Path(folder) / "data") as platform:
        platform.login()
        fill(platform)
        watch_overviews(platform)
        watch_browser(platform)


def watch_overviews(platform: Platform) -> None:
    """What open pages cost the platform."""
    idle = asyncio.run(spent_beside(platform, 0))
    spent = asyncio.run(spent_beside(platform, OVERVIEWS)) - idle
    show(f"{OVERVIEWS} open overviews, of a core", f"{spent:.1f} %", spent, GOALS["overviews"])


def watch_browser(platform: Platform) -> None:
    """What whoever looks waits for."""
    with chromium() as browser:
        weight = max(weigh(open_tab(browser, platform.url)) for _ in range(2))
        show("from the login to a usable overview, transferred", f"{weight:,} B", weight, GOALS["weight"])
        starts = [time_start(open_tab(browser, platform.url)) for _ in range(STARTS)]
        slower = f"login can be typed in, cold cache, processor {THROTTLED}x slower"
        show(slower, told(starts), max(starts), GOALS["interactive"])
        computed = [THROTTLED * spent_start(open_tab(browser, platform.url)) for _ in range(STARTS)]
        show(
            f"{THROTTLED} times what the page computes until then", told(computed), max(computed), GOALS["interactive"]
        )
        searches = time_searches(open_tab(browser, platform.url))
        p95 = quantiles(searches, n=20)[-1]
        show(f"search among {TERMINALS:,} terminals, key to results", told(searches), p95, GOALS["search"])
        dashboard = fill_curves(platform)
        drawn, gaps = time_charts(open_tab(browser, platform.url), dashboard)
        many = f"{CURVES} curves of {POINTS:,} points"
        show(f"{many}, last answer to drawn", f"{drawn:.0f} ms", drawn, GOALS["curves"])
        show(f"{PANS} pans over them, longest time between frames", told(gaps), max(gaps), GOALS["pan"])
        heaps = weigh_heaps(open_tab(browser, platform.url), dashboard, platform)
        grown = (heaps[-1] - heaps[len(heaps) // 2]) / (HOURS / 2)
        each = ", ".join(f"{heap:.1f}" for heap in heaps)
        frames = f"{HOURS} h of live values of {CURVES} variables, heap after each hour"
        show(frames, f"{each} MiB; later {grown:+.2f} MiB an hour", grown, GOALS["memory"])


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


def spent_start(tab: Tab) -> float:
    """Milliseconds that the page's thread computes until the login takes letters, whatever else the processor does."""
    session = tab.page.context.new_cdp_session(tab.page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    tab.page.goto(f"{tab.base}/", wait_until="commit")
    tab.page.wait_for_selector("input[name=username]")
    tab.page.keyboard.type("a")
    figures = {each["name"]: each["value"] for each in session.send("Performance.getMetrics")["metrics"]}
    tab.page.context.close()
    return float(figures["TaskDuration"]) * 1_000


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


async def spent_beside(platform: Platform, overviews: int) -> float:
    """Percent of a core that the platform computes while super users have so many overviews open; nothing happens."""
    headers = {"Authorization": f"Bearer {platform.token}"}
    async with (
        aiohttp.ClientSession(headers=headers, connector=aiohttp.TCPConnector(limit=0)) as client,
        asyncio.TaskGroup() as group,
    ):
        opened = asyncio.Barrier(overviews + 1)
        pages = [group.create_task(look(client, platform.url, opened)) for _ in range(overviews)]
        await opened.wait()
        before, began = processor_s(platform), time.perf_counter()
        await asyncio.sleep(WATCHED_S)
        share = (processor_s(platform) - before) / (time.perf_counter() - began)
        for page in pages:
            page.cancel()
    return 100 * share


async def look(client: aiohttp.ClientSession, url: str, opened: asyncio.Barrier) -> None:
    """What ``platform/console/overview`` asks, as often: ``rates.tsx`` each 5 s, ``page.tsx`` each minute."""
    address = f"{url}/apiproxy/api"
    async with client.ws_connect(address) as live, asyncio.TaskGroup() as group:
        await live.send_json({"action": "subscribe", "actionid": "1", "kinds": ["attention"]})
        await live.receive_json()
        await opened.wait()
        for every_s, fields in ((5, {"action": "get_broker_status"}), (60, {"action": "get_attention", "entries": 6})):
            group.create_task(ask_each(client, address, every_s, fields))


async def ask_each(client: aiohttp.ClientSession, address: str, every_s: float, fields: dict[str, Any]) -> None:
    """Asks for ever, at first after a part of the time: not all pages were opened at once."""
    await asyncio.sleep(random.uniform(0, every_s))
    while True:
        async with client.post(address, json=fields) as answer:
            assert (await answer.json())["code"] == 200
        await asyncio.sleep(every_s)


def processor_s(platform: Platform) -> float:
    """Seconds that the platform's process has computed."""
    fields = Path(f"/proc/{platform.process.pid}/stat").read_text().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


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
    publish(platform, reports)
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


def weigh_heaps(tab: Tab, dashboard: str, platform: Platform) -> list[float]:
    """MiB of JavaScript's heap without garbage, after each eighth of a shift's live values that a page shows."""
    login(tab)
    tab.open(f"#/dashboards/{dashboard}")
    tab.page.wait_for_load_state("networkidle")
    session = tab.page.context.new_cdp_session(tab.page)
    heaps: list[float] = []
    reports = HOURS * 3_600 // EVERY_S
    for part in range(PARTS):
        numbers = range(part * reports // PARTS, (part + 1) * reports // PARTS)
        publish(
            platform, (json.dumps({f"v{each}": wave(number, each) for each in range(CURVES)}) for number in numbers)
        )
        newest = f"{wave(numbers[-1], 0):g}"
        tab.page.locator(".legend", has_text=newest).wait_for(timeout=_FOLLOW_MS)
        session.send("HeapProfiler.collectGarbage")
        heaps.append(session.send("Runtime.getHeapUsage")["usedSize"] / 2**20)
    tab.page.context.close()
    return heaps


def publish(platform: Platform, reports: Iterable[str]) -> None:
    """As the terminal of the curves."""
    login = ["-p", str(platform.mqtt), "-i", "curves", "-u", "u-curves", "-P", "pin-curves"]
    command = ["mosquitto_pub", *login, "-q", "1", "-t", "g/curves/r", "-l"]
    subprocess.run(command, input="\n".join(reports).encode(), check=True)


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
let isAsked = false;  // once a frame: fifty such calls were a third of what a frame of a drag computed
CanvasRenderingContext2D.prototype.stroke = function (...given) {
  stroke.apply(this, given);
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => { isAsked = false; globalThis.drawn = performance.now(); });
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
