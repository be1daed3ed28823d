"""A firmware campaign over a fleet that is not there: how long its steps take, and how long they hold the event loop.

``python benchmarks/campaign_fleet.py [--terminals N] [--commands N] [--json FILE]``: imports terminals that never
connect, makes a campaign over all of them, starts it until so many have their commands, pauses, resumes and aborts
it, and starts the platform again in between. Meanwhile somebody else pings. Seconds, and milliseconds of the loop's
processor time between two looks, 10 ms apart, at the most since the platform started.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import psutil
from attacks.company import Company
from random_content import metrics_of

from running import Platform, wait_for
from terrazzo.client import Client

PATIENCE_S = 600.0
FAIR_MS = 100.0  # of a ping, p99


class Pings:
    """Somebody of another company asks all the time; ``waits_ms`` of each."""

    def __init__(self, platform: Platform) -> None:
        self.waits_ms: list[float] = []
        platform.login()
        self._client = Client(platform.url, token=platform.token)
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._ping)

    def __enter__(self) -> Pings:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()

    def _ping(self) -> None:
        while not self._ends.wait(0.02):
            began_s = time.perf_counter()
            self._client.call("ping")
            self.waits_ms.append((time.perf_counter() - began_s) * 1_000)


class Campaign:
    """A company's campaign over all its terminals; it outlives the platform's process."""

    def __init__(self, platform: Platform, count: int) -> None:
        self._company = Company(platform, "fleet")
        self._firmware = self._company.firmware()
        self._company.terminals(count, config=self._firmware)
        self.uid = ""

    def create(self) -> None:
        """Makes it."""
        asked = {"config_id": self._firmware, "unit": "LUA", "waves": [100], "is_available": 1}
        self.uid = self._company.call("create_campaign", name="all", created_by=1, last_modified_by=1, **asked)["uid"]

    def become(self, action: str) -> None:
        """``start_campaign``, ``pause_campaign``, ``abort_campaign``."""
        self._company.call(action, uid=self.uid)

    def waits_until(self, is_so: Callable[[int], bool], what: str) -> None:
        """Until the number of commands that wait is so."""

        def looks() -> bool:
            found = self._company.call("get_command_list", state="queued", page_size=1)
            return is_so(int(found["total_pages"]))

        wait_for(looks, what, timeout_s=PATIENCE_S)

    def is_told(self, commands: int) -> bool:
        """Whether the first terminal that waits, behind so many that have commands, knows that it was aborted.

        They are told from the last to the first.
        """
        for page in itertools.count(commands // 100):
            asked = {"uid": self.uid, "state": "pending", "page_size": 100, "page_index": page}
            waiting = self._company.call("get_campaign_terminal_list", **asked)["data"]
            if not waiting:
                return True
            for row in waiting:
                if not row["command_uid"]:
                    return bool(row["reason"])
        raise AssertionError("pages end")


def measure(terminals: int, commands: int) -> dict[str, float]:
    """The figures, by name."""
    found: dict[str, float] = {}

    @contextmanager
    def timed(name: str) -> Iterator[None]:
        began_s = time.perf_counter()
        yield
        found[name] = time.perf_counter() - began_s
        print(f"{name}: {found[name]:.2f}", file=sys.stderr, flush=True)

    with tempfile.TemporaryDirectory() as name:
        data = Path(name) / "data"
        with Platform(data) as platform:
            platform.login()
            with timed("import, s"):
                campaign = Campaign(platform, terminals)
        with platform.again() as platform, Pings(platform) as pings:
            with timed("made, s"):
                campaign.create()
            campaign.become("start_campaign")
            with timed(f"{commands:,} commands, s"):
                campaign.waits_until(lambda count: count >= commands, "commands are given")
            with timed("paused and taken back, s"):
                campaign.become("pause_campaign")
                campaign.waits_until(lambda count: count == 0, "all are taken back")
            campaign.become("start_campaign")
            campaign.waits_until(lambda count: count >= commands, "commands are given")
            found |= _at_most("running", platform, pings)
        with platform.again() as platform, Pings(platform) as pings:
            with timed("goes on after a start, s"):  # where commands of before are not taken back: they may be there
                campaign.waits_until(lambda count: count >= commands + 100, "more commands are given")
            with timed("aborted, s"):
                campaign.become("abort_campaign")
                wait_for(lambda: campaign.is_told(commands), "all know", timeout_s=PATIENCE_S)
            found |= _at_most("after a start", platform, pings)
    return found


def _at_most(when: str, platform: Platform, pings: Pings) -> dict[str, float]:
    metrics = metrics_of(platform)
    waits_ms = sorted(pings.waits_ms)
    return {
        f"{when}: loop, ms": metrics["terrazzo_loop_cpu_max_seconds", ""] * 1_000,
        f"{when}: ping p99, ms": waits_ms[int(len(waits_ms) * 0.99)],
        f"{when}: ping at the most, ms": waits_ms[-1],
        f"{when}: memory, MB": psutil.Process(platform.pid).memory_info().rss / 1e6,
    }


def main() -> int:
    """Prints a table; 1 where somebody else's pings waited for longer than is fair."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--terminals", type=int, default=100_000)
    parser.add_argument("--commands", type=int, default=5_000)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    found: dict[str, Any] = measure(options.terminals, options.commands)
    rows = [f"| {name} | {value:.2f} |" for name, value in found.items()]
    print("\n".join(["| what | figure |", "|---|---:|", *rows]))
    if options.json is not None:
        options.json.write_text(json.dumps(found))
    return int(any(value > FAIR_MS for name, value in found.items() if name.endswith("p99, ms")))


if __name__ == "__main__":
    sys.exit(main())
