"""Mapping, part by part: expressions, the ingest in one process, and the shaping alone.

``python benchmarks/mapping_parts.py [--messages N] [--rounds N]`` prints the time of simple expressions; then the
ingest path (decode, shape, commit to RocksDB, settle) in one process without and with mapping, 1,000 terminals that
feed 500 objects of 20 variables, and the ratio; then the time per message of the shaping alone for 10 to 10,000
objects, each message from another terminal. What users meet is measured by ``mapping.py``.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace

from terrazzo.domain.payload import decode
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.expressions.expression import parse_expression
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import make_tag
from terrazzo.listeners import Listeners
from terrazzo.mapping.catalogue import ObjectSpec
from terrazzo.mapping.engine import MappingEngine
from terrazzo.mapping.report_mapper import ReportMapper
from terrazzo.runtime.supervisor import Supervisor
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_broker.hooks import Inbound

POINTS = 10  # of a message
BATCH = 20  # messages that the broker hands over at once
TERMINALS = 1_000  # two for each object
KEPT = 20_000  # messages under way


class Valve:
    """The broker's side of the intake."""

    def pause_intake(self) -> None: ...

    def resume_intake(self) -> None: ...

    def kick(self, client_id: str) -> bool:
        return False


class NoOutbox:
    """These rows raise no events: there is nothing for a database."""

    has_room = True

    def __init__(self) -> None:
        self.room: Listeners[[]] = Listeners("room")

    def has_room_of(self, company: str) -> bool:
        return True

    def seal(self, effects):
        assert not effects
        return {}

    def on_committed(self) -> None: ...


class Batch:
    """What the broker hands over."""

    def __init__(self, messages, room: asyncio.Semaphore) -> None:
        self.client = SimpleNamespace(client_id="bench", protocol=5, owner="1")
        self.messages = messages
        self.arrived_us = time.time_ns() // 1000
        self._room = room

    def settle(self, refusals=None) -> None:
        assert not refusals
        self._room.release()

    def hold(self) -> None: ...

    def release(self) -> None: ...


def rows() -> list[list[str]]:
    """Twenty variables: eighteen from the points of two terminals, two from others."""
    made = []
    for terminal in (1, 2):
        for point in range(POINTS - 1):
            expression = ("", "x * 0.1", "x - 40", "x / 2 + 5")[point % 4]
            made.append([f"V{terminal}_{point}", "", "", "STA", f"$AdapterID-{terminal}.P{point}", expression])
    made.append(["SUM", "", "", "FUNC", "", "V1_0 + V2_0"])
    made.append(["DELTA", "", "", "FUNC", "", "abs(V1_1 - V2_1)"])
    return made


def new_engine(objects: int) -> MappingEngine:
    engine = MappingEngine()
    engine.catalogue.put_mapping(1, rows())
    for number in range(objects):
        terminals = (f"t{2 * number}", f"t{2 * number + 1}")
        engine.catalogue.put_object(ObjectSpec(id=number + 1, company_id=1, mapping_id=1, terminals=terminals))
    return engine


def warm(engine: MappingEngine, terminals: int) -> None:
    """Each terminal has reported once: its plan is made, and no variable is without a value."""
    points = decode(payloads(1)[0])
    for number in range(terminals):
        engine.shape(engine.catalogue.plans(f"t{number}"), points, 1, f"t{number}", [])
    engine.seal()


def payloads(count: int) -> list[bytes]:
    pick = random.Random(1)
    return [json.dumps({f"P{n}": pick.randint(0, 1000) for n in range(POINTS)}).encode() for _ in range(count)]


