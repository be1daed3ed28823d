"""The broker beside Mosquitto and amqtt: one run, the same load generator; prints the tables of README.md as Markdown.

``python benchmarks/broker.py [--seconds 1.5] [--only fan-in] [--peers terrazzo,mosquitto,amqtt]``
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil
from broker_clients import connect
from broker_latency import Latency, Loaded, alone, beside_load
from broker_peers import NAMES, Peer, running, versions
from broker_scenarios import Rate, Scenario, measure, scenarios

Measured = TypeVar("Measured", Rate, Loaded)
Rates = dict[str, dict[str, Rate]]
# A measurement is repeated once when others took more of the machine than this share of a core.
DISTURBED_CPU = 0.25
# Rows whose writes are those of the load, 10 packets: half of a rate with larger blocks would be far more than half.
P2P = {0: ("p2p lossless, QoS 0",), 1: ("p2p 200 to 200, QoS 1", "p2p lossless, QoS 1")}


@dataclass(frozen=True)
class Single:
    """What isn't a message rate."""

    alone: Latency
    connects_per_second: float
    idle_bytes: float


def await_quiet(patience_s: float = 3.0) -> None:
    """Returns once others take less than ``DISTURBED_CPU``, or when patience ends."""
    deadline = time.monotonic() + patience_s
    while psutil.cpu_percent(0.3) / 100 * psutil.cpu_count() > DISTURBED_CPU and time.monotonic() < deadline:
        pass


def undisturbed(name: str, folder: Path, ask: Callable[[Peer], Measured]) -> Measured:
    """Measures on a fresh broker; of two tries, when the first was disturbed, the less disturbed one."""
    tries: list[Measured] = []
    while not tries or (len(tries) < 2 and tries[0].others_cpu > DISTURBED_CPU):
        await_quiet()
        with running(name, folder) as peer:
            tries.append(ask(peer))
    return min(tries, key=lambda found: found.others_cpu)


def connects_per_second(peer: Peer, count: int = 1000) -> float:
    """CONNECT to CONNACK and away, one after the other."""
    started = time.monotonic()
    for index in range(count):
        connect(peer.port, f"c{index}").close()
    return count / (time.monotonic() - started)


def idle_bytes(peer: Peer, count: int) -> float:
    """Resident bytes a connection that does nothing."""
    before = peer.memory_bytes()
    held = [connect(peer.port, f"idle{index}") for index in range(count)]
    time.sleep(1)
    grown = peer.memory_bytes() - before
    for sock in held:
        sock.close()
    return grown / count


def print_row(*cells: object) -> None:
    """A row of a Markdown table."""
    print("|", " | ".join(str(cell) for cell in cells), "|", flush=True)


def print_head(*cells: str) -> None:
    """The first two rows: text to the left, figures to the right."""
    print()
    print_row(*cells)
    print_row("---", "---", *["---:"] * (len(cells) - 2))


def disturbance(others_cpu: float) -> str:
    """The share of a core that others took; starred where it is too much to trust the row."""
    return f"{others_cpu:.0%}{' *' if others_cpu > DISTURBED_CPU else ''}"


def compare_rates(names: list[str], chosen: list[Scenario], seconds: float, folder: Path) -> Rates:
    """Message rates by scenario and peer."""
    table: Rates = {}
    head = ("received/s", "sent/s", "delivered", "worst/best subscriber", "us CPU a message")
    print_head("scenario", "peer", *head, "broker CPU", "load CPU", "others")
    for scenario in chosen:
        for name in names:
            found = undisturbed(name, folder, lambda peer, scenario=scenario: measure(peer, scenario, seconds))
            table.setdefault(scenario.name, {})[name] = found
            print_row(
                scenario.name,
                name,
                f"{found.received:,.0f}",
                f"{found.sent:,.0f}",
                f"{found.delivered:.1%}",
                f"{found.evenness:.2f}",
                f"{found.cpu_us:.2f}" if found.received >= 1 else "-",
                f"{found.broker_cpu:.0%}",
                f"{found.load_cpu:.0%}",
                disturbance(found.others_cpu),
            )
    return table


