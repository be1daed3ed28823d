"""Two versions of the code beside each other: CPU of the server a message or request, in alternating pairs.

``python benchmarks/versions.py BEFORE AFTER [--pairs N] [--only ingest ...] [--row TEXT] [--after-with KEY=VALUE]
[--whole] [--messages N]``: two checkouts, the first of them the one that the other is held against. Both run at the
same time on this interpreter, and each pair gives both the same load; ratios are AFTER to BEFORE, so above 1 is dearer.
Within a pair the two alternate: every ``TURN_S`` one of them is stopped (SIGSTOP) and the other goes on, so that what
the machine's neighbours cost a second falls on both alike; of loads one after the other the same version differed from
itself by half. With ``--whole`` the loads of a pair are given one after the other, in an order that alternates, and
nothing is stopped: neither has its caches emptied by the other ten times a second. Both are started anew ``STARTS``
times in between, as where a process has its memory is worth some percent for as long as it runs; every other time
AFTER is started first and has the first turn, as whichever is second is dearer in some loads. What a platform does
once, some seconds after its start and its first records (it loads the libraries that answer questions about the past:
0.2 s of CPU, a third of a load's), is no message's cost: nothing is measured until both have been at rest. A database
flushes and compacts in bursts, which make the ratio of a pair a matter of luck: ``in all`` is the CPU of all pairs
together, and loads that are long beside those bursts have each of them in them (``--messages 5000`` of each of 100
terminals, as ``ingest.py`` gives; with 1,000 what is compared ends before anything is compacted).
``--after-with`` sets environment variables of AFTER alone, such as ``TERRAZZO_STORE__SEAL=false`` where BEFORE did not
seal yet. The load is that of the other benchmarks: 10-point JSON at QoS 1 without (``ingest``) and with mapping
(``mapping``), beside 50 live subscribers (``live``), terminals that log in with their pins and hang up (``login``), the
broker alone (``broker``), and the gateway asked by ``wrk`` on 1 and 16 connections (``gateway``).
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import json
import signal
import socket
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import psutil
from broker_peers import Peer
from broker_scenarios import Scenario, scenarios
from broker_scenarios import measure as measure_broker
from gateway import Target, Wrk
from mapping_parts import rows
from publishers import Load, credentials

from ingest import cpu_seconds, publish
from live import Followers
from mqtt_bytes import login
from running import Platform, ServerProcess
from support import free_port

ROOTS = ("platform", "broker", "adapters", "simulators")
TERMINALS = 100
MESSAGES = 1_000  # a connection, unless asked for
LOGINS = 40  # of each terminal
AT_ONCE = 10  # terminals that log in at the same time
SUBSCRIBERS = 50
BROKER = ("fan-in spaced, QoS 0", "fan-in spaced, QoS 1", "fan-out 1 to 500, QoS 0", "p2p 200 to 200, QoS 1")
BROKER_S = 3
DRAIN_S = 10  # until the last message is there: what is left over would go to the next run
GATEWAY_S = 4
REST_S = 12  # after the load that warms up; beyond what a platform waits with what it does once
REST_CPU_S = 0.05  # a second: what a platform at rest takes is less
STARTS = 6  # even: as often one of the two is the first as the other
TURN_S = 0.1  # of one of the two; long beside a time slice of the system, short beside what changes on a machine
ENVIRONMENT = {"TERRAZZO_LIMITS__CONNECTS_PER_SECOND": "100000"}
Measure = Callable[[], float]
"""One run; microseconds of the server's CPU for one message or request."""


@dataclass(frozen=True)
class Row:
    """What is compared: the same measurement of both servers, in the order in which they were started."""

    name: str
    first: Measure
    second: Measure
    pids: tuple[int, int]


@dataclass(frozen=True)
class Side:
    """One of the two versions, and where its server keeps what it has."""

    checkout: Path
    folder: Path
    settings: Mapping[str, str]