def batches(count: int, terminals: int) -> list[list[Inbound]]:
    tags = []
    for number in range(terminals):
        uid = f"t{number}"
        terminal = Terminal(id=number, uid=uid, name=uid, company_id=1, type="Other", mode="pwd", username="u", pin="p")
        tags.append(make_tag(ReportTopic(f"g/{uid}/r", terminal, "r"), trace=Trace(), seal=None))
    bodies, pick = payloads(5000), random.Random(2)
    made = []
    for _ in range(count // BATCH):
        tag = pick.choice(tags)
        made.append([Inbound(tag, pick.choice(bodies)) for _ in range(BATCH)])
    return made


async def ingest(load: list[list[Inbound]], engine: MappingEngine | None) -> tuple[float, float]:
    """Messages per second, stored, and microseconds of CPU a message; each terminal has reported before."""
    first = {messages[0].tag.uid: messages[0] for messages in load}
    with tempfile.TemporaryDirectory() as folder:
        tasks = Supervisor(on_stop=sys.exit)
        store = await RocksStore.open(Path(folder) / "series", tasks=tasks)
        mapper = None if engine is None else ReportMapper(engine, NoOutbox())
        if mapper is not None:
            mapper.maker.start(tasks)
        ingest = IngestPipeline(store, Valve(), tasks=tasks, mapper=mapper)
        ingest.start()
        await take(ingest, [[message] for message in first.values()])
        gc.collect()
        started, used = time.perf_counter(), time.process_time()
        await take(ingest, load)
        spent, used = time.perf_counter() - started, time.process_time() - used
        await ingest.stop()
        if mapper is not None:
            await mapper.maker.stop()
        await store.close()
    return len(load) * BATCH / spent, used / (len(load) * BATCH) * 1e6


async def take(ingest: IngestPipeline, load: list[list[Inbound]]) -> None:
    """Hands everything over, a bounded part ahead of what is stored, and waits until all is."""
    batches_ahead = KEPT // BATCH
    room = asyncio.Semaphore(batches_ahead)
    for messages in load:
        await room.acquire()
        ingest.take(Batch(messages, room))
    for _ in range(batches_ahead):
        await room.acquire()


def shaping_us(objects: int, messages: int) -> float:
    """Microseconds of CPU to shape one message, decoding left out; the terminals in random order."""
    engine = new_engine(objects)
    points, pick = [decode(body) for body in payloads(1000)], random.Random(3)
    terminals = [f"t{pick.randrange(2 * objects)}" for _ in range(messages)]
    warm(engine, 2 * objects)
    gc.collect()
    gc.freeze()
    mosaic: list = []
    spent = []
    for start in range(0, messages, 10_000):
        began = time.process_time()
        for number in range(start, min(start + 10_000, messages)):
            uid = terminals[number]
            time_us = 1_700_000_000_000_000 + number
            engine.shape(engine.catalogue.plans(uid), points[number % 1000], time_us, uid, mosaic)
        spent.append((time.process_time() - began) / 10_000)
        mosaic.clear()
        engine.seal()
    return statistics.median(spent) * 1e6


def expression_ns(text: str) -> float:
    evaluate, values = parse_expression(text).evaluate, {"x": 215, "MODE": 1, "T2": 20.5}
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(100_000):
            evaluate(values)
        best = min(best, time.perf_counter() - began)
    return best / 100_000 * 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    gc.set_threshold(30_000, 0, 1_500)  # as the platform does
    for text in ("x * 0.1", "x > 80 and MODE == 1", "round((x - T2) / 1.8, 1) if MODE else 0", "x / 0"):
        print(f"{expression_ns(text):>8.0f} ns   {text}", flush=True)
    load, ratios = batches(arguments.messages, TERMINALS), []
    for _ in range(arguments.rounds):
        plain, plain_us = asyncio.run(ingest(load, None))
        mapped, mapped_us = asyncio.run(ingest(load, new_engine(TERMINALS // 2)))
        ratios.append(mapped / plain)
        print(
            f"ingest {plain:>10,.0f} msg/s {plain_us:>5.1f} us CPU   with mapping {mapped:>10,.0f} msg/s "
            f"{mapped_us:>5.1f} us CPU   ratio {ratios[-1]:.2f}, by CPU {plain_us / mapped_us:.2f}",
            flush=True,
        )
    print(f"median ratio {statistics.median(ratios):.2f}")
    for objects in (10, 100, 1_000, 10_000):
        print(f"{objects:>8} objects   {shaping_us(objects, 100_000):.2f} us a message", flush=True)


if __name__ == "__main__":
    main()
