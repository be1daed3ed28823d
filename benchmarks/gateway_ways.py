"""What each way of an HTTP request through the gateway costs the server, in CPU.

``python benchmarks/gateway_ways.py [--seconds S] [--rounds N] [--only TEXT]`` starts Terrazzo as it is, without known
heads (``api/known_heads.py``), and with neither these nor answers that the gateway writes itself
(``api/json_response.py``), each with uvloop and with asyncio's own loop. All get the same requests in turn, on 1 and on
16 connections, with the same head each time and with another one. Prints the CPU of the server in us a request: medians
over the rounds. ``python benchmarks/gateway_ways.py WAY,LOOP serve ...`` is one of these servers.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from itertools import product
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from cpu_clock import cpu_seconds
from publishers import credentials
from requesters import Requests

from running import Platform
from terrazzo.api.transports import http
from terrazzo.api.transports.known_heads import KnownHeads
from terrazzo.cli import main as terrazzo

HERE = Path(__file__).parent
WAYS = ("as it is", "no known heads", "aiohttp alone")
LOOPS = ("uvloop", "asyncio")
TERMINALS = [f"bench-{number:03}" for number in range(100)]
REQUESTS: dict[str, dict[str, Any]] = {
    "ping": {"action": "ping", "message": "x"},
    "get_last_grid": {"action": "get_last_grid", "terminal_id": TERMINALS[1], "topic": ["r"]},
    "get_terminal_list, a page of 20": {"action": "get_terminal_list", "page_index": 2, "page_size": 20},
}


def serve(way: str, loop: str) -> None:
    """Runs the command line of Terrazzo with one of the ways and loops."""
    changed: Any = None
    if loop == "asyncio":
        sys.modules["uvloop"] = changed  # so that it can't be imported
    if way != WAYS[0]:
        KnownHeads.find = _find_none  # type: ignore[method-assign]
    if way == WAYS[2]:
        http._is_plain = _is_never_plain
    terrazzo()


def _find_none(heads: KnownHeads, data: bytes) -> None:
    return None


def _is_never_plain(request: object) -> bool:
    return False


def open_platform(folder: Path, way: str, loop: str) -> Platform:
    """A server with terminals."""

    class Varied(Platform):
        program = (str(HERE / "gateway_ways.py"), f"{way},{loop}")

    platform = Varied(folder / f"{way}, {loop}").login()
    config = platform.add_config()
    for uid in TERMINALS:
        username, pin = credentials(uid)
        platform.add_terminal(uid, config, username=username, pin=pin)
    return platform


def cpu_us(platform: Platform, requests: Requests) -> float:
    """The server's, for one request."""
    before = cpu_seconds(platform.pid)
    command = [sys.executable, str(HERE / "requesters.py"), requests.to_json()]
    answered = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return (cpu_seconds(platform.pid) - before) / answered * 1e6


def measure(platforms: dict[tuple[str, str], Platform], seconds: float, rounds: int, only: str) -> None:
    print(f"| request | connections | head | loop | {' | '.join(WAYS)} | known heads | own answers |")
    print("| --- | ---: | --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for (name, body), connections, is_new, loop in product(REQUESTS.items(), (1, 16), (False, True), LOOPS):
        head = "new" if is_new else "same"
        if only not in f"{name} {connections} {head} {loop}":
            continue
        figures: dict[str, list[float]] = {way: [] for way in WAYS}
        for number in range(rounds):
            for way in WAYS if number % 2 else WAYS[::-1]:
                platform = platforms[way, loop]
                token = platform.token or ""
                requests = Requests(platform.http, connections, seconds, token, json.dumps(body), is_new)
                figures[way].append(cpu_us(platform, requests))
        as_is, no_heads, alone = (statistics.median(figures[way]) for way in WAYS)
        print(
            f"| {name} | {connections} | {head} | {loop} | {as_is:.0f} | {no_heads:.0f} | {alone:.0f} "
            f"| {1 - as_is / no_heads:.0%} | {1 - no_heads / alone:.0%} |",
            flush=True,
        )


def main() -> None:
    if sys.argv[2:3] == ["serve"]:
        way, loop = sys.argv.pop(1).split(",")
        serve(way, loop)
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=0.7)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="", help="rows with this in request, connections, head and loop")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
        platforms = {
            (way, loop): stack.enter_context(open_platform(Path(name), way, loop)) for way, loop in product(WAYS, LOOPS)
        }
        measure(platforms, arguments.seconds, arguments.rounds, arguments.only)


if __name__ == "__main__":
    main()