def environment(checkout: Path) -> dict[str, str]:
    """What has a child process import that checkout's code."""
    return {"PYTHONPATH": ":".join(str(checkout.resolve() / root) for root in ROOTS)}


def setting(text: str) -> tuple[str, str]:
    """``KEY=VALUE``."""
    key, is_set, value = text.partition("=")
    if not is_set or not key:
        raise argparse.ArgumentTypeError(f"{text!r}: must be KEY=VALUE, such as TERRAZZO_STORE__SEAL=false")
    return key, value


@contextmanager
def platform(checkout: Path, folder: Path, settings: Mapping[str, str], *, mapped: bool = False) -> Iterator[Platform]:
    """A running platform of that checkout with the terminals of the load, which feed objects of 20 variables."""
    env = environment(checkout) | ENVIRONMENT | dict(settings)
    with Platform(folder / "terrazzo", env=env, fresh=True) as started:
        started.login()
        config = started.add_config()
        for uid in uids():
            username, pin = credentials(uid)
            started.add_terminal(uid, config, username=username, pin=pin)
        record = {"name": "m", "script": json.dumps(rows()), "created_by": 1, "last_modified_by": 1}
        mapping = started.call("create_mapping", **record, is_available=1)["uid"] if mapped else ""
        for pair in zip(uids()[::2], uids()[1::2], strict=True):
            started.call("create_object", name=pair[0], mapping_id=mapping, terminal_list=list(pair))
        yield started


def uids() -> list[str]:
    """The terminals of the load."""
    return [f"l{number:04}" for number in range(TERMINALS)]


def ingest_cost(server: Platform, messages: int = MESSAGES) -> float:
    """A message, from its PUBLISH to its PUBACK, of so many of each terminal."""
    load = Load("127.0.0.1", server.mqtt, uids(), messages)
    before: list[float] = []
    publish(load, settle_s=0.5, begin=lambda: before.append(cpu_seconds([server])))
    return (cpu_seconds([server]) - before[0]) / (messages * TERMINALS) * 1e6


def login_cost(server: Platform, protocol: int) -> float:
    """A login: TCP, CONNECT, CONNACK, DISCONNECT, and the end of the connection."""
    before = cpu_seconds([server])
    asyncio.run(_log_in(server.mqtt, protocol))
    return (cpu_seconds([server]) - before) / (LOGINS * TERMINALS) * 1e6


async def _log_in(port: int, protocol: int) -> None:
    async def again_and_again(some: list[str]) -> None:
        for uid in some * LOGINS:
            username, pin = credentials(uid)
            answers, to_broker = await asyncio.open_connection("127.0.0.1", port)
            to_broker.write(login(uid, username, pin, protocol=protocol))
            if (await answers.readexactly(4))[3 if protocol == 4 else 0] != (0 if protocol == 4 else 0x20):
                raise SystemExit(f"{uid}: was refused")
            to_broker.write(b"\xe0\x00")
            await answers.read()
            to_broker.close()
            await to_broker.wait_closed()

    await asyncio.gather(*(again_and_again(uids()[number::AT_ONCE]) for number in range(AT_ONCE)))


def live_cost(server: Platform, object_id: int, messages: int = MESSAGES) -> float:
    """The same while one object's records go to subscribers."""
    followers = Followers(server, object_id, SUBSCRIBERS, nice=19)
    try:
        return ingest_cost(server, messages)
    finally:
        followers.finish()


@contextmanager
def broker(checkout: Path, folder: Path) -> Iterator[Peer]:
    """A broker of that checkout alone."""
    port = free_port()
    options = ["--port", str(port), "--allow-anonymous", "--log-level", "error"]
    command = [sys.executable, "-m", "terrazzo_broker", *options]
    with ServerProcess(command, log=folder / "broker.log", env=environment(checkout)) as server:
        server.wait_ready(lambda: _accepts(port))
        yield Peer("terrazzo", port, server.pid)


