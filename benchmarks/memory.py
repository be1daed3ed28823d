"""What is counted as memory, held against how the process grows: each kind, with small and large things.

``python benchmarks/memory.py [--mib N]`` fills each kind in a process of its own until N MiB are counted, and prints
what is counted, how much resident memory grew, and the ratio of growth to count; exits 1 where that is not within 0.7
to 1.3. The factors are those of ``terrazzo.runtime.assembly.memory``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from mapping_parts import Batch, Valve, batches

from terrazzo.domain.registry import Registry
from terrazzo.ingest.pipeline import IngestLimits, IngestPipeline
from terrazzo.live.frames import as_message
from terrazzo.live.hub import LiveHub, LiveLimits
from terrazzo.live.selector import Selector
from terrazzo.memory_shares import MIB, Cost, Kept
from terrazzo.runtime.assembly.memory import LIVE, QUEUED, REPORTS, RETAINED
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_broker.delivery.queue_share import QueueShare
from terrazzo_broker.delivery.session import Session
from terrazzo_broker.hooks import Inbound
from terrazzo_broker.message import ApplicationMessage
from terrazzo_broker.settings import NO_LIMIT, BrokerSettings
from terrazzo_broker.stats import Stats
from terrazzo_broker.topics.retained import RetainedMessages

SIZES = (100, 2_000)  # bytes of a thing
WITHIN = (0.7, 1.3)
SETTINGS = BrokerSettings(queued_messages=2**31 - 1, queued_bytes=2**40)


def resident_bytes() -> int:
    """Memory of this process that is its own."""
    fields = Path("/proc/self/statm").read_text().split()
    return (int(fields[1]) - int(fields[2])) * os.sysconf("SC_PAGE_SIZE")


def body(number: int, size: int) -> bytes:
    """A payload of its own."""
    return b'{"n":%d,"text":"%b"}' % (number, b"x" * size)


def fill(kind: str, size: int, most: int) -> tuple[int, int]:
    """Fills a kind; what is counted, and how much the process grew."""
    add, count = KINDS[kind](size)
    cost = COSTS[kind]
    for number in range(200):
        add(number)
    gc.collect()
    before, counted, number = resident_bytes(), cost.of(count()), 200
    while cost.of(count()) - counted < most:
        for _ in range(500):
            add(number)
            number += 1
    gc.collect()
    return cost.of(count()) - counted, resident_bytes() - before


Filler = tuple[Callable[[int], None], Callable[[], Kept]]


def queued(size: int) -> Filler:
    """Messages that wait in a session."""
    share = QueueShare("1")
    session = Session("c", SETTINGS, Stats(), share=share)

    def add(number: int) -> None:
        session.enqueue(ApplicationMessage(b"g/t%d/r" % number, body(number, size), 1), None)

    return add, lambda: Kept(share.bytes, share.messages)


def retained(size: int) -> Filler:
    """Retained messages of topics of their own."""
    messages: RetainedMessages[ApplicationMessage] = RetainedMessages()

    def add(number: int) -> None:
        topic = f"g/t{number}/r"
        payload = body(number, min(size, 1_000))
        messages.put(topic, ApplicationMessage(topic.encode(), payload, 1, retain=True, publisher="p", owner="1"))

    def count() -> Kept:
        of_owner = messages.ledger.by_owner().get("1")
        return Kept() if of_owner is None else Kept(of_owner.memory_bytes, of_owner.messages)

    return add, count


def live(size: int) -> Filler:
    """Frames that were sent once, and are kept for those who come back."""
    hub = LiveHub(Registry(), started_us=1, limits=LiveLimits(frames=NO_LIMIT, bytes=NO_LIMIT))
    feed = hub.open_feed(Selector(frozenset({"event"}), 1))

    def add(number: int) -> None:
        hub.publish("event", company_id=1, data={"n": number, "text": "x" * size})
        feed.cut(feed.end - 1, feed.style(1, as_message, frozenset()), most_bytes=1)
        feed.forget_cuts()

    return add, lambda: hub.kept().get(1, Kept())


KINDS: dict[str, Callable[[int], Filler]] = {"queued": queued, "retained": retained, "live": live}
COSTS: dict[str, Cost] = {"queued": QUEUED, "retained": RETAINED, "live": LIVE, "received": REPORTS}


class _Held(Batch):
    def hold(self) -> None: ...

    def release(self) -> None: ...


async def received(size: int, most: int) -> tuple[int, int]:
    """Reports that are decoded and wait for a store that is away."""
    with tempfile.TemporaryDirectory() as folder:
        tasks = Supervisor(on_stop=sys.exit)
        store = await RocksStore.open(Path(folder) / "series", tasks=tasks)
        gate = asyncio.Event()
        append = store.append

        async def wait(*arguments: object, **more: object) -> None:
            await gate.wait()
            await append(*arguments, **more)  # type: ignore[arg-type]

        store.append = wait  # type: ignore[method-assign]
        limits = IngestLimits(messages=2**40, bytes=2**40, group_messages=2**40, group_bytes=2**40)
        ingest = IngestPipeline(store, Valve(), tasks=tasks, limits=limits)
        ingest.start()
        load, room = batches(2_000, 100), asyncio.Semaphore(0)

        def count() -> int:
            return sum(REPORTS.of(Kept(*each)) for each in ingest.taken.by_owner().values())

        async def take(number: int) -> None:
            for messages in load:
                each = [Inbound(one.tag, body(number, size)) for one in messages]
                ingest.take(_Held(each, room))
            await asyncio.sleep(0.05)

        await take(0)
        before, counted, number = resident_bytes(), count(), 1
        while count() - counted < most:
            await take(number)
            number += 1
        await asyncio.sleep(1.0)
        found = count() - counted, resident_bytes() - before
        gate.set()
        await ingest.stop()
        await store.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=64, help="counted, of each kind")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    most = arguments.mib * MIB
    if arguments.one:
        kind, size = arguments.one[0], int(arguments.one[1])
        counted, grown = asyncio.run(received(size, most)) if kind == "received" else fill(kind, size, most)
        print(counted, grown)
        return
    print("| kind | bytes of one | counted | grown | grown / counted |\n|---|---:|---:|---:|---:|")
    is_within = True
    for kind in COSTS:
        for size in SIZES:
            command = [sys.executable, __file__, "--mib", str(arguments.mib), "--one", kind, str(size)]
            counted, grown = map(int, subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout.split())
            ratio = grown / counted
            is_within = is_within and WITHIN[0] <= ratio <= WITHIN[1]
            print(f"| {kind} | {size} | {counted / MIB:.0f} MiB | {grown / MIB:.0f} MiB | {ratio:.2f} |", flush=True)
    if not is_within:
        raise SystemExit("the count is not within 30% of what it costs")


if __name__ == "__main__":
    main()
