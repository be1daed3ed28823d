"""Reads what a run has left behind: each store as it is once it has the log to its end, the log, the database."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from pathlib import Path

import sqlalchemy as sa

from cluster.cluster_evidence import Evidence, LabelSpan, LogFrame, Published, Replica, Report, Stored
from cluster.cluster_stand import Stand
from support import new_tasks
from terrazzo.database.database import Database
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.ports.store import TimeSeriesStore
from terrazzo.ports.stream import LogUnavailable
from terrazzo.replication.follower import Follower
from terrazzo.replication.frame import Appended, Assembly, decode_frame, records_of
from terrazzo.replication.position import read_position
from terrazzo_adapters.jetstream import Connection, JetStreamLog, JetStreamSettings
from terrazzo_adapters.rocksdb import RocksStore

_ALWAYS_US = 2**62
_PATIENCE_S = 30.0  # with the log's servers


async def read_evidence(stand: Stand, published: dict[str, list[Published]], objects: dict[str, str]) -> Evidence:
    """All of it but commands, when nodes and fronts have ended."""
    settings = JetStreamSettings(url=",".join(server.url for server in stand.servers), name="cluster")
    connection = Connection(settings)
    await connection.open()
    try:
        log = JetStreamLog(connection)
        replicas = {name: await read_replica(stand.folder / name / "series", log) for name in stand.nodes}
        frames, logged = await read_log(log)
    finally:
        await connection.close()
    events, labels = await _read_effects(stand.database, stand.folder, {item: uid for uid, item in objects.items()})
    return Evidence(published, replicas, frames, logged, events, labels)


async def read_replica(folder: Path, log: JetStreamLog) -> Replica:
    """A node's store, once it has the log to its end."""
    tasks = new_tasks()
    store = await RocksStore.open(folder, tasks=tasks)
    try:
        position = await read_position(store)
        assert position is not None, f"{folder} follows no log"
        await Follower(log, store, position).follow_to((await log.state()).last)
        return await replica_of(store)
    finally:
        await store.close()
        await tasks.close()


async def replica_of(store: TimeSeriesStore) -> Replica:
    """All reports of a store, and checksums of all series and notes."""
    reports: dict[str, list[Stored]] = {}
    checksums: dict[str, str] = {}
    for name in await store.series(""):
        digest = hashlib.sha256()
        uid = uid_of(name)
        async for piece in store.scan([name], 0, _ALWAYS_US):
            for record in piece:
                digest.update(b"%d %d " % (record.time_us, len(record.body)) + record.body)
                if uid:
                    reports.setdefault(uid, []).append(stored(record.time_us, record.body))
        checksums[name] = digest.hexdigest()
    notes = hashlib.sha256()
    for name, value in (await store.notes("")).items():
        notes.update(repr((name, value)).encode())
    return Replica(reports, {**checksums, "notes": notes.hexdigest()})


async def read_log(log: JetStreamLog) -> tuple[list[LogFrame], dict[str, list[Stored]]]:
    """The frames that are there, and the reports in them by terminal."""
    frames: list[LogFrame] = []
    logged: dict[str, list[Stored]] = {}
    assembly, state = Assembly(), await log.state()
    reader, latest_s = log.read(state.first - 1, state.created), time.monotonic() + _PATIENCE_S
    try:
        while not frames or frames[-1].sequence < state.last:
            try:
                found = await reader.next(5.0)
            except LogUnavailable:  # its servers may choose a leader just now
                if time.monotonic() > latest_s:
                    raise
                await asyncio.sleep(0.1)
                continue  # where it was
            for each in found:
                frame = decode_frame(each.body)
                frames.append(LogFrame(each.sequence, frame.epoch))
                operation = assembly.add(frame)
                if isinstance(operation, Appended):
                    for record in records_of(operation):
                        if uid := uid_of(record.series):
                            logged.setdefault(uid, []).append(stored(record.time_us, record.body))
    finally:
        await reader.close()
    return frames, logged


def uid_of(series: str) -> str:
    """The terminal of a series of reports; empty for another."""
    parts = series.split("/")
    return parts[1] if parts[0] == "g" and parts[2] == "r" else ""


def stored(time_us: int, body: bytes) -> Stored:
    """A record as its payload names it."""
    said = json.loads(body)
    return Stored(Report(said["c"], said["n"]), time_us)


async def _read_effects(
    url: str, folder: Path, uids: dict[str, str]
) -> tuple[dict[str, list[int]], dict[str, list[LabelSpan]]]:
    """Events and labels by terminal."""
    events: dict[str, list[int]] = {}
    labels: dict[str, list[LabelSpan]] = {}
    database = await Database.open(url, data_dir=folder, upgrade=False)
    try:
        async with database.reading() as connection:
            for item, time_us in await connection.execute(sa.select(EVENT.c.object_id, EVENT.c.created)):
                events.setdefault(uids[str(item)], []).append(time_us)
            query = sa.select(LABEL.c.object_id, LABEL.c.opened_at, LABEL.c.close_at)
            for item, opened_us, closed_us in await connection.execute(query):
                labels.setdefault(uids[str(item)], []).append(LabelSpan(opened_us, closed_us))
    finally:
        await database.close()
    return events, labels