def _accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def platform_rows(kind: str, first: Platform, second: Platform, folder: Path, messages: int) -> Iterator[Row]:
    """What is measured of two platforms; ``messages``: of each terminal in a load of reports."""
    pids = (first.pid, second.pid)
    if kind in ("ingest", "mapping"):
        yield Row(kind, lambda: ingest_cost(first, messages), lambda: ingest_cost(second, messages), pids)
    elif kind == "login":
        for protocol, name in ((4, "login, MQTT 3.1.1"), (5, "login, MQTT 5")):
            costs = (partial(login_cost, each, protocol) for each in (first, second))
            yield Row(name, *costs, pids)
    elif kind == "live":
        objects = [int(each.call("get_object_list", page_size=1)["data"][0]["id"]) for each in (first, second)]
        pairs = zip((first, second), objects, strict=True)
        costs = (partial(live_cost, *pair, messages) for pair in pairs)
        yield Row(f"live, {SUBSCRIBERS} subscribers", *costs, pids)
    else:
        yield from gateway_rows(first, second, folder)


def gateway_rows(first: Platform, second: Platform, folder: Path) -> Iterator[Row]:
    """Requests of clients that poll."""
    span = {"start_time": "2000-01-01 00:00:00", "end_time": "2100-01-01 00:00:00"}
    requests = {
        "ping": {"action": "ping"},
        "get_terminal_item": {"action": "get_terminal_item", "uid": uids()[0]},
        "get_last_grid": {"action": "get_last_grid", "terminal_id": uids()[0], "topic": ["r"]},
        "get_grid_list": {"action": "get_grid_list", "terminal_id": uids()[0], "topic": ["r"], "page_size": 10, **span},
    }
    for side in ("first", "second"):
        (folder / side).mkdir()
    for each in (first, second):
        publish(Load("127.0.0.1", each.mqtt, uids(), 25, window=25))
    for connections in (1, 16):
        for name, body in requests.items():
            asked = [
                partial(
                    _cost_of_asking,
                    Wrk(folder / side, GATEWAY_S, connections),  # each with a script of its own
                    Target(name, each.http, each.pid, json.dumps(body), each.token or ""),
                )
                for side, each in (("first", first), ("second", second))
            ]
            yield Row(f"{name}, {connections} connections", *asked, (first.pid, second.pid))


def _cost_of_asking(wrk: Wrk, target: Target) -> float:
    return wrk.run(target).cpu_us


class Turns:
    """Lets two servers run alternately, ``TURN_S`` each, until it is left; their children with them. ``pids``: the
    first one's first."""

    def __init__(self, pids: tuple[int, int]) -> None:
        self._pids = pids
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._alternate)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _alternate(self) -> None:
        try:
            for turn in itertools.count():
                _signal(self._pids[turn % 2], signal.SIGSTOP)
                _signal(self._pids[1 - turn % 2], signal.SIGCONT)
                if self._is_over.wait(TURN_S):
                    return
        finally:
            for pid in self._pids:
                _signal(pid, signal.SIGCONT)


