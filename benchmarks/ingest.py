"""Ingest: QoS 1 publishes of 10-point JSON from 200 connections, stored and acknowledged, beside the usual stack.

``python benchmarks/ingest.py [--messages N] [--connections N] [--rounds N]`` starts Terrazzo and, in turn, Mosquitto
with a paho subscriber that writes to InfluxDB 1.x, gives both the same precoded load over loopback, waits until all of
it is stored and prints messages per second, CPU seconds per million and the ratio, for each round and as medians.
``--terminals 1 10 200 --windows 20 200`` prints instead what Terrazzo takes of so many terminals with so many messages
unacknowledged each: where few terminals wait for their acknowledgements, the rate is what is on its way by its latency.
Needs ``mosquitto`` and ``influxd``; the load generator runs on the same machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import cpu_clock
from publishers import Load, credentials

from influx_server import InfluxServer
from running import Mosquitto, Platform, ServerProcess, wait_for

Server = ServerProcess | InfluxServer
HERE = Path(__file__).parent
GENERATORS = 2


@dataclass(frozen=True)
class Figure:
    """What one run measured; ``cpu_s`` is of the servers, not of the load."""

    messages: int
    acknowledged_s: float
    stored_s: float
    cpu_s: float

    @property
    def rate(self) -> float:
        return self.messages / self.stored_s

    @property
    def cpu_per_million(self) -> float:
        return self.cpu_s / self.messages * 1e6


def cpu_seconds(servers: list[Server]) -> float:
    return sum(cpu_clock.cpu_seconds(server.pid) for server in servers)


def publish(load: Load, *, settle_s: float = 0.0, begin: Callable[[], object] = lambda: None) -> float:
    """Runs the load from several processes; seconds until the last acknowledgement.

    Args:
        settle_s: between the last connection and the first message.
        begin: called when the messages begin.
    """
    count = min(GENERATORS, len(load.uids))
    parts = [replace(load, uids=load.uids[n::count], seed=n, rate=load.rate / count) for n in range(count)]
    return publish_parts(parts, settle_s=settle_s, begin=begin)[0]


def publish_parts(
    parts: Sequence[Load],
    *,
    program: str = "publishers.py",
    settle_s: float = 0.0,
    begin: Callable[[], object] = lambda: None,
) -> tuple[float, list[dict[str, Any]]]:
    """As ``publish``, each part by a process of its own, which runs a program of this folder; and what each printed."""
    command = [sys.executable, str(HERE / program)]
    workers = [
        subprocess.Popen([*command, part.to_json()], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for part in parts
    ]
    for worker in workers:
        assert worker.stdout is not None
        if worker.stdout.readline() != "connected\n":
            raise SystemExit("the load could not connect")
    time.sleep(settle_s)
    begin()
    started = time.perf_counter()
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    told = []
    for worker in workers:
        assert worker.stdout is not None
        told.append(worker.stdout.readline())  # printed after the last acknowledgement, before it exits
    spent_s = time.perf_counter() - started
    for worker in workers:
        worker.communicate()
    return spent_s, [json.loads(line) for line in told]


def measure(load: Load, servers: list[Server], stored: Callable[[], int]) -> Figure:
    total = load.messages * len(load.uids)
    cpu = cpu_seconds(servers)
    started = time.perf_counter()
    acknowledged = publish(load)
    wait_for(lambda: stored() >= total, f"{total} messages stored", timeout_s=300)
    return Figure(total, acknowledged, time.perf_counter() - started, cpu_seconds(servers) - cpu)


def run_terrazzo(folder: Path, load: Load) -> Figure:
    with Platform(folder / "terrazzo") as platform:
        platform.login()
        config = platform.add_config()
        for uid in load.uids:
            username, pin = credentials(uid)
            platform.add_terminal(uid, config, username=username, pin=pin)

        def stored() -> int:
            span = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00", "page_size": 1}
            pages = [platform.call("get_grid_list", terminal_id=uid, topic=[], **span) for uid in load.uids]
            return sum(page["total_records"] for page in pages)

        figure = measure(replace(load, port=platform.mqtt), [platform], lambda: load.messages * len(load.uids))
        if stored() != figure.messages:
            raise SystemExit(f"acknowledged {figure.messages}, stored {stored()}")
        return figure


def run_peer(folder: Path, load: Load) -> Figure:
    unlimited = ("allow_anonymous true", "max_queued_messages 0", "max_inflight_messages 0")
    with InfluxServer(folder / "influxdb") as influxd, Mosquitto(folder / "mosquitto", lines=unlimited) as mosquitto:
        influxd.query("CREATE DATABASE bench")
        command = [sys.executable, str(HERE / "influx_subscriber.py"), str(mosquitto.port), influxd.url]
        with ServerProcess(command, log=folder / "subscriber.log") as subscriber:
            subscriber.wait_ready(lambda: "ready" in subscriber.log.read_text())

            def stored() -> int:
                series = influxd.query("SELECT count(P0) FROM grid", "bench")
                return int(series[0]["values"][0][1]) if series else 0

            return measure(replace(load, port=mosquitto.port), [mosquitto, influxd, subscriber], stored)


def measure_windows(terminals: list[int], windows: list[int], *, seconds: float) -> None:
    """What Terrazzo takes of few terminals and many, as a table; the least that is on its way first."""
    print("| terminals | window | msg/s | on its way for, ms | CPU us a message |", flush=True)
    print("|---:|---:|---:|---:|---:|", flush=True)
    for count in terminals:
        uids = [f"load-{n:04}" for n in range(count)]
        for window in windows:
            tried = _of_windows(Load("127.0.0.1", 0, uids, 20 * window, window=window))
            messages = max(20 * window, int(tried.rate * seconds / count) // window * window)
            figure = _of_windows(Load("127.0.0.1", 0, uids, messages, window=window))
            rate = figure.messages / figure.acknowledged_s
            way_ms = 1_000 * window * count / rate
            print(f"| {count} | {window} | {rate:,.0f} | {way_ms:.1f} | {figure.cpu_per_million:.1f} |", flush=True)


def _of_windows(load: Load) -> Figure:
    with tempfile.TemporaryDirectory() as name:
        return run_terrazzo(Path(name), load)


def show(name: str, figure: Figure) -> None:
    print(
        f"{name:34} {figure.rate:>10,.0f} msg/s stored   {figure.cpu_per_million:>6.1f} CPU s per million   "
        f"acknowledged in {figure.acknowledged_s:.1f} s, stored in {figure.stored_s:.1f} s",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connections", type=int, default=200)
    parser.add_argument("--messages", type=int, default=2500, help="a connection, for Terrazzo")
    parser.add_argument("--peer-messages", type=int, default=500, help="a connection, for the other stack")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--terminals", type=int, nargs="+", help="of a table of windows")
    parser.add_argument("--windows", type=int, nargs="+", default=[20, 200])
    parser.add_argument("--seconds", type=float, default=5.0, help="of each row of that table")
    arguments = parser.parse_args()
    if arguments.terminals:
        measure_windows(arguments.terminals, arguments.windows, seconds=arguments.seconds)
        return
    uids = [f"load-{n:04}" for n in range(arguments.connections)]
    ratios = []
    for round_number in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as name:
            ours = run_terrazzo(Path(name), Load("127.0.0.1", 0, uids, arguments.messages))
            theirs = run_peer(Path(name), Load("127.0.0.1", 0, uids, arguments.peer_messages))
        print(f"round {round_number + 1}")
        show("Terrazzo", ours)
        show("Mosquitto + paho + InfluxDB", theirs)
        ratios.append(ours.rate / theirs.rate)
        print(f"{'ratio':34} {ratios[-1]:>10.1f}")
    print(f"median ratio {statistics.median(ratios):.1f}")


if __name__ == "__main__":
    main()
