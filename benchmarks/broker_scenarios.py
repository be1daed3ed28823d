"""Saturating loads: who publishes and subscribes to what, and how a rate and its loss are measured."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
from broker_clients import publish_bytes
from broker_peers import Peer

LOAD = Path(__file__).with_name("broker_load.py")
PAYLOAD_BYTES = 110
WARM_UP_S = 0.5
DRAIN_S = 1.5
SPACED = tuple(f"f/{{n:03d}}{channel}" for channel in "abcdefgh")


@dataclass(frozen=True)
class Scenario:
    """Publishers and subscribers; ``{n:04d}`` is the number of the one or the other. All topics have one length."""

    name: str
    qos: int
    publishers: int
    subscribers: int
    topic_filter: str = "f/+"
    topics: tuple[str, ...] = ("f/{n:04d}",)
    window: int = 50  # packets until the same bytes come again; at QoS 1 and 2, how many may be unacknowledged
    block: int | None = None  # packets a write; the window unless given
    granted: int | None = None  # the subscription's QoS where it isn't the publishers'
    credit: int | None = None  # messages on their way at most; with one subscriber less than a queue holds

    @property
    def subscribed_qos(self) -> int:
        """The QoS that messages arrive with."""
        return self.qos if self.granted is None else self.granted

    @property
    def copies(self) -> int:
        """Subscribers that each message is for."""
        return self.subscribers if self.topic_filter == "f/+" else 1

    def publish(self) -> dict[str, Any]:
        """The load's publishers."""
        return {
            "count": self.publishers,
            "topics": self.topics,
            "qos": self.qos,
            "window": self.window,
            "block": self.block or self.window,
            "payload": PAYLOAD_BYTES,
        }

    def subscribe(self) -> dict[str, Any]:
        """The load's subscribers."""
        return {
            "count": self.subscribers,
            "topic_filter": self.topic_filter,
            "topic": self.topics[0].format(n=0),
            "qos": self.subscribed_qos,
            "payload": PAYLOAD_BYTES,
        }


def scenarios() -> list[Scenario]:
    """What is measured."""
    spaced: dict[str, Any] = {"topics": SPACED, "window": 48, "block": 1}
    p2p = "f/{n:04d}"
    return [
        Scenario("fan-in 50 to 1, QoS 0", 0, 50, 1),
        Scenario("fan-in spaced, QoS 0", 0, 50, 1, **spaced),
        Scenario("fan-in 50 to 1, QoS 1", 1, 50, 1),
        Scenario("fan-in spaced, QoS 1", 1, 50, 1, **spaced),
        Scenario("fan-in lossless, QoS 1", 1, 50, 1, credit=900),
        Scenario("fan-in spaced, lossless, QoS 1", 1, 50, 1, **spaced, credit=900),
        Scenario("fan-in 50 to 1, QoS 1 to 0", 1, 50, 1, granted=0),
        Scenario("fan-in 50 to 1, QoS 2", 2, 50, 1),
        Scenario("fan-out 1 to 500, QoS 0", 0, 1, 500, window=20),
        Scenario("fan-out spaced, QoS 0", 0, 1, 500, topics=SPACED, window=48, block=1),
        Scenario("fan-out 1 to 500, QoS 1", 1, 1, 500, window=20),
        Scenario("fan-out 1 to 500, QoS 2", 2, 1, 500, window=20),
        Scenario("p2p 200 to 200, QoS 0", 0, 200, 200, p2p),
        Scenario("p2p 200 to 200, QoS 1", 1, 200, 200, p2p, window=10),
        Scenario("p2p lossless, QoS 0", 0, 200, 200, p2p, window=10, credit=1000),
        Scenario("p2p lossless, QoS 1", 1, 200, 200, p2p, window=10, credit=1000),
    ]


