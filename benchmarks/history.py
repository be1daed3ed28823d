"""History: what operators ask of the past, beside Debian's InfluxDB and VictoriaMetrics on the same data, in one run.

``python benchmarks/history.py [--messages N] [--objects K] [--under-ingest] [--random]`` loads the history of K
objects (two terminals of ten points each, a message each 30 s, all of them as old as their number says) into each:
Terrazzo gets it as terminals send it, over MQTT, mapped to an object's variables; InfluxDB line protocol;
VictoriaMetrics its import format. Then all are asked the same over HTTP, in turn, on kept connections. All answers are
compared: the run fails where one differs. ``--under-ingest`` asks once more while each is written to, with half of the
messages a second that Terrazzo took while loading. ``--endurance`` loads Terrazzo alone, and shows what becomes of its
rate, memory and disk. ``--year`` has Terrazzo alone answer for a year of a message each 30 s, and says what each answer
costs the server's processor. Needs ``influxd`` and ``victoria-metrics`` (``--victoria-metrics PATH``), and goes without
those that are not there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import psutil
from history_load import PERIOD_MS, RANDOM_SEED, START_MS, variable
from history_peers import Asker, Feed, Influx, Terrazzo, Victoria, disk_bytes, fed, start_all
from history_questions import DAY_MS, HOUR_MS, MINUTE_MS, Answer, Question, curve, difference, latest, means, page
from publishers import Load

Server = Terrazzo | Influx | Victoria
NEW = 10_000  # messages of the object that is asked about right after they have come
FEW = 5  # variables
STILL_S = 15.0  # nothing was sealed for so long: it is done
LOADED = 1_000_000  # messages of a part of the endurance
DAY_LONG_MS = 1_000 * MINUTE_MS  # as many minutes as a page has


@dataclass
class Figures:
    """Milliseconds of the answers to one question, by the name of who was asked."""

    first: dict[str, float] = field(default_factory=dict)
    warm: dict[str, list[float]] = field(default_factory=dict)
    busy: dict[str, list[float]] = field(default_factory=dict)


def questions_about(name: str, server: Terrazzo, messages: int) -> list[tuple[str, Question]]:
    """All questions, with their ranges, about an object whose terminals have sent so many messages each."""
    grain_ms = DAY_MS if messages * PERIOD_MS >= 2 * DAY_MS else HOUR_MS
    end_ms = (START_MS + messages * PERIOD_MS) // grain_ms * grain_ms
    month_ms = min(30 * DAY_MS, end_ms - START_MS)
    ranges = (("day", min(DAY_LONG_MS, end_ms - START_MS), MINUTE_MS), ("month", month_ms, HOUR_MS))
    ranges += (("all", end_ms - START_MS, grain_ms),)
    object_id, keys = server.objects[name], [variable(1 + n % 2, n) for n in range(FEW)]
    found = []
    for some in (keys[:1], keys):
        found += [
            (what, means(name, object_id, some, end_ms - long_ms, end_ms, step_ms)) for what, long_ms, step_ms in ranges
        ]
    found += [(what, curve(name, object_id, keys[0], end_ms, long_ms)) for what, long_ms, _ in ranges]
    found += [(what, page(name, object_id, keys[0], end_ms - long_ms, end_ms)) for what, long_ms, _ in ranges]
    return [*found, ("", latest(name, object_id, keys, START_MS + messages * PERIOD_MS))]


class Comparison:
    """Asks all of the servers, and says where their answers differ."""

    def __init__(self, servers: list[Server]) -> None:
        self._servers = servers
        self.faults: list[str] = []

    def ask_in_turn(self, questions: list[tuple[str, Question]], figures: list[Figures], *, rounds: int) -> None:
        """The first answers, then so many more, each from all servers in turn."""
        askers = {server.name: Asker(server) for server in self._servers}
        for (what, question), figure in zip(questions, figures, strict=True):
            for number in range(rounds + 1):
                answers = {}
                for name, asker in askers.items():
                    if name in question.ways:
                        request, read = question.ways[name]
                        told, spent_ms = asker.ask(request)
                        answers[name] = read(told)
                        if number:
                            figure.warm.setdefault(name, []).append(spent_ms)
                        else:
                            figure.first[name] = spent_ms
                if not number:
                    self.compare(f"{question.name} {what}", answers)
        for asker in askers.values():
            asker.close()

    def ask_beside(
        self, questions: list[tuple[str, Question]], figures: list[Figures], load: Load, *, rounds: int
    ) -> None:
        """Each server alone, while it is written to."""
        for server in self._servers:
            with fed(server, load):
                asker = Asker(server)
                for (_, question), figure in zip(questions, figures, strict=True):
                    if server.name in question.ways:
                        request, _ = question.ways[server.name]
                        figure.busy[server.name] = [asker.ask(request)[1] for _ in range(rounds)]
                asker.close()

    def compare(self, what: str, answers: dict[str, Answer]) -> None:
        """Notes where Terrazzo's answer is another one."""
        ours = answers.pop("Terrazzo")
        for name, theirs in answers.items():
            if found := difference(ours, theirs):
                self.faults.append(f"{what}, {name}: {found}")


