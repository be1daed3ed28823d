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
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import cast

sys.path.append(str(Path(__file__).parents[1] / "tests"))

from mapping_parts import Batch, Valve, batches

from own_platform import own_platform
from terrazzo.api.operations.bulk import _FILE_COPIES
from terrazzo.bulk.columns import Columns
from terrazzo.bulk.entities import BULK_ENTITIES
from terrazzo.bulk.importing import Importer
from terrazzo.bulk.rows import read_upload
from terrazzo.bulk.unfinished import UnfinishedImports
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.mapping_table import parse_table
from terrazzo.domain.registry import Registry
from terrazzo.ingest.limits import IngestLimits
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.live.frames import as_message
from terrazzo.live.hub import LiveHub, LiveLimits
from terrazzo.live.selector import Selector
from terrazzo.mapping.catalogue import MappingCatalogue, ObjectSpec
from terrazzo.mapping.effect_queue import EffectQueue
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.mapping.effects import EventRaised
from terrazzo.mapping.plan import Run, made_at_once, plan_steps
from terrazzo.mapping.state import ObjectState
from terrazzo.memory_shares import MIB, PLAIN, Cost, Kept
from terrazzo.ports.tasks import Tasks
from terrazzo.runtime.assembly.memory import EFFECTS, INFLIGHT, LIVE, MAPPINGS, QUEUED, REPORTS, RETAINED, STATES
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


def live(size: int, *, is_idle: bool = False) -> Filler:
    """Frames that were sent once, and are kept for those who come back; idle: and their feed is read by nobody."""
    hub = LiveHub(Registry(), started_us=1, limits=LiveLimits(frames=NO_LIMIT, bytes=NO_LIMIT))
    feed = hub.open_feed(Selector(frozenset({"event"}), 1))
    if is_idle:
        feed.rest()

    def add(number: int) -> None:
        hub.publish("event", company_id=1, data={"n": number, "text": "x" * size})
        feed.cut(feed.end - 1, feed.style(1, as_message, frozenset()), most_bytes=1)
        feed.forget_cuts()
        if is_idle and number % 500 == 0:
            feed.rest()

    return add, lambda: hub.kept().get(1, Kept())


def inflight(size: int) -> Filler:
    """Messages that were sent to clients, a hundred to each, and are not acknowledged."""
    sessions: list[Session] = []
    sums = [0, 0]

    def add(number: int) -> None:
        if number % 100 == 0:
            sessions.append(Session("c", SETTINGS, Stats()))
            sessions[-1].inflight = {}
        message = ApplicationMessage(b"g/t%d/r" % number, body(number, size), 1)
        sessions[-1].inflight[number % 100 + 1_000] = message
        sums[0] += message.size
        sums[1] += 1

    return add, lambda: Kept(*sums)


