"""``make differential``: the same packets to this broker, to Mosquitto and to amqtt, and what they answer compared.

Sequences that only have MQTT 3.1.1 in them go to amqtt too, which has no other version. A difference that isn't one of
``differential_known`` is looked at again with longer pauses, shortened and printed.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "simulation")]

from differential_compare import Compared, compare, shown  # noqa: E402
from differential_known import AMQTT, MOSQUITTO, Moment  # noqa: E402
from differential_play import play  # noqa: E402
from differential_steps import Step, sequence  # noqa: E402
from sim_schedule import shortest  # noqa: E402

from running import Mosquitto, ServerProcess, answers_tcp  # noqa: E402
from support import free_port  # noqa: E402

OURS = "terrazzo_broker"
QUIET_S = (0.01, 0.1, 0.5)
"""For how long one listens after a step: at first, and again where there was a difference."""
AT_ONCE = 12
_SHRINKING_RUNS = 80
_AMQTT_CONFIG = """\
listeners:
  default:
    type: tcp
    bind: 127.0.0.1:{port}
plugins:
  amqtt.plugins.authentication.AnonymousAuthPlugin:
    allow_anonymous: true
"""
_MOSQUITTO_CONFIG = (
    "allow_anonymous true",
    "persistence false",
    "log_dest none",
    "max_inflight_messages 0",
    "queue_qos0_messages true",
)


@dataclass
class Outcome:
    """Of many sequences."""

    sequences: int = 0
    steps: Counter[str] = field(default_factory=Counter)
    known: Counter[tuple[str, str]] = field(default_factory=Counter)
    unknown: list[tuple[str, Moment]] = field(default_factory=list)

    def add(self, seed: str, peer: str, found: Compared) -> None:
        """One more."""
        self.steps[peer] += found.steps
        self.known.update({(peer, name): count for name, count in found.known.items()})
        if found.unknown is not None:
            self.unknown.append((seed, found.unknown))


@contextlib.contextmanager
def brokers(folder: Path, peers: Sequence[str]) -> Iterator[dict[str, int]]:
    """Starts ours and these; the port of each."""
    with contextlib.ExitStack() as stack:
        ports = {}
        for name in (OURS, *peers):
            server, ports[name] = _start(name, folder)
            stack.enter_context(server)
            server.wait_ready(lambda port=ports[name]: answers_tcp(port))
        yield ports


def _start(name: str, folder: Path) -> tuple[ServerProcess, int]:
    port = free_port()
    if name == MOSQUITTO:
        return Mosquitto(folder, lines=_MOSQUITTO_CONFIG, port=port), port
    if name == AMQTT:
        config = folder / "amqtt.yaml"
        config.write_text(_AMQTT_CONFIG.format(port=port))
        program = str(Path(sys.executable).with_name("amqtt"))
        return ServerProcess([program, "-c", str(config)], log=Path("/dev/null")), port
    options = ["--port", str(port), "--allow-anonymous", "--log-level", "error"]
    return ServerProcess([sys.executable, "-m", "terrazzo_broker", *options], log=folder / "ours.log"), port


def of_both_versions(steps: Sequence[Step]) -> bool:
    """Whether MQTT 5 is in it."""
    return any(step.options.get("version") == 5 for step in steps)


async def differ(ports: dict[str, int], peer: str, steps: Sequence[Step]) -> Compared:
    """Plays ``steps`` to ours and to ``peer``; an unknown difference is one that longer pauses show too."""
    for quiet_s in QUIET_S:
        ours, theirs = await asyncio.gather(*(play(ports[name], steps, quiet_s=quiet_s) for name in (OURS, peer)))
        found = compare(peer, steps, ours, theirs)
        if found.unknown is None:
            break
    return found


async def compare_all(ports: dict[str, int], seeds: Iterator[str], *, waits: bool) -> Outcome:
    """The sequence of each seed, several at a time, to all brokers."""
    outcome = Outcome()
    turn = {MOSQUITTO: asyncio.Semaphore(AT_ONCE), AMQTT: asyncio.Semaphore(1)}  # what amqtt tells one it tells all

    async def go_on() -> None:
        for seed in seeds:
            steps = sequence(seed, waits=waits)
            for peer in ports:
                if peer != OURS and not (peer == AMQTT and of_both_versions(steps)):
                    async with turn[peer]:
                        outcome.add(seed, peer, await differ(ports, peer, steps))
            outcome.sequences += 1

    await asyncio.gather(*(go_on() for _ in range(AT_ONCE)))
    return outcome


def shortened(ports: dict[str, int], moment: Moment) -> Moment:
    """The same difference, or another that isn't known, with fewer steps."""
    best = moment

    def fails(fewer: Sequence[Step]) -> bool:
        nonlocal best
        found = asyncio.run(differ(ports, moment.peer, fewer)).unknown
        if found is not None and len(found.steps) <= len(best.steps):
            best = found
        return found is not None

    shortest(moment.steps, fails, most_runs=_SHRINKING_RUNS)
    return best


def seeds_until(first: int, seconds: float) -> Iterator[str]:
    """Seeds from this one on, until the time is over."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        yield str(first)
        first += 1


def main() -> int:
    """1 where there was a difference that isn't known."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seconds", type=float, default=60)
    options.add_argument("--first", type=int, default=None, help="the first seed; without one, any")
    options.add_argument("--peer", choices=(MOSQUITTO, AMQTT), action="append", help="only this one")
    options.add_argument("--most", type=int, default=5, help="how many unknown differences are shortened and printed")
    given = options.parse_args()
    first = random.randrange(1_000_000_000) if given.first is None else given.first
    with tempfile.TemporaryDirectory() as folder, brokers(Path(folder), given.peer or (MOSQUITTO, AMQTT)) as ports:
        outcome = asyncio.run(compare_all(ports, seeds_until(first, given.seconds), waits=True))
        print(f"{outcome.sequences} sequences from seed {first} on; steps compared: {dict(outcome.steps)}")
        for (peer, name), count in sorted(outcome.known.items()):
            print(f"  {count:6} {peer}: {name}")
        print(f"{len(outcome.unknown)} differences that are not known", flush=True)
        first_ones = sorted(outcome.unknown, key=lambda each: len(each[1].steps))[: given.most]
        with ThreadPoolExecutor(1 if AMQTT in ports else AT_ONCE) as pool:
            shorter = pool.map(lambda each: shortened(ports, each[1]), first_ones)
            for (seed, _), few in zip(first_ones, shorter, strict=True):
                print(
                    f"seed {seed}, {len(few.steps)} of {len(sequence(seed, waits=True))} steps:\n{shown(few)}",
                    flush=True,
                )
    return 1 if outcome.unknown else 0


if __name__ == "__main__":
    sys.exit(main())
