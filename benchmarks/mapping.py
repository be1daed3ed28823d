"""Mapping as users meet it: what it takes from the ingest, and whether more objects make a message cost more.

``python benchmarks/mapping.py [--messages N] [--rounds N]`` starts the platform with 1,000 terminals that feed 500
objects of 20 variables. Two other processes publish precoded 10-point JSON at QoS 1 on 1,000 connections, with the
mapping switched off and on in turn; what is compared is messages per second until the last acknowledgement, and the
platform's CPU a message, connecting left out. Then the ingest in one process (``mapping_parts.py``) without and with
mapping, for 10 to 10,000 objects with two terminals each, whose messages come 20 at a time from terminals in random
order: first from the terminals of ten objects, so that only how many objects there are differs, then from all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import statistics
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from mapping_parts import batches, ingest, new_engine, rows
from publishers import Load, credentials

from ingest import cpu_seconds, publish
from running import Platform
from terrazzo_broker.hooks import Inbound

TERMINALS = 1_000
WINDOW = 25  # publishes that each connection has unacknowledged
OBJECTS = (10, 100, 1_000, 10_000)
MESSAGES = 200_000  # in one process
SETTLED_S = 2.0  # for what the run before left to the background
ENVIRONMENT = {"TERRAZZO_LIMITS__CONNECTS_PER_SECOND": "100000"}


class Figure(NamedTuple):
    rate: float  # messages per second, stored and acknowledged
    cpu_us: float  # of the platform, a message


def prepare(platform: Platform, uids: list[str]) -> str:
    """Terminals, objects and their mapping; its uid."""
    platform.login()
    config = platform.add_config()
    for uid in uids:
        username, pin = credentials(uid)
        platform.add_terminal(uid, config, username=username, pin=pin)
    mapping: str = platform.call("create_mapping", **record(on=True))["uid"]
    for pair in zip(uids[::2], uids[1::2], strict=True):
        platform.call("create_object", name=pair[0], mapping_id=mapping, terminal_list=list(pair))
    return mapping


def record(*, on: bool) -> dict:
    """The mapping's record."""
    return {"name": "m", "script": json.dumps(rows()), "created_by": 1, "last_modified_by": 1, "is_available": int(on)}


def records(platform: Platform, uids: list[str]) -> int:
    """How many grid records of these terminals are stored."""
    span = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00", "page_size": 1}
    pages = [platform.call("get_grid_list", terminal_id=uid, topic=[], **span) for uid in uids]
    return sum(page["total_records"] for page in pages)


def measure(platform: Platform, load: Load) -> Figure:
    """Runs the load until the last acknowledgement."""
    before: list[float] = []
    spent_s = publish(load, settle_s=SETTLED_S, begin=lambda: before.append(cpu_seconds([platform])))
    used_s, total = cpu_seconds([platform]) - before[0], load.messages * len(load.uids)
    return Figure(total / spent_s, used_s / total * 1e6)


def through_broker(rounds: int, messages: int) -> None:
    """Prints each round without and with mapping, and the medians; fails unless everything acknowledged is stored."""
    uids, figures = [f"l{number:04}" for number in range(TERMINALS)], []
    with tempfile.TemporaryDirectory() as folder, Platform(Path(folder) / "terrazzo", env=ENVIRONMENT) as platform:
        mapping = prepare(platform, uids)
        load = Load("127.0.0.1", platform.mqtt, uids, messages, window=WINDOW)
        for _ in range(rounds):
            platform.call("update_mapping", uid=mapping, **record(on=False))
            plain = measure(platform, load)
            platform.call("update_mapping", uid=mapping, **record(on=True))
            mapped = measure(platform, load)
            figures.append((mapped.rate / plain.rate, plain.cpu_us / mapped.cpu_us))
            texts = [f"{figure.rate:>9,.0f} msg/s {figure.cpu_us:>5.1f} us CPU" for figure in (plain, mapped)]
            ratios = "ratio {:.2f}, by CPU {:.2f}".format(*figures[-1])
            print(f"without {texts[0]}   with mapping {texts[1]}   {ratios}", flush=True)
        sent = 2 * rounds * messages * TERMINALS
        if records(platform, uids) != sent:
            raise SystemExit(f"acknowledged {sent}, stored {records(platform, uids)}")
    by_rate, by_cpu = (statistics.median(column) for column in zip(*figures, strict=True))
    print(f"median ratio {by_rate:.2f}, by CPU {by_cpu:.2f}", flush=True)


def by_objects(rounds: int, *, reporting: int) -> None:
    """Prints the CPU of a message in this process, for few and many objects, of which ``reporting`` get messages."""
    for objects in OBJECTS:
        load = batches(MESSAGES, 2 * min(objects, reporting))
        plain_us = statistics.median(used(load, objects, mapped=False) for _ in range(rounds))
        mapped_us = statistics.median(used(load, objects, mapped=True) for _ in range(rounds))
        costs = f"without {plain_us:.1f} us CPU   with mapping {mapped_us:.1f} us   added {mapped_us - plain_us:.1f} us"
        print(f"{objects:>6} objects   {costs}", flush=True)


def used(load: list[list[Inbound]], objects: int, *, mapped: bool) -> float:
    """Microseconds of CPU a message, decoded, shaped, committed and settled in this process."""
    gc.collect()
    return asyncio.run(ingest(load, new_engine(objects) if mapped else None))[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200, help="a connection, a multiple of 25")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    through_broker(arguments.rounds, arguments.messages)
    gc.set_threshold(30_000, 0, 1_500)  # as the platform does
    for reporting in (OBJECTS[0], OBJECTS[-1]):
        print(f"in one process, up to {reporting} objects reporting", flush=True)
        by_objects(arguments.rounds, reporting=reporting)


if __name__ == "__main__":
    main()
