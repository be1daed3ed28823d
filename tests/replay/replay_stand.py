"""A platform in this process with an object that has two terminals, whose reports are handed to the ingest.

``python replay_stand.py FOLDER [INFLUX]`` opens the stand of a folder and works off its replays until it is killed;
when there are none it changes the mapping and submits one.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import sqlalchemy as sa

from migrated import seed
from own_platform import Platform, config_in
from terrazzo.database.tables.events import EVENT, LABEL
from terrazzo.database.tables.replays import REPLAY
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.report_topic import ReportTopic, Trace
from terrazzo.domain.terminal import Terminal
from terrazzo.ingest.report_tag import make_tag
from terrazzo.mapping.replay.journal import UNFINISHED
from terrazzo.times import now_us
from terrazzo_broker.hooks import Inbound

T0 = 1_700_000_000_000_000
SECOND = 1_000_000
ALL = 2**62

PLAIN = [
    ["T", "Temperature", "", "STA", "$AdapterID-1.T", ""],
    ["RUN", "Runs", "", "STA", "$AdapterID-2.RUN", ""],
    ["HOT", "Hot", "", "EVNT", "$AdapterID-1.T", "", "x > 80"],
]
RICH = [
    ["T", "Temperature in K", "", "STA", "$AdapterID-1.T", "x + 273"],
    ["RUN", "Runs", "", "STA", "$AdapterID-2.RUN", "1 - x if x < 2 else x"],
    ["BOTH", "", "", "FUNC", "Changed", "", "@Expr", "T * RUN"],
    ["N", "", "", "STT", "Changed", "600", "", {"fn": "count", "of": "T"}],
    ["HOT", "Very hot", "", "EVNT", "$AdapterID-1.T", "", "x > 60 and RUN > 0"],
]
RETAINER = [["RUN", "on", "on", "1", ""], ["T", "fifty", "fifty", "50", "0"]]


class Stand:
    """Times are seconds after ``T0``."""

    def __init__(self, folder: Path, influx: str = "") -> None:
        """On RocksDB, or with the address of an InfluxDB there, in a database named as the folder."""
        self.folder = folder
        self.influx = influx
        self.actor = Actor(user_id=1, username="u", company_id=1, role=Role.ADMIN)

    @property
    def database_name(self) -> str:
        """The InfluxDB's."""
        return f"{self.folder.parent.name}-{self.folder.name}"

    @property
    def is_intake_paused(self) -> bool:
        """Whether the broker reads nothing from terminals."""
        return self.platform.terminals.broker.intake_paused

    async def create(self, script: list[Any]) -> None:
        """What an earlier start has not left."""
        entities, actor = self.entities, self.actor
        config = await entities.configurations.create(actor, {"name": "c"})
        for uid in ("t1", "t2"):
            terminal = {"uid": uid, "name": uid, "type": "Other", "mode": "pwd", "username": uid, "pin": "p"}
            await entities.terminals.create(actor, {**terminal, "config_id": config["uid"]})
        mapping = await entities.mappings.create(actor, {"name": "m", "script": script})
        given = {"name": "o", "mapping_id": mapping["uid"], "terminal_list": ["t1", "t2"]}
        await entities.objects.create(actor, given)
        retainer = {"name": "r", "object_list": ["1"], "script": RETAINER}
        made = await entities.retainers.create(actor, retainer)
        await entities.retainers.set_active(actor, made["uid"], True)

    async def _copy(self, script: list[Any]) -> None:
        """From a folder beside this one that is made once: to make its records takes a while."""
        template = self.folder.parent / f"template-{zlib.crc32(repr(script).encode())}"
        if not template.exists():
            made = await Stand(template).start()
            await made.create(script)
            await made.stop()
        shutil.copytree(template, self.folder, dirs_exist_ok=True)

    async def start(self, script: list[Any] | None = None) -> Stand:
        """On a new folder with a ``script``, or on one that was left."""
        if script is not None:
            await self._copy(script)
        influx = {"kind": "influxdb", "url": self.influx, "database": self.database_name}
        self.platform = platform = Platform(config_in(seed(self.folder), store=influx if self.influx else {}))
        await platform.start()
        parts = platform.parts
        self.store, self.replays, self.ingest = parts.store, parts.replays, parts.messaging.ingest
        self.database, self.entities = parts.metadata.database, parts.metadata.entities
        self.mapper, self.analysis = parts.objects.mapper, parts.objects.analysis
        self.effect_queue = self.mapper.effect_queue
        return self

    async def stop(self) -> None:
        await self.platform.stop()

    def send(self, *reports: tuple[float, str, dict[str, Any]]) -> asyncio.Event:
        """Hands reports over: second, terminal, points; set when they are acknowledged."""
        done = asyncio.Event()
        messages = [
            Inbound(_tag(uid), json.dumps({**points, "Time": T0 / SECOND + at_s}).encode())
            for at_s, uid, points in reports
        ]
        batch = SimpleNamespace(
            client=SimpleNamespace(client_id="t1", protocol=5, owner="1"),
            messages=messages,
            arrived_us=now_us(),
            settle=lambda refusals=None: done.set(),
            hold=lambda: None,
            release=lambda: None,
        )
        self.ingest.take(batch)
        return done

    async def report(self, *reports: tuple[float, str, dict[str, Any]]) -> None:
        """Returns when they are stored, and what they raised is in the database."""
        if reports:
            await self.send(*reports).wait()
            await self.effect_queue.settled(self.effect_queue.last)

    async def remap(self, script: list[Any]) -> None:
        await self.entities.mappings.update(self.actor, 1, {"script": script})

    async def submit(self, start_s: float, end_s: float | None, *, dry_run: bool = False) -> int:
        whose = await self.entities.objects.item(self.actor, 1)
        end_us = None if end_s is None else T0 + round(end_s * SECOND)
        return await self.replays.submit(self.actor, whose, T0 + round(start_s * SECOND), end_us, dry_run=dry_run)

    async def submit_for_other(self) -> int:
        """A replay of another object, which waits if one runs."""
        given = {"name": "p", "mapping_id": 1, "terminal_list": ["t2"]}
        whose = await self.entities.objects.create(self.actor, given)
        whose = await self.entities.objects.item(self.actor, whose["id"])
        return await self.replays.submit(self.actor, whose, T0, T0 + SECOND, dry_run=False)

    async def ended(self, replay_id: int) -> dict[str, Any]:
        """The replay's row when it has ended."""
        async with asyncio.timeout(60):
            while (row := await self.replays.item(self.actor, replay_id))["state"] in UNFINISHED:  # noqa: ASYNC110 - it is a row of the database
                await asyncio.sleep(0.005)
        return dict(row)

    async def replay(self, start_s: float, end_s: float | None, **options: Any) -> dict[str, Any]:
        """The row of a replay that is done."""
        row = await self.ended(await self.submit(start_s, end_s, **options))
        assert (row["state"], row["info"]) == ("done", "")
        return row

    async def mosaic(self) -> list[tuple[float, dict[str, Any]]]:
        page = await self.store.page(["m/1"], 0, ALL, offset=0, limit=1_000_000)
        return [((each.time_us - T0) / SECOND, msgspec.msgpack.decode(each.body)) for each in reversed(page.records)]

    async def rows(self, table: sa.Table) -> list[dict[str, Any]]:
        """In order of time; events of several terminals at the same time have none: see ``merge_events``."""
        columns = table.c
        order = [columns.opened_at] if table is LABEL else [columns.created, columns.terminal_id]
        async with self.database.reading() as connection:
            found = await connection.execute(sa.select(table).order_by(*order, columns.code, columns.id))
            return [dict(row) for row in found.mappings()]

    async def events(self) -> list[tuple[float, str, str]]:
        """Second, code, value."""
        return [((row["created"] - T0) / SECOND, row["code"], row["value"]) for row in await self.rows(EVENT)]

    async def labels(self) -> list[tuple[str, float, float | None]]:
        """Code, from when, until when."""
        rows = await self.rows(LABEL)
        return [(row["code"], _second(row["opened_at"]), _second(row["close_at"])) for row in rows]

    async def everything(self) -> tuple[Any, Any, Any]:
        return await self.mosaic(), await self.events(), await self.labels()


def _second(time_us: int | None) -> float | None:
    return None if time_us is None else (time_us - T0) / SECOND


def _tag(uid: str) -> Any:
    terminal = Terminal(id=1, uid=uid, name="", company_id=1, type="Other", mode="pwd", username="", pin="")
    return make_tag(ReportTopic(f"g/{uid}/r", terminal, "r"), trace=Trace(), seal=None)


async def _serve(folder: Path, influx: str) -> None:
    stand = await Stand(folder, influx).start()
    print("ready", flush=True)
    while True:
        async with stand.database.reading() as connection:
            query = sa.select(REPLAY.c.id).where(REPLAY.c.state.in_(UNFINISHED))
            unfinished = (await connection.execute(query)).scalar()
        if unfinished is not None:
            await stand.ended(unfinished)
        mapping = await stand.entities.mappings.item(stand.actor, 1)
        await stand.remap(PLAIN if mapping["script"] == RICH else RICH)
        await stand.submit(-10, None)


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), *sys.argv[2:] or ("",)))
