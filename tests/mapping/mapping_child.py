"""The ingest with its store and database as a process, to be killed: ``python mapping_child.py FOLDER FIRST``.

Takes messages FIRST, FIRST + 1, ... in batches, and prints the number up to which they are acknowledged.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import sys
import time
from pathlib import Path
from types import SimpleNamespace

from open_stores import open_rocks
from support import new_tasks
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.domain.registry import Registry
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.pipeline import IngestPipeline
from terrazzo.ingest.report_tag import make_tag
from terrazzo.mapping.effect_queue import EffectQueue
from terrazzo.mapping.effect_writer import EffectWriter
from terrazzo.mapping.report_mapper import ReportMapper
from terrazzo.metadata.entities import Entities
from terrazzo_adapters.rocksdb import RocksStore
from terrazzo_broker.hooks import Inbound

START_US = 1_700_000_000_000_000
TERMINAL = "k1"


def points(number: int) -> dict[str, int]:
    """What message ``number`` says; its time is ``START_US`` and so many seconds."""
    chance = random.Random(number)
    return {"T": chance.randrange(100), "RUN": chance.randrange(3)}


class _Batch:
    def __init__(self, messages: list[Inbound], done: asyncio.Event) -> None:
        self.client = SimpleNamespace(client_id=TERMINAL, protocol=5, owner="1")
        self.messages = messages
        self.arrived_us = time.time_ns() // 1000
        self.settle = lambda refusals=None: done.set()

    def hold(self) -> None: ...

    def release(self) -> None: ...


class _Valve:
    def pause_intake(self) -> None: ...

    def resume_intake(self) -> None: ...

    def kick(self, client_id: str) -> bool:
        return False


async def open_parts(folder: Path) -> tuple[RocksStore, Database, Entities]:
    database = await Database.open(os.environ.get("TERRAZZO_DATABASE__URL", ""), data_dir=folder)
    entities = Entities.open(database, Registry(), Secrets.open(folder))
    return await open_rocks(folder / "series"), database, entities


async def run(folder: Path, first: int) -> None:
    store, database, entities = await open_parts(folder)
    tasks = new_tasks()
    mapper = await ReportMapper.open(store, entities, EffectQueue(EffectWriter(database), tasks))
    mapper.maker.start(tasks)
    ingest = IngestPipeline(store, _Valve(), tasks=tasks, mapper=mapper)
    ingest.start()
    terminal = Terminal(id=1, uid=TERMINAL, name="", company_id=1, type="Other", mode="pwd", username="", pin="")
    tag = make_tag(ReportTopic(f"g/{TERMINAL}/r", terminal, "r"), trace=Trace(), seal=None)
    print("ready", flush=True)
    number = first
    while True:
        numbers = range(number, number + 5)
        bodies = [{**points(each), "Time": START_US // 1_000_000 + each} for each in numbers]
        done = asyncio.Event()
        ingest.take(_Batch([Inbound(tag, json.dumps(body).encode()) for body in bodies], done))
        await done.wait()
        number += 5
        print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(run(Path(sys.argv[1]), int(sys.argv[2])))