class Load:
    """One load process."""

    def __init__(self, **options: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(LOAD), json.dumps(options)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        if self._line().strip() != "ready":
            raise SystemExit("a load process failed")

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit("a load process ended")
        return line

    def tell(self, word: str) -> None:
        """Sends a command."""
        assert self.process.stdin is not None
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()

    def mark(self) -> dict[str, float]:
        """The counts now."""
        self.tell("mark")
        counts: dict[str, float] = json.loads(self._line())
        return counts

    def end(self) -> None:
        """Ends it."""
        self.process.kill()
        self.process.wait()


@contextmanager
def loads(*processes: dict[str, Any]) -> Iterator[list[Load]]:
    """Load processes, ready in the order given, ended whatever happens."""
    with ExitStack() as stack:
        found = []
        for options in processes:
            found.append(Load(**options))
            stack.callback(found[-1].end)
        yield found


@dataclass(frozen=True)
class Rate:
    """What a saturating load measured; CPU as shares of one core."""

    received: float  # messages a second, whole ones that subscribers took
    sent: float  # messages a second
    delivered: float  # of all sent, those received ``drain_s`` after the last was sent at the latest
    evenness: float  # the worst served subscriber's count by the best served one's
    cpu_us: float  # the broker's, a message received, from the first sent to the last received
    broker_cpu: float
    load_cpu: float  # the busiest load process
    others_cpu: float  # processes that don't belong to the measurement


class Window:
    """CPU from its making until ``shares``: the broker's, each load's, and that of everyone else."""

    def __init__(self, peer: Peer, found: list[Load]) -> None:
        self.peer, self.loads = peer, found
        self.first = self._cpu_s()

    def _cpu_s(self) -> list[float]:
        times = psutil.cpu_times()
        busy = sum(times) - times.idle - times.iowait - times.guest - times.guest_nice
        own = psutil.Process().cpu_times()
        used = [psutil.Process(load.process.pid).cpu_times() for load in self.loads]
        processes = [each.user + each.system for each in [own, *used]]
        return [time.monotonic(), busy, self.peer.cpu_s(), *processes]

    def shares(self) -> tuple[float, float, float]:
        """Of one core: the broker, the busiest load process, others."""
        took_s, busy, broker, *ours = (now - then for now, then in zip(self._cpu_s(), self.first, strict=True))
        return broker / took_s, max(ours) / took_s, max(busy - broker - sum(ours), 0.0) / took_s


def measure(peer: Peer, scenario: Scenario, seconds: float, *, drain_s: float = DRAIN_S) -> Rate:
    """Saturates the broker for ``seconds`` after a warm-up, stops, and waits for what is on its way (``drain_s`` at
    the most)."""
    base = {"port": peer.port}
    if scenario.credit is None:
        processes = [{**base, "subscribe": scenario.subscribe()}, {**base, "publish": scenario.publish()}]
    else:
        both = {"subscribe": scenario.subscribe(), "publish": scenario.publish(), "credit": scenario.credit}
        processes = [{**base, **both}]
    carried = psutil.net_io_counters(pernic=True)["lo"].bytes_recv
    with loads(*processes) as found:
        subscriber, publisher = found[0], found[-1]
        cpu_s = peer.cpu_s()
        publisher.tell("go")
        time.sleep(WARM_UP_S)
        window, first, sent = Window(peer, found), subscriber.mark(), publisher.mark()
        time.sleep(seconds)
        last, sent_last = subscriber.mark(), publisher.mark()
        broker_cpu, load_cpu, others_cpu = window.shares()
        publisher.tell("stop")
        total = drained(subscriber, drain_s)
        cpu_s = peer.cpu_s() - cpu_s
        all_sent = publisher.mark()["sent"]
    carried = psutil.net_io_counters(pernic=True)["lo"].bytes_recv - carried
    if total["received"] * publish_bytes(scenario.topics[0].format(n=0), scenario.subscribed_qos, b"x" * 110) > carried:
        raise SystemExit(f"{scenario.name}: counted more than the loopback interface carried")
    took_s = last["time_s"] - first["time_s"]
    received = (last["received"] - first["received"]) / took_s
    return Rate(
        received=received,
        sent=(sent_last["sent"] - sent["sent"]) / (sent_last["time_s"] - sent["time_s"]),
        delivered=total["received"] / max(all_sent * scenario.copies, 1),
        evenness=total["least"] / max(total["most"], 1),
        cpu_us=cpu_s / max(total["received"], 1) * 1e6,
        broker_cpu=broker_cpu,
        load_cpu=load_cpu,
        others_cpu=others_cpu,
    )


def drained(subscriber: Load, drain_s: float = DRAIN_S) -> dict[str, float]:
    """The counts once they have stood still for 0.4 s, or ``drain_s`` after the call."""
    deadline, quiet_since = time.monotonic() + drain_s, time.monotonic()
    counts = subscriber.mark()
    while time.monotonic() < deadline and time.monotonic() - quiet_since < 0.4:
        time.sleep(0.1)
        now = subscriber.mark()
        if now["received"] != counts["received"]:
            quiet_since = time.monotonic()
        counts = now
    return counts
