"""Random content through every entry of a platform: does anybody wait for it, does anything end by it?

``python benchmarks/random_content.py [--seconds S] [--seed N] [--pause S] [--loaded] [--large KINDS]`` starts a
platform and sends it packets, requests, files and frames that are sound, strange or broken, from one worker for each of
``nonsense/ways.py`` and over a bridge; some requests and reports are as large as may come (``nonsense/large.py``).
Prints how many there were and what was answered; exits 1 where a task of the platform ended, a request was an internal
error, the log has an unexpected one, or the event loop was late by more than 100 ms (``--loaded``, on a machine that
others use: worked for more than 100 ms between two looks, by processor time).
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random

sys.path.append(str(Path(__file__).parents[1] / "tests"))
sys.path.append(str(Path(__file__).parents[1] / "tests" / "parsers"))

import aiohttp
from nonsense.site import Site
from nonsense.values import Values
from nonsense.ways import WAYS, Way, far_side

from running import Platform
from support import free_port

LATE_S = 0.1
PATIENCE_S, LOADED_PATIENCE_S = 30.0, 120.0  # of one round
MEND_S = 2.0  # between two looks at whether users and terminals are there
_SAMPLE = re.compile(r"^(terrazzo_\w+)(?:\{([^}]*)\})? (\S+)$", re.MULTILINE)
_UNEXPECTED = re.compile(r"^.*\n.*(?:Traceback|internal error).*(?:\n(?: .*)?(?!\d{4}-).*){0,60}", re.MULTILINE)

BRIDGE = """
[[bridge]]
name = "far"
url = "mqtt://127.0.0.1:{port}"
protocol = "3.1.1"
company_id = 2
retry_s = 1
in = [{{ filter = "#", qos = 1 }}]
"""


@contextmanager
def started(values: Values, large: Collection[str]) -> Iterator[tuple[Site, int]]:
    """A platform on a folder of its own, and the port where its bridge looks for the far side."""
    far, tcp = free_port(), free_port()
    environment = {
        "TERRAZZO_LIMITS__LOGIN_FAILURES": "0",
        "TERRAZZO_TCP__ENABLED": "true",
        "TERRAZZO_TCP__PORT": str(tcp),
    }
    with tempfile.TemporaryDirectory(prefix="random-content-") as name:
        config = Path(name) / "terrazzo.toml"
        config.write_text(BRIDGE.format(port=far))
        platform = Platform(Path(name) / "data", env=environment, arguments=("--config", str(config)))
        try:
            ports = {"http": platform.http, "mqtt": platform.mqtt, "websocket": platform.websocket, "tcp": tcp}
            yield Site(platform.login(), {**ports, "mqtt_websocket": platform.ports[3]}, values, large=large), far
        finally:
            if platform.process.poll() is None:
                platform.stop()


async def send(site: Site, far: int, *, seconds: float, pause_s: float, patience_s: float) -> None:
    """All ways at once, each round after the one before it and a pause."""
    end_s = time.monotonic() + seconds
    server = await asyncio.start_server(partial(far_side, site), "127.0.0.1", far)
    async with server, aiohttp.ClientSession() as site.http, asyncio.TaskGroup() as group:
        group.create_task(mend(site, end_s), name="mend")
        for name, way in WAYS.items():
            group.create_task(repeat(site, name, way, end_s, pause_s, patience_s), name=name)


async def repeat(site: Site, name: str, way: Way, end_s: float, pause_s: float, patience_s: float) -> None:
    """One way over and over; that the platform ends a connection is its right."""
    while time.monotonic() < end_s:
        try:
            async with asyncio.timeout(patience_s):
                await way(site)
        except TimeoutError:
            site.faults.append(f"{name}: not over within {patience_s:.0f} s")
        except (OSError, EOFError, aiohttp.ClientError) as error:
            site.counts[f"{name}: {type(error).__name__}"] += 1
        site.counts[f"{name} rounds"] += 1
        await asyncio.sleep(pause_s)


async def mend(site: Site, end_s: float) -> None:
    """Makes users and terminals again that random requests have deleted."""
    while time.monotonic() < end_s:
        await asyncio.sleep(MEND_S)
        await asyncio.to_thread(site.mend)


Metrics = dict[tuple[str, str], float]


def metrics_of(platform: Platform) -> Metrics:
    """By name and labels."""
    with urllib.request.urlopen(f"{platform.url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    return {(name, labels): float(value) for name, labels, value in _SAMPLE.findall(text)}


def found_wrong(site: Site, before: Metrics, *, is_loaded: bool) -> list[str]:
    """What must not be."""
    platform, found = site.platform, [*site.faults]
    if platform.process.poll() is not None:
        return [*found, f"the platform has ended with {platform.process.returncode}"]
    after = metrics_of(platform)
    for (name, labels), value in after.items():
        if name in ("terrazzo_task_failures_total", "terrazzo_listener_failures_total") and value > before.get(
            (name, labels), 0
        ):
            found.append(f"{name} {labels}: {value:.0f}")
        if name == "terrazzo_task_up" and not value:
            found.append(f"{labels} is down")
    watched = "terrazzo_loop_cpu_max_seconds" if is_loaded else "terrazzo_loop_delay_max_seconds"
    if (longest_s := after[watched, ""]) > LATE_S:
        found.append(f"{watched} is {longest_s:.3f}")
    found += [f"not ready: {part}" for part in platform.unready_parts()]
    return found + _UNEXPECTED.findall(platform.log.read_text(errors="replace"))


def tell(site: Site, after: Metrics) -> None:
    """What was sent and answered, and how the loop fared."""
    rounds = Counter(
        {name.removesuffix(" rounds"): each for name, each in site.counts.items() if name.endswith("rounds")}
    )
    for name, count in sorted(rounds.items()):
        answers = {what.partition(": ")[2]: n for what, n in site.counts.items() if what.startswith(f"{name}: ")}
        print(f"{name:20} {count:6,} rounds  {answers or ''}")
    for name in ("terrazzo_loop_delay_max_seconds", "terrazzo_loop_cpu_max_seconds", "terrazzo_loop_held_total"):
        print(f"{name} {after[name, '']:.3f}")


def main() -> None:
    """Exits 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--pause", type=float, default=0.01, help="seconds after each round of a worker")
    parser.add_argument("--loaded", action="store_true", help="others use the machine: processor time counts")
    parser.add_argument("--large", default="requests,reports", help="what is as large as may come now and then")
    options = parser.parse_args()
    with started(Values(Random(options.seed)), options.large.split(",")) as (site, far):
        before = metrics_of(site.platform)
        patience_s = LOADED_PATIENCE_S if options.loaded else PATIENCE_S
        asyncio.run(send(site, far, seconds=options.seconds, pause_s=options.pause, patience_s=patience_s))
        wrong = found_wrong(site, before, is_loaded=options.loaded)
        held = [line for line in site.platform.log.read_text(errors="replace").splitlines() if "was held for" in line]
        if site.platform.process.poll() is None:
            tell(site, metrics_of(site.platform))
    for line in held:
        print(line[:600])
    if wrong:
        raise SystemExit("\n".join(["WRONG:", *(each[:6_000] for each in wrong[:20])]))
    print("nothing was wrong")


if __name__ == "__main__":
    main()