def _signal(pid: int, number: signal.Signals) -> None:
    server = psutil.Process(pid)
    for each in (server, *server.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            each.send_signal(number)


def in_turns(row: Row) -> tuple[float, float]:
    """What both loads cost, given at the same time to two servers that run alternately."""
    with ThreadPoolExecutor(2) as pool, Turns(row.pids):
        first, second = pool.submit(row.first), pool.submit(row.second)
        return first.result(), second.result()


def whole(row: Row, number: int) -> tuple[float, float]:
    """What both loads cost, one after the other: in odd pairs the second server's first."""
    if number % 2:
        second = row.second()
        return row.first(), second
    return row.first(), row.second()


def measure(row: Row, pairs: int, *, is_whole: bool, rests: bool) -> list[tuple[float, float]]:
    """What the two servers cost in each pair, after one that makes caches warm, and a rest where they need it."""
    in_turns(row)
    if rests:
        come_to_rest(row.pids)
    return [whole(row, number) if is_whole else in_turns(row) for number in range(pairs)]


def come_to_rest(pids: tuple[int, int]) -> None:
    """Waits until neither server does anything of its own, a minute at the most."""
    time.sleep(REST_S)
    for _ in range(60):
        before = sum(_spent_s(pid) for pid in pids)
        time.sleep(1)
        if sum(_spent_s(pid) for pid in pids) - before < len(pids) * REST_CPU_S:
            return


def _spent_s(pid: int) -> float:
    """CPU seconds of a server and of its children until now."""
    server, spent = psutil.Process(pid), 0.0
    for each in (server, *server.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):
            times = each.cpu_times()
            spent += times.user + times.system
    return spent


def tell(name: str, costs: list[tuple[float, float]]) -> None:
    """Prints the pairs' median and quartiles, and the ratio of what all of them cost."""
    ratios = [after / before for before, after in costs]
    low, middle, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    first, second = (statistics.median(each) for each in zip(*costs, strict=True))
    in_all = sum(after for _before, after in costs) / sum(before for before, _after in costs)
    print(
        f"| {name} | {first:.2f} | {second:.2f} | {middle:.3f} | {low:.3f} to {high:.3f} | {in_all:.3f} |",
        flush=True,
    )


def run(kind: str, asked: argparse.Namespace) -> None:
    """All rows of one kind that have the asked text in their names."""
    pairs = asked.pairs
    found: dict[str, list[tuple[float, float]]] = {}
    for start in range(min(STARTS, pairs)):
        with tempfile.TemporaryDirectory() as name, ExitStack() as stack:
            sides = [Side(asked.before, Path(name) / "before", {})]
            sides.insert(1 - start % 2, Side(asked.after, Path(name) / "after", dict(asked.after_with)))
            rested: set[int] = set()
            for row in started_rows(kind, asked, sides, stack):
                if asked.row in row.name:
                    count, rests = len(range(start, pairs, STARTS)), not rested.issuperset(row.pids)
                    costs = measure(row, count, is_whole=asked.whole, rests=rests)
                    rested.update(row.pids)
                    in_order = costs if not start % 2 else [(before, after) for after, before in costs]
                    found.setdefault(row.name, []).extend(in_order)
    for row_name, all_costs in found.items():
        tell(row_name, all_costs)


def started_rows(kind: str, asked: argparse.Namespace, sides: list[Side], stack: ExitStack) -> Iterator[Row]:
    """The rows of one kind, of two servers that have just been started in that order."""
    for each in sides:
        each.folder.mkdir()
    if kind == "broker":
        peers = [stack.enter_context(broker(each.checkout, each.folder)) for each in sides]
        for scenario in (each for each in scenarios() if each.name in BROKER):
            costs = (partial(_cost_of_passing_on, peer, scenario) for peer in peers)
            yield Row(scenario.name, *costs, (peers[0].pid, peers[1].pid))
        return
    started = [
        stack.enter_context(platform(each.checkout, each.folder, each.settings, mapped=kind == "mapping"))
        for each in sides
    ]
    yield from platform_rows(kind, started[0], started[1], sides[0].folder.parent, asked.messages)


def _cost_of_passing_on(peer: Peer, scenario: Scenario) -> float:
    return measure_broker(peer, scenario, BROKER_S, drain_s=DRAIN_S).cpu_us


def main() -> None:
    kinds = ("ingest", "mapping", "live", "login", "broker", "gateway")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--row", default="", metavar="TEXT", help="rows with this in their names")
    parser.add_argument("--after-with", nargs="+", type=setting, default=(), metavar="KEY=VALUE")
    parser.add_argument("--whole", action="store_true", help="loads of a pair one after the other")
    parser.add_argument("--messages", type=int, default=MESSAGES, metavar="N", help="of each terminal in a load")
    arguments = parser.parse_args()
    print(
        "| load | before, us CPU | after | ratio, median | quartiles | in all |\n|---|---|---|---|---|---|", flush=True
    )
    for kind in arguments.only:
        run(kind, arguments)


if __name__ == "__main__":
    main()
