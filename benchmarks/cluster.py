"""Several nodes on one machine: QoS 1 publishes of 10 points, mapped, stored by two replicas, acknowledged by fronts.

``python benchmarks/cluster.py [--fronts N] [--connections N] [--messages N] [--rounds N]`` starts three servers of a
log that sync what they acknowledge, PostgreSQL, a leader, a node that stands by, and fronts, with terminals that feed
objects of 20 variables. Each round publishes ``--messages`` a connection as fast as they are acknowledged, then for
``--paced-seconds`` at half of that rate, and waits each time until both replicas have all. Printed are messages per
second acknowledged, CPU seconds per million by kind of process (*sealing*: processes of both nodes that pack history,
of this round and those before; it goes on afterwards), how long blocks of messages (25, or ``--block``) waited for
their last PUBACK, and before the first round what an idle cluster has in memory (PSS). At the end everything is
ended in order and both stores are read: each message has a number, and has to be there once and in order, and the
replicas have to be equal in each series, mapped ones included. Exits with 1 if not.

Load, log servers and PostgreSQL (which isn't synced here, and has next to nothing to do) share the machine with it.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import cpu_clock
import psutil
from mapping_parts import rows
from numbered_publishers import number_of
from publishers import BLOCK, Load, credentials

from ingest import publish_parts
from local_cluster import Address, LocalCluster, local_cluster
from open_stores import open_rocks, supervisor
from running import wait_for
from terrazzo.backup.migration.series import END_US, measure_series
from terrazzo.client import Client

BY = {"created_by": 1, "last_modified_by": 1, "is_available": 1}
MIB = 2**20
SETTLED_S = 1.0  # for what connections leave to the background
IDLE_S = 5.0
SETTINGS = {
    "limits": {"connects_per_second": 100_000},
    "stream": {"log_gib": 2.0, "in_gib": 1.0},
}
NODES = ("leader", "replica")
OURS = ("front", *NODES)


@dataclass
class Figure:
    """What one run measured. ``cpu_s``: by kind of process; ``stored_s``: until both replicas had all."""

    messages: int
    acknowledged_s: float = 0.0
    stored_s: float = 0.0
    cpu_s: dict[str, float] = field(default_factory=dict)
    waited_ms: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.messages / self.acknowledged_s

    def per_million(self, *kinds: str) -> float:
        return sum(self.cpu_s[kind] for kind in kinds) / self.messages * 1e6

    def waited(self, percent: float) -> float:
        ordered = sorted(self.waited_ms)
        return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


class Bench:
    """A cluster that is ready, with its terminals and objects."""

    def __init__(self, cluster: LocalCluster, uids: Sequence[str], window: int) -> None:
        self.uids = list(uids)
        self.sent = 0  # by each connection so far
        self._cluster = cluster
        self._window = window
        leader = cluster.leader()
        assert leader is not None
        self.leader = leader
        (self.replica,) = (each for each in cluster.nodes if each != leader)

    def prepare(self) -> None:
        """Makes terminals, objects and their mapping, and waits until each front lets them in."""
        url = f"http://127.0.0.1:{self.leader.http}"
        with Client(url, username="admin", password=self._cluster.password) as client:
            config = client.call("create_terminal_config", name="load", **BY)["uid"]
            for uid in self.uids:
                username, pin = credentials(uid)
                given = {"type": "Adapter-II", "mode": "pwd", "access": "all", "topic": "all"}
                login = {"username": username, "pin": pin}
                client.call("create_terminal", uid=uid, name=uid, config_id=config, **login, **given, **BY)
            mapping = client.call("create_mapping", name="m", script=json.dumps(rows()), **BY)["uid"]
            for pair in zip(self.uids[::2], self.uids[1::2], strict=False):
                client.call("create_object", name=pair[0], mapping_id=mapping, terminal_list=list(pair))
        time.sleep(2 * SETTLED_S)  # changes of the registry are in force everywhere within one

    def kinds(self) -> dict[str, list[psutil.Process]]:
        """All processes by kind, with those that they have begun."""
        cluster = self._cluster
        roots = {
            "front": [cluster.processes[each.name].process.pid for each in cluster.fronts],
            "leader": [cluster.processes[self.leader.name].process.pid],
            "replica": [cluster.processes[self.replica.name].process.pid],
            "log": [each.pid for each in cluster.servers],
            "PostgreSQL": [cluster.postgresql.pid],
        }
        return {kind: [each for pid in pids for each in tree(pid)] for kind, pids in roots.items()}

    def memory_mib(self) -> dict[str, float]:
        """What each kind of process has, what is shared in parts."""
        return {kind: sum(map(memory_of, found)) / MIB for kind, found in self.kinds().items()}

    def run(self, messages: int, *, rate: float = 0.0, at_once: int = BLOCK) -> Figure:
        """Publishes so many on each connection; everything is stored at the end."""
        fronts = self._cluster.fronts
        shares = [self.uids[at :: len(fronts)] for at in range(len(fronts))]
        load = Load("127.0.0.1", 0, [], messages, self._window // at_once * at_once, first=self.sent, at_once=at_once)
        parts = [
            replace(load, port=front.mqtt, uids=share, seed=at, rate=rate * len(share) / len(self.uids))
            for at, (front, share) in enumerate(zip(fronts, shares, strict=True))
        ]
        figure = Figure(messages * len(self.uids))
        before: list[dict[str, float]] = []
        started: list[float] = []

        def begin() -> None:
            before.append(self._cpu())
            started.append(time.perf_counter())

        spent_s, told = publish_parts(parts, program="numbered_publishers.py", settle_s=SETTLED_S, begin=begin)
        self.sent += messages
        figure.acknowledged_s = spent_s
        wait_for(self._is_stored, "both replicas have all", timeout_s=600)
        figure.stored_s = time.perf_counter() - started[0]
        figure.cpu_s = {kind: used - before[0][kind] for kind, used in self._cpu().items()}
        figure.cpu_s["load"] = sum(each["cpu_s"] for each in told)
        figure.waited_ms = [wait for each in told for wait in each["waited_ms"]]
        return figure

    def _cpu(self) -> dict[str, float]:
        """CPU seconds by kind so far; what a node has begun, and what of that has ended, is its sealing."""
        used = {"sealing": 0.0}
        for kind, found in self.kinds().items():
            if kind in NODES:
                node, *begun = found
                used[kind] = cpu_of(node)
                used["sealing"] += ended_cpu_of(node) + sum(cpu_of(each) + ended_cpu_of(each) for each in begun)
            else:
                used[kind] = sum(cpu_of(each) + ended_cpu_of(each) for each in found)
        return used

    def _is_stored(self) -> bool:
        """Whether the leader has stored what fronts have taken, and the replica what the leader has."""
        stored = figures(self.leader)
        if (
            stored["terrazzo_fronts_messages_total"] < self.sent * len(self.uids)
            or stored["terrazzo_fronts_open_frames"]
        ):
            time.sleep(0.1)
            return False
        sequence = "terrazzo_cluster_sequence"
        return figures(self.replica)[sequence] >= stored[sequence]


def tree(pid: int) -> list[psutil.Process]:
    """A process and those that it has begun."""
    found = psutil.Process(pid)
    return [found, *found.children(recursive=True)]


def cpu_of(process: psutil.Process) -> float:
    """CPU seconds of a process; 0 where it has ended meanwhile."""
    try:
        return cpu_clock.cpu_seconds(process.pid)
    except psutil.NoSuchProcess:
        return 0.0


def ended_cpu_of(process: psutil.Process) -> float:
    """CPU seconds of those that a process had begun and that have ended."""
    try:
        used = process.cpu_times()
        return float(used.children_user + used.children_system)
    except psutil.NoSuchProcess:
        return 0.0


def memory_of(process: psutil.Process) -> int:
    """Bytes of a process, of pages that several have its part."""
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0


def figures(node: Address) -> dict[str, float]:
    """The figures without labels of ``/metrics``."""
    with urllib.request.urlopen(f"http://127.0.0.1:{node.http}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    pairs = (line.split() for line in lines if line[:1] != "#" and "{" not in line)
    return {name: float(value) for name, value in pairs}


def check(cluster: LocalCluster, uids: Sequence[str], sent: int) -> list[str]:
    """What is wrong with the stores of the nodes, which have ended."""
    stores = {each.name: asyncio.run(read(cluster.folder / each.name / "series", uids)) for each in cluster.nodes}
    wrong = []
    for name, (numbers, _) in stores.items():
        for uid, found in numbers.items():
            if found != list(range(sent)):
                lost, twice = sent - len(set(found)), len(found) - len(set(found))
                wrong.append(f"{name}, {uid}: {lost} of {sent} are missing, {twice} are there twice, or out of order")
    (first, (_, sums)), *others = stores.items()
    for name, (_, other) in others:
        different = sorted({series for series, _ in sums.items() ^ other.items()})
        wrong += [f"{first} and {name} differ in {series}" for series in different]
    if not any(series.startswith("m/") for series in sums):
        wrong.append("nothing is mapped")
    return wrong


async def read(folder: Path, uids: Sequence[str]) -> tuple[dict[str, list[int]], dict[str, tuple[int, str]]]:
    """Of each terminal the numbers of its messages as they are stored; of each series its records and their SHA-256."""
    tasks = supervisor()
    store = await open_rocks(folder, tasks)
    try:
        numbers: dict[str, list[int]] = {}
        for uid in uids:
            numbers[uid] = []
            async for records in store.scan([f"g/{uid}/r"], 0, END_US):
                numbers[uid] += [number_of(record.body) for record in records]
        return numbers, await measure_series(store, 0, lambda *_: None, "")
    finally:
        await store.close()
        await tasks.close()


@contextlib.contextmanager
def started(fronts: int, uids: Sequence[str], window: int) -> Iterator[tuple[LocalCluster, Bench]]:
    """A cluster with the terminals of the load."""
    names = [f"f{number + 1}" for number in range(fronts)]
    with local_cluster(threading.Event(), is_anywhere=True, fronts=names, settings=SETTINGS) as cluster:
        cluster.start()
        bench = Bench(cluster, uids, window)
        bench.prepare()
        yield cluster, bench


def show(name: str, figure: Figure) -> None:
    parts = ", ".join(f"{kind} {figure.per_million(kind):.1f}" for kind in figure.cpu_s)
    print(
        f"{name:10} {figure.rate:>8,.0f} msg/s acknowledged, both replicas had all after {figure.stored_s:.1f} of"
        f" {figure.acknowledged_s:.1f} s   PUBACK p50 {figure.waited(50):.0f} ms, p99 {figure.waited(99):.0f} ms\n"
        f"{'':10} {figure.per_million(*OURS):>8.1f} CPU s per million in our processes without sealing ({parts})",
        flush=True,
    )


def show_memory(found: dict[str, float]) -> None:
    parts = ", ".join(f"{kind} {size:.0f}" for kind, size in found.items())
    print(f"idle: {sum(found.values()):.0f} MiB in all ({parts})", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fronts", type=int, default=2)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--messages", type=int, default=2_500, help="a connection and round, a multiple of 25")
    parser.add_argument("--window", type=int, default=200, help="of each connection, a multiple of 25")
    parser.add_argument("--paced-seconds", type=float, default=10.0, help="at half of the rate; 0: not at all")
    parser.add_argument("--paced-rate", type=float, default=0.0, help="messages a second instead of half of the rate")
    parser.add_argument(
        "--block", type=int, default=BLOCK, help="messages that a connection sends at once at that rate"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pids", action="store_true", help="print them, for a profiler")
    given = parser.parse_args()
    uids = [f"load-{n:04}" for n in range(given.connections)]
    full: list[Figure] = []
    with started(given.fronts, uids, given.window) as (cluster, bench):
        time.sleep(IDLE_S)
        show_memory(bench.memory_mib())
        if given.pids:
            print({kind: [each.pid for each in found] for kind, found in bench.kinds().items()}, flush=True)
        for number in range(given.rounds):
            full.append(bench.run(given.messages))
            show(f"round {number + 1}", full[-1])
            rate = given.paced_rate or full[-1].rate / 2
            paced = int(rate * given.paced_seconds / len(uids)) // given.block * given.block
            if paced:
                show(f"{rate:,.0f}/s", bench.run(paced, rate=rate, at_once=given.block))
        cluster.end()
        wrong = check(cluster, uids, bench.sent)
    costs = statistics.median(each.per_million(*OURS) for each in full)
    sealing = statistics.median(each.per_million("sealing") for each in full)
    rate = statistics.median(each.rate for each in full)
    print(f"median {rate:,.0f} msg/s, {costs:.1f} CPU s per million, and {sealing:.1f} of sealing")
    total = bench.sent * len(uids)
    print(
        "\n".join(wrong[:20])
        or f"all {total:,} messages are stored once and in order in each replica, and these are equal"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