def effects(size: int) -> Filler:
    """Events that wait for the database."""
    queue = EffectQueue(cast(EffectWriter, None), cast(Tasks, None), limit=2**31)

    def add(number: int) -> None:
        texts = f"{number}".rjust(size // 2), f"{number}".ljust(size // 2)
        event = EventRaised(1, number, f"t{number}", "HOT", "hot", "hot", texts[0], "T > 1", texts[1], 10**15 + number)
        queue.seal([event])

    return add, lambda: Kept(*queue.waiting().get("1", (0, 0)))


def states(size: int) -> Filler:
    """Objects of twenty variables, two of them texts."""
    rows = [[f"V{n}", "", "", "STA", f"t.p{n}", ""] for n in range(20)]
    table = parse_table(rows)
    kept: list[ObjectState] = []
    sums = [0, 0]

    def add(number: int) -> None:
        state = ObjectState(number, table)
        state.values[:] = [number + n / 7 for n in range(18)] + [f"{number}".rjust(size // 2)] * 2
        state.times[:] = [10**15 + number + n for n in range(20)]
        state.notes()
        kept.append(state)
        sums[0] += len(state.saved or b"")
        sums[1] += 20

    return add, lambda: Kept(*sums)


def mappings(size: int) -> Filler:
    """Mappings of some rows with expressions, ``size`` characters in all of them or more, and a plan of each."""
    catalogue, plans = MappingCatalogue(), list[Run]()
    count, terms = (20, 0) if size < 1_000 else (4, size // 50)

    def add(number: int) -> None:
        text = "x * 0.5" + "".join(f" + x * {number}.{n}" for n in range(terms))
        rows = [[f"V{n}", f"variable {n} of {number}", "", "STA", f"t.p{n}", text] for n in range(count)]
        catalogue.put_mapping(number, rows, 1)
        catalogue.put_object(ObjectSpec(id=number, company_id=1, mapping_id=number, terminals=("t",)))
        made_at_once(catalogue.reading(number))
        points = {n: f"p{n}" for n in range(count)}
        plans.append(made_at_once(plan_steps(parse_table(rows), points)))
        catalogue.scripts.note_plan(number, len(points))

    return add, lambda: catalogue.scripts.kept().get(1, Kept())


KINDS: dict[str, Callable[[int], Filler]] = {
    "queued": queued,
    "inflight": inflight,
    "retained": retained,
    "live": live,
    "live, idle": partial(live, is_idle=True),
    "effects": effects,
    "states": states,
    "mappings": mappings,
}
COSTS: dict[str, Cost] = {
    "queued": QUEUED,
    "inflight": INFLIGHT,
    "retained": RETAINED,
    "live": LIVE,
    "live, idle": LIVE,
    "effects": EFFECTS,
    "states": STATES,
    "mappings": MAPPINGS,
    "received": REPORTS,
    "imports": PLAIN,
}


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


class ReadyToWrite(Exception):
    """Ends an import before it writes."""


async def imported(size: int, most: int) -> tuple[int, int]:
    """The rows of a file, with texts of a tenth of ``size``, until they would be written."""
    text = b"x" * (size // 10)
    head = b"uid,name,description,type,config_id,mode,username,pin\n"
    row_bytes = 900 + 7 * 120 + 3 * (60 + size // 10)
    rows = b"".join(b"A%d,T,%b,Other,config,pwd,u%d,p%d\n" % (n, text, n, n) for n in range(most // row_bytes))
    counted, grown = _FILE_COPIES * (len(head) + len(rows)), 0

    def grow(count: int) -> None:
        nonlocal counted, grown
        counted += count
        grown = max(grown, resident_bytes() - before)

    with tempfile.TemporaryDirectory() as name:
        async with own_platform(Path(name)) as (platform, _):
            terminals = next(each for each in BULK_ENTITIES if each.name == "terminals")
            repository = terminals.repository(platform.metadata.entities)
            await platform.metadata.entities.configurations.create(SYSTEM, {"name": "config", "uid": "config"})
            columns = Columns(terminals.entity, terminals.ignored)

            def look(stage: str, _done: int, _total: int) -> None:
                grow(0)
                if stage == "write":
                    raise ReadyToWrite

            unfinished = cast(UnfinishedImports, None)  # nothing is written
            importer = Importer(repository, columns, SYSTEM, unfinished, mode="create", dry_run=False, on_progress=look)
            gc.collect()
            before = resident_bytes()
            with suppress(ReadyToWrite):
                await importer.run(read_upload(head + rows), grow)
    return counted, grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mib", type=int, default=64, help="counted, of each kind")
    parser.add_argument("--one", nargs=2, metavar=("KIND", "SIZE"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    most = arguments.mib * MIB
    if arguments.one:
        kind, size = arguments.one[0], int(arguments.one[1])
        apart = {"received": received, "imports": imported}.get(kind)
        counted, grown = fill(kind, size, most) if apart is None else asyncio.run(apart(size, most))
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
