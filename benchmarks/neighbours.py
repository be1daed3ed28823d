"""What one company notices of another one's attacks from inside.

``python benchmarks/neighbours.py [--seconds S] [--settle S] [--only 3,7] [--json FILE] [--store postgresql]`` starts a
platform for each attack of ``attacks/table.py``; company A does it from a process of its own while company B works
(``bystanders.py``). Row 0 is B alone. Prints B's waits in milliseconds, live frames that it lost, the server's
resident memory at the most and a while later, and what is beyond its bound; to standard error what the attack came to,
what the platform says held its loop, and how long other programs kept both from a processor: run it alone, or with
``--preferred`` (root), which has the scheduler give B and the server more than other programs. ``--store postgresql``
keeps the metadata in a PostgreSQL server of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1] / "tests"))

import psutil
import uvloop
from attacks.attack import Attack
from attacks.attacker import Attacker, Target
from attacks.company import Company
from attacks.table import ATTACKS
from bystander_results import Span
from bystanders import Bystander, Waits
from random_content import metrics_of
from resident import resident_bytes

from postgresql_server import metadata_in, running_postgresql
from running import Platform, answers, wait_for
from support import free_port
from terrazzo.config.limits import LimitsSection

ATTACKER = Path(__file__).parent / "attacks" / "attacker.py"
MEMORY_MIB = 256
P99_MS, MOST_MS = 100.0, 500.0
LATE_S = 10.0  # of B's results
MEMORY_MB, KEPT_MB = 400.0, 50.0
LOOP_CPU_MS = 100.0
READY_S = 10.0  # after the attack, and after a start
UNDER_WAY_S = 2.0  # after which an attack is
SETTLED_S = 30.0  # what is resident sooner is not what is kept
END_S = 10.0  # of the platform, when it is told to
MIB = 1e6
PREFERRED_NICE = -15


class Alone(Attack):
    """No attack: what the machine itself does to B."""

    number = 0
    name = "nobody"

    async def attack(self, attacker: Attacker, number: int) -> None:
        """Does nothing in this round."""


@dataclass
class Row:
    """What came of one attack; memory in MB."""

    number: int
    name: str
    waits: Waits
    memory_before: float
    memory_most: float
    memory_later: float
    waited_s: float  # by the server's first thread for a processor that others had
    loop_cpu_ms: float  # the most processor time of the loop between two looks, 10 ms apart, since the start
    loop_delay_ms: float  # its longest delay
    end_s: float  # how long it took to end beside the attack; 0 where it was not told to
    start_s: float  # how long it took to start with what the attack has made; 0 where that does not stay
    is_alive: bool
    is_settled: bool  # whether the memory was looked at again some time later
    unready: list[str]
    attack: dict[str, int]
    held: list[str]

    def beyond(self, *, is_loaded: bool = False) -> list[str]:
        """What is beyond its bound; where others use the machine that is the loop's processor time, not how B waits."""
        waits, found = self.waits, self._too_late()
        if is_loaded:
            found = ["the loop's processor time"] * (self.loop_cpu_ms > LOOP_CPU_MS)
        found += ["frames"] * (waits.lost_frames > 0) + ["commands"] * (waits.answered < waits.commands)
        found += ["nothing reported"] * (not waits.reports) + ["memory"] * (self.memory_most > MEMORY_MB)
        found += ["memory kept"] * (self.is_settled and self.memory_later > self.memory_before + KEPT_MB)
        found += ["requests or reports failed"] * bool(waits.failed)
        found += ["nothing was done"] * (self.number > 0 and not self.attack)
        return found + ["ended"] * (not self.is_alive) + ["not ready"] * bool(self.unready)

    def _too_late(self) -> list[str]:
        waits = self.waits
        times_ms = {"PUBACK": waits.puback, "ping": waits.ping}
        found = [f"{name} p99" for name, times in times_ms.items() if at(times, 0.99) > P99_MS]
        times_ms |= {"login": waits.login} if waits.login else {}  # the hash of a password alone takes a third of that
        found += [f"{name} maximum" for name, times in times_ms.items() if at(times, 1.0) > MOST_MS]
        found += ["statistics"] * (at(waits.statistics_s, 1.0) > LATE_S)
        found += ["balance"] * (at(waits.balance_s, 1.0) > LATE_S)
        return found + ["end"] * (self.end_s > END_S) + ["start"] * (self.start_s > READY_S)

    def to_markdown(self, beyond: list[str]) -> str:
        """A line of the table."""
        waits = self.waits
        cells = [
            str(self.number),
            self.name,
            *(_both(each) for each in (waits.puback, waits.ping, waits.page, waits.login)),
        ]
        cells += [f"{at(waits.statistics_s, 1.0):.0f}, {at(waits.balance_s, 1.0):.0f}"]
        cells += [f"{waits.lost_frames:,} of {waits.reports:,}", f"{waits.answered} of {waits.commands}"]
        cells += [f"{self.memory_before:,.0f} → {self.memory_most:,.0f} → {self.memory_later:,.0f}"]
        cells += [f"{each:.1f}" if each else "" for each in (self.end_s, self.start_s)]
        state = ", ".join(self.unready) or "ready"
        cells += [state if self.is_alive else "ended", ", ".join(beyond) or "within"]
        return "| " + " | ".join(cells) + " |"

    def to_json(self, beyond: list[str]) -> dict[str, Any]:
        """With all single times."""
        return {**vars(self), "waits": vars(self.waits), "beyond": beyond}