def print_ratios(table: Rates) -> None:
    """Terrazzo's received rate as a multiple of each other's, beside the goal, and of a CPU second's messages."""
    print_head("scenario", "goals", "x Mosquitto's", "x amqtt's", "x Mosquitto's a CPU second")
    for name, rates in table.items():
        goal = 1.2 if name.startswith("fan-in") and "QoS 2" not in name else 0.7
        verdicts = [verdict(rates, peer, least) for peer, least in (("mosquitto", goal), ("amqtt", 40.0))]
        costs = [rates[peer].cpu_us for peer in ("mosquitto", "terrazzo") if peer in rates]
        print_row(name, f"{goal} and 40", *verdicts, f"{costs[0] / costs[1]:.2f}" if len(costs) == 2 else "-")


def verdict(rates: dict[str, Rate], peer: str, least: float) -> str:
    """The ratio, and whether it is enough."""
    if "terrazzo" not in rates or peer not in rates:
        return "-"
    ours, theirs = rates["terrazzo"].received, rates[peer].received
    ratio = f"{ours / theirs:,.2f}" if theirs >= 1 else "it delivered none:"
    return f"{ratio} {'met' if ours >= least * theirs else '**missed**'}"


def compare_single(names: list[str], folder: Path, idle: int) -> dict[str, Single]:
    """Latency alone, connection rate and idle memory of each peer."""
    print_head("alone", "peer", "p50 us", "p99 us", "connects/s", f"KiB an idle connection of {idle:,}")
    table = {}
    for name in names:
        with running(name, folder) as peer:
            latency, rate = alone(peer), connects_per_second(peer)
        with running(name, folder) as peer:
            memory = idle_bytes(peer, idle)
        table[name] = Single(latency, rate, memory)
        cells = [f"{each:,.0f}" for each in (latency.p50_us, latency.p99_us, rate)]
        print_row("one at a time, QoS 0", name, *cells, f"{memory / 1024:.2f}")
    return table


def compare_loaded(names: list[str], rates: Rates, seconds: float, folder: Path) -> None:
    """Latency beside half of each peer's best point-to-point rate, then Terrazzo's beside half of each other's."""
    print_head("load", "peer", "wanted/s", "achieved/s", "p50 us", "p99 us", "lost", "broker CPU", "others")
    for qos in (0, 1):
        own = {name: max(rates[row][name].received for row in P2P[qos]) / 2 for name in names}
        for name in names:
            print_loaded(f"half of its own, QoS {qos}", name, qos, own[name], seconds, folder)
        for name in names:
            if "terrazzo" in own and own[name] < own["terrazzo"]:
                print_loaded(f"half of {name}'s, QoS {qos}", "terrazzo", qos, own[name], seconds, folder)


def print_loaded(label: str, name: str, qos: int, rate: float, seconds: float, folder: Path) -> None:
    """Measures and prints one row."""
    found = undisturbed(name, folder, lambda peer: beside_load(peer, qos=qos, rate=rate, seconds=seconds))
    print_row(
        label,
        name,
        f"{found.wanted:,.0f}",
        f"{found.achieved:,.0f}",
        f"{found.latency.p50_us:,.0f}",
        f"{found.latency.p99_us:,.0f}",
        f"{found.latency.lost} of {found.latency.probes}",
        f"{found.broker_cpu:.0%}",
        disturbance(found.others_cpu),
    )


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=1.5)
    parser.add_argument(
        "--only", default="", help="scenarios whose name contains this; 'single', 'latency' for the rest"
    )
    parser.add_argument("--peers", default=",".join(NAMES))
    parser.add_argument("--idle", type=int, default=5000)
    options = parser.parse_args()
    names = options.peers.split(",")
    wanted = "p2p" if options.only == "latency" else options.only
    chosen = [scenario for scenario in scenarios() if wanted in scenario.name]
    print(time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), versions(), sep="; ")
    with tempfile.TemporaryDirectory() as folder:
        rates = compare_rates(names, chosen, options.seconds, Path(folder)) if chosen else {}
        if rates:
            print_ratios(rates)
        if options.only in ("", "single"):
            compare_single(names, Path(folder), options.idle)
        if options.only in ("", "latency"):
            compare_loaded(names, rates, options.seconds * 2.5, Path(folder))


if __name__ == "__main__":
    main()