def load_all(servers: list[Server], load: Load) -> float:
    """Loads one after the other; Terrazzo's messages a second."""
    rates = {}
    for server in servers:
        server.prepare(load.uids)
        rates[server.name] = Feed(server, load).rate()
        if isinstance(server, Victoria):
            server.flush()
    print("loaded, messages/s: " + ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()), flush=True)
    return rates["Terrazzo"]


def ask_when_new(servers: list[Server], comparison: Comparison, *, seed: int) -> None:
    """The first question over what has just come, put as soon as it is acknowledged."""
    load = Load("127.0.0.1", 0, ["new-1", "new-2"], NEW // 2, seed=seed)
    end_ms = START_MS + NEW // 2 * PERIOD_MS // HOUR_MS * HOUR_MS
    answers, spent, used = {}, {}, {}
    question = None
    for server in servers:
        server.prepare(load.uids)
        Feed(server, load).rate()
        if isinstance(server, Terrazzo):
            question = means("new", server.objects["new"], [variable(1, 0)], START_MS, end_ms, HOUR_MS)
        elif isinstance(server, Victoria):
            server.flush()
        assert question is not None  # Terrazzo is the first
        request, read = question.ways[server.name]
        asker, before_ns = Asker(server), _processor_ns(server.pid)
        told, spent[server.name] = asker.ask(request)
        used[server.name] = (_processor_ns(server.pid) - before_ns) / 1e6
        asker.close()
        answers[server.name] = read(told)
    comparison.compare("new records", answers)
    texts = ", ".join(f"{name} {spent_ms:.1f} ({used[name]:.1f})" for name, spent_ms in spent.items())
    print(f"the first question over {NEW:,} new records, ms (of the server's processor): {texts}", flush=True)


def wait_sealed(server: Terrazzo, *, timeout_s: float) -> None:
    """Until all series have been looked at, and nothing has been sealed for a while since."""
    began = still = time.monotonic()
    last, looked = -1.0, 0.0
    while time.monotonic() - began < timeout_s and (looked < 1 or time.monotonic() - still < STILL_S):
        looked = server.metric("terrazzo_store_sealing_looked_ratio")
        found = server.metric("terrazzo_store_sealed_records_total")
        if found != last:
            last, still = found, time.monotonic()
        time.sleep(1.0)
    print(f"{last:,.0f} records sealed, after {time.monotonic() - began:.0f} s of rest", flush=True)


def show_costs(servers: list[Server], messages: int) -> None:
    """Disk, memory and restart."""
    print("\n| | disk a message, bytes | resident MiB | ready again after, s |\n|---|---:|---:|---:|")
    for server in servers:
        disk = disk_bytes(server) / messages
        resident = resident_mib(server)
        print(f"| {server.name} | {disk:.1f} | {resident:,.0f} | {server.restart():.1f} |", flush=True)


def resident_mib(server: Server) -> float:
    """Of the server's process."""
    return float(psutil.Process(server.pid).memory_info().rss / 2**20)


def show(names: list[str], questions: list[tuple[str, Question]], figures: list[Figures]) -> None:
    """The table: medians, ratios to Terrazzo's, the first answers, and those beside ingest where there are some."""
    busy = any(figure.busy for figure in figures)
    heads = [*names, *(f"ours / {name}'s" for name in names[1:]), *(f"{name}, first" for name in names)]
    heads += [f"{name}, under ingest" for name in names] if busy else []
    print("\n| question | range | " + " | ".join(heads) + " |\n|---|---|" + "---:|" * len(heads))
    for (what, question), figure in zip(questions, figures, strict=True):
        warm = {name: statistics.median(spent) for name, spent in figure.warm.items()}
        cells = [_ms(warm.get(name)) for name in names]
        cells += [f"{warm['Terrazzo'] / warm[name]:.2f}" if name in warm else "" for name in names[1:]]
        cells += [_ms(figure.first.get(name)) for name in names]
        if busy:
            cells += [_ms(statistics.median(figure.busy[name]) if name in figure.busy else None) for name in names]
        print(f"| {question.name} | {what} | " + " | ".join(cells) + " |")


def _ms(spent: float | None) -> str:
    return "" if spent is None else f"{spent:.1f}"


def compare(folder: Path, arguments: argparse.Namespace) -> list[str]:
    """The whole comparison; where answers differ."""
    uids = [f"o{number}-{terminal}" for number in range(arguments.objects) for terminal in (1, 2)]
    load = Load("127.0.0.1", 0, uids, _each(arguments), seed=RANDOM_SEED if arguments.random else 1)
    servers: list[Server] = start_all(folder, program=arguments.victoria_metrics)
    comparison, names = Comparison(servers), [server.name for server in servers]
    try:
        rate = load_all(servers, load)
        ask_when_new(servers, comparison, seed=load.seed)
        first = servers[0]
        assert isinstance(first, Terrazzo)
        wait_sealed(first, timeout_s=arguments.settle)
        show_costs(servers, arguments.messages)
        questions = questions_about("o0", first, load.messages)
        figures = [Figures() for _ in questions]
        comparison.ask_in_turn(questions, figures, rounds=arguments.rounds)
        if arguments.under_ingest:
            for server in servers:
                server.prepare(["busy-1", "busy-2"])
            beside = replace(load, uids=["busy-1", "busy-2"], messages=25 * 400_000, rate=rate / 2)
            comparison.ask_beside(questions, figures, beside, rounds=arguments.rounds)
        show(names, questions, figures)
    finally:
        for server in servers:
            server.stop()
    return comparison.faults


YEAR_DAYS = 365
YEAR_GOALS_MS = {"hours": 25, "days": 10, "page": 15, "chart": 25}


def ask_about_a_year(folder: Path, arguments: argparse.Namespace) -> None:
    """Loads a year of one terminal's messages, and asks about all of it."""
    server = Terrazzo(folder)
    messages = YEAR_DAYS * DAY_MS // PERIOD_MS
    load = Load("127.0.0.1", 0, ["year-1"], messages // 25 * 25)
    try:
        server.prepare(load.uids)
        print(f"loaded, messages/s: {Feed(server, load).rate():,.0f}", flush=True)
        wait_sealed(server, timeout_s=arguments.settle)
        show_costs([server], messages)
        print("\n| a year | goal, ms | first, ms | median, ms | least, ms | least of the processor, ms |")
        print("|---|---:|---:|---:|---:|---:|", flush=True)
        end_ms = START_MS + YEAR_DAYS * DAY_MS
        object_id, key = server.objects["year"], variable(1, 0)
        asked = {
            "hours": means("year", object_id, [key], START_MS, end_ms, HOUR_MS),
            "days": means("year", object_id, [key], START_MS, end_ms, DAY_MS),
            "page": page("year", object_id, key, START_MS, end_ms),
            "chart": curve("year", object_id, key, end_ms, end_ms - START_MS),
        }
        asker, late = Asker(server), server.loop_delays()
        for name, question in asked.items():
            request, _ = question.ways[server.name]
            first_ms = asker.ask(request)[1]
            spent, used = [], []
            for _ in range(arguments.rounds):
                before_ns = _processor_ns(server.pid)
                spent.append(asker.ask(request)[1])
                used.append((_processor_ns(server.pid) - before_ns) / 1e6)
            told = (first_ms, statistics.median(spent), min(spent), min(used))
            print(f"| {name} | {YEAR_GOALS_MS[name]} | " + " | ".join(map(_ms, told)) + " |", flush=True)
        asker.close()
        later = server.loop_delays()
        bound_s = _within({bound: later[bound] - late[bound] for bound in later}, 0.99)
        print(f"meanwhile 99 of 100 looks at the event loop were late by at most {bound_s * 1e3:g} ms (goal: 20)")
    finally:
        server.stop()


def _within(counts: dict[float, float], part: float) -> float:
    """The least bound that so large a part lies within; ``counts``: how many lie within each."""
    return min(bound for bound, count in counts.items() if count >= part * max(counts.values()))


def _processor_ns(pid: int) -> int:
    """What all threads of a process have had of the processor, those that are there."""
    found = 0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # it has ended
            found += int((thread / "schedstat").read_text().split()[0])
    return found


def _each(arguments: argparse.Namespace) -> int:
    """Messages of a terminal."""
    return int(arguments.messages / arguments.objects / 2) // 25 * 25


def endure(folder: Path, arguments: argparse.Namespace) -> None:
    """Loads Terrazzo, and shows for each million what the rate, the memory and the disk are."""
    server = Terrazzo(folder)
    uids = [f"o{number}-{terminal}" for number in range(arguments.objects) for terminal in (1, 2)]
    load = Load("127.0.0.1", 0, uids, _each(arguments))
    server.prepare(uids)
    print("| messages | messages/s | resident MiB | with the process that packs | not sealed | disk a message, bytes |")
    print("|---:|---:|---:|---:|---:|---:|", flush=True)
    rates = list(_parts(server, Feed(server, load), _each(arguments) * len(uids)))
    wait_sealed(server, timeout_s=arguments.settle)
    print(f"disk a message: {disk_bytes(server) / (_each(arguments) * len(uids)):.1f} bytes")
    print(f"the last part's rate is {rates[-1] / rates[0]:.2f} of the first one's")
    print(f"ready again after {server.restart():.1f} s, {server.resident_mib()[0]:.0f} MiB resident then")
    server.stop()


def _parts(server: Terrazzo, feed: Feed, total: int) -> Iterator[float]:
    """The messages a second of each part, shown when it is over."""
    done, began, most = 0, time.perf_counter(), 0.0
    part = min(LOADED, total // 4)
    while True:
        stored = int(server.metric("terrazzo_ingest_messages_total"))
        most = max(most, server.resident_mib()[0])
        if stored - done >= part or stored >= total:
            rate = (stored - done) / (time.perf_counter() - began)
            own, others = server.resident_mib()
            rows = 2 * stored - server.metric("terrazzo_store_sealed_records_total")
            disk = disk_bytes(server) / stored
            print(
                f"| {stored:,} | {rate:,.0f} | {most:.0f} | {own + others:.0f} | {rows:,.0f} | {disk:.1f} |", flush=True
            )
            yield rate
            done, began, most = stored, time.perf_counter(), 0.0
        if stored >= total:
            return
        if feed.is_over and stored < total and int(server.metric("terrazzo_ingest_messages_total")) == stored:
            raise SystemExit("the load ended before all of it was stored")
        time.sleep(0.2)


def main() -> None:
    """Reads the arguments, runs, cleans up; exits with 1 where answers differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=1_000_000, help="of all objects together")
    parser.add_argument("--objects", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7, help="of each question, after the first one")
    parser.add_argument("--settle", type=float, default=240.0, help="seconds for sealing, at most")
    parser.add_argument("--random", action="store_true", help="points that are uniform in 0 to 100, instead of smooth")
    parser.add_argument("--under-ingest", action="store_true")
    parser.add_argument("--endurance", action="store_true")
    parser.add_argument("--year", action="store_true")
    parser.add_argument("--victoria-metrics", default="victoria-metrics", metavar="PATH")
    parser.add_argument("--path", type=Path, help="a folder on the disk in question")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="terrazzo-bench-", dir=arguments.path) as name:
        if arguments.endurance or arguments.year:
            (endure if arguments.endurance else ask_about_a_year)(Path(name), arguments)
            return
        if faults := compare(Path(name), arguments):
            raise SystemExit("answers differ:\n" + "\n".join(faults))


if __name__ == "__main__":
    main()