HEAD = (
    "| | attack | PUBACK p99 / max | ping p99 / max | page p99 / max | login p99 / max | results late | frames "
    "lost | commands answered | memory before → most → later | ends | starts | afterwards | beyond its bound |\n"
    "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |"
)


def _both(times: list[float]) -> str:
    return f"{at(times, 0.99):,.0f} / {at(times, 1.0):,.0f}" if times else ""


def at(times: list[float], share: float) -> float:
    """The time that such a share of all is below."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("inf")


class Memory:
    """The most that a process and its children have resident, looked at ten times a second."""

    def __init__(self, pid: int) -> None:
        self._process = psutil.Process(pid)
        self._stopped = threading.Event()
        self.most = 0.0
        self._thread = threading.Thread(target=self._look, name="memory", daemon=True)
        self._thread.start()

    def now(self) -> float:
        """In MB; of the children what isn't shared. 0 when it has ended."""
        with suppress(psutil.Error):
            return resident_bytes(self._process) / MIB
        return 0.0

    def stop(self) -> float:
        """The most there was."""
        self._stopped.set()
        self._thread.join()
        return self.most

    def _look(self) -> None:
        while not self._stopped.wait(0.1):
            self.most = max(self.most, self.now())


@contextmanager
def attacking(target: Target) -> Iterator[dict[str, int]]:
    """The attack, in a process of its own; afterwards what came of it."""
    process = subprocess.Popen(
        [sys.executable, str(ATTACKER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    counts: dict[str, int] = {}
    try:
        process.stdin.write(target.to_json() + "\n")
        process.stdin.flush()
        if process.stdout.readline() != "ready\n":
            raise SystemExit(f"the attack {target.number} could not begin")
        yield counts
        counts.update(json.loads(process.communicate("", timeout=30)[0]))
    finally:
        process.kill()
        process.wait()


def limits() -> dict[str, str]:
    """The ceiling of memory, where the platform has one."""
    known = "memory_mib" in LimitsSection.__struct_fields__
    return {"TERRAZZO_LIMITS__MEMORY_MIB": str(MEMORY_MIB)} if known else {}


@contextmanager
def started(attack: Attack) -> Iterator[tuple[Platform, dict[str, int]]]:
    """A platform, and its ports by name."""
    far_side = free_port()
    with tempfile.TemporaryDirectory(prefix="neighbours-") as name:
        folder = Path(name)
        arguments: tuple[str, ...] = ()
        if attack.config:
            (folder / "terrazzo.toml").write_text(attack.config.replace("{far_side}", str(far_side)))
            arguments = ("--config", str(folder / "terrazzo.toml"))
        platform = Platform(folder / "data", env=limits(), arguments=arguments)
        try:
            ports = {"http": platform.http, "mqtt": platform.mqtt, "websocket": platform.websocket}
            yield platform.login(), {**ports, "far_side": far_side}
        finally:
            platform.kill()  # it may be long until it could stop


def prefer(*pids: int) -> None:
    """Gives processes more of the processors than other programs have.

    Not by a class of realtime: that would let a thread of the server keep its loop from a processor, 100 ms at a time.
    """
    for pid in pids:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.setpriority(os.PRIO_PROCESS, int(thread.name), PREFERRED_NICE)


def measure(attack: Attack, seconds: float, settle_s: float, *, preferred: bool = False) -> Row:
    """One attack on a platform of its own."""
    with started(attack) as (platform, ports), ExitStack() as meanwhile:
        attacker, other = Company(platform, "a"), Company(platform, "b")
        bystander = Bystander(other, logs_in=attack.is_of_logins)
        facts = attack.prepare(attacker)
        uvloop.run(bystander.run(Span(min(3.0, seconds))))  # so that what is made at first use is there
        if preferred:
            prefer(platform.pid, os.getpid())
        memory = Memory(platform.pid)
        logged = platform.log.stat().st_size
        before, waited_s = memory.now(), processor_waits_s(platform.pid)
        target = Target(attack.number, ports, attacker.tokens, facts)
        counts = meanwhile.enter_context(attacking(target) if attack.number else nullcontext({}))
        uvloop.run(bystander.run(Span(seconds)))
        waited_s = processor_waits_s(platform.pid) - waited_s
        meanwhile.close()
        is_alive, unready = state_of(platform)
        loop_cpu_ms, loop_delay_ms = loop_of(platform)
        print(f"{attack.number} settles", file=sys.stderr, flush=True)
        time.sleep(settle_s if is_alive else 0)
        said = platform.log.read_bytes()[logged:].decode(errors="replace")
        held = [line for line in said.splitlines() if "event loop was held" in line]
        memory_most, memory_later, is_alive = memory.stop(), memory.now(), platform.process.poll() is None
        return Row(
            attack.number,
            attack.name,
            bystander.waits,
            memory_before=before,
            memory_most=memory_most,
            memory_later=memory_later,
            waited_s=waited_s,
            loop_cpu_ms=loop_cpu_ms,
            loop_delay_ms=loop_delay_ms,
            end_s=end_beside(platform, target) if attack.ends and is_alive else 0.0,
            start_s=start_with(platform) if attack.lasts and is_alive else 0.0,
            is_alive=is_alive,
            is_settled=settle_s >= SETTLED_S,
            unready=unready,
            attack=counts,
            held=held,
        )


def end_beside(platform: Platform, target: Target) -> float:
    """How long the platform takes to end while the attack goes on; infinite when it had to be killed."""
    with attacking(target):
        time.sleep(UNDER_WAY_S)
        began_s = time.monotonic()
        try:
            platform.stop(timeout_s=3 * END_S)
        except subprocess.TimeoutExpired:
            return float("inf")
        return time.monotonic() - began_s


def start_with(platform: Platform) -> float:
    """How long it takes until it is ready on what there is; infinite when it never is."""
    platform.stop(timeout_s=3 * END_S)
    began_s = time.monotonic()
    try:
        anew = platform.again()
    except AssertionError:
        return float("inf")
    anew.kill()
    return time.monotonic() - began_s


def processor_waits_s(pid: int) -> float:
    """How long a process's first thread was ready to run and did not, so far; 0 where nothing says so."""
    with suppress(OSError):
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    return 0.0


def loop_of(platform: Platform) -> tuple[float, float]:
    """The most processor time of the platform's loop and its longest delay, ms; infinite without an answer."""
    try:
        metrics = metrics_of(platform)
    except OSError:
        return float("inf"), float("inf")
    names = ("terrazzo_loop_cpu_max_seconds", "terrazzo_loop_delay_max_seconds")
    return metrics[names[0], ""] * 1_000, metrics[names[1], ""] * 1_000


def state_of(platform: Platform) -> tuple[bool, list[str]]:
    """Whether it lives, and what is not ready some seconds after the attack."""
    try:
        wait_for(lambda: answers(f"{platform.url}/readyz"), "ready", timeout_s=READY_S)
    except AssertionError:
        if platform.process.poll() is not None:
            return False, []
        with suppress(OSError):
            return True, platform.unready_parts()
        return True, ["no answer"]
    return True, []


def tell(row: Row) -> None:
    """What the table doesn't say, to standard error."""
    waits = row.waits
    print(f"\n{row.number} {row.name}: attack {row.attack}", file=sys.stderr)
    print(f"  this process came up to {waits.own_delay_ms:.0f} ms late to its own work,", file=sys.stderr)
    print(f"  the server's first thread waited {row.waited_s:.1f} s for a processor;", file=sys.stderr)
    loop = f"its loop had {row.loop_cpu_ms:.0f} ms of it between two looks, and came {row.loop_delay_ms:.0f} late"
    print(f"  {loop}, at the most", file=sys.stderr)
    for text, count in waits.failed.items():
        print(f"  {text}: {count}", file=sys.stderr)
    for line in row.held:
        print(f"  {line}", file=sys.stderr, flush=True)


def main() -> None:
    """Prints a Markdown table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--settle", type=float, default=60.0, help="seconds after which memory is looked at again")
    parser.add_argument("--only", default="", help="numbers of attacks, with commas")
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--store", choices=("sqlite", "postgresql"), default="sqlite")
    parser.add_argument("--preferred", action="store_true", help="before other programs of the machine")
    parser.add_argument(
        "--loaded", action="store_true", help="others use the machine: the loop's processor time counts"
    )
    options = parser.parse_args()
    attacks = {0: Alone(), **ATTACKS}
    chosen = [int(number) for number in options.only.split(",") if number] or sorted(attacks)
    rows = []
    print(HEAD, flush=True)
    with ExitStack() as servers:
        if options.store == "postgresql":
            servers.enter_context(metadata_in(servers.enter_context(running_postgresql())))
        for number in chosen:
            row = measure(attacks[number], options.seconds, options.settle, preferred=options.preferred)
            rows.append((row, row.beyond(is_loaded=options.loaded)))
            print(row.to_markdown(rows[-1][1]), flush=True)
            tell(row)
            if options.json:
                options.json.write_text(json.dumps([row.to_json(beyond) for row, beyond in rows]))
    if wrong := [f"{row.number} ({', '.join(beyond)})" for row, beyond in rows if beyond]:
        raise SystemExit(f"beyond their bounds: {'; '.join(wrong)}")


if __name__ == "__main__":
    main()
