"""Platforms that were stopped, to be moved, and what is in them by ways that share nothing with the migration."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from loaded_process import LoadedProcess, run_loaded_text
from migrated import first_start, seed
from open_stores import open_rocks, supervisor
from own_platform import open_store
from terrazzo.config.sections import Config, load_config
from terrazzo.ports.store import Record, TimeSeriesStore

BODIES = (
    b'{"a":1,"b":{"c":null,"d":[1,2]},"e":"\xc3\xbc \\"x\\" \\\\"}',
    b'{ "a" : 1.0 , "a":2, "n": 12345678901234567890 }',
    b"\x82\xa1a\x01\xa1b\xc4\x02\x00\xff",
    b"\x00\xff not an object \r\n",
    b"{}",
    b'{"long":"' + b"x" * 5_000 + b'"}',
)


def environment(
    prefix: str = "TERRAZZO_", *, database: str = "", influx: tuple[str, str] | None = None
) -> dict[str, str]:
    """The variables that name a database and a store (address and database of an InfluxDB)."""
    given = {f"{prefix}DATABASE__URL": database} if database else {}
    if influx:
        url, name = influx
        given |= {f"{prefix}STORE__KIND": "influxdb", f"{prefix}STORE__URL": url, f"{prefix}STORE__DATABASE": name}
    return given


def migrate(source: Path, target: Path, *more: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """``terrazzo migrate`` as a process."""
    words = ["-m", "terrazzo", "migrate", "--data", str(source), "--to-data", str(target), *more]
    return run_loaded_text(words, env={**clean(), **variables})


def started(source: Path, target: Path, **variables: str) -> LoadedProcess:
    """The same to be killed."""
    words = ["-m", "terrazzo", "migrate", "--data", str(source), "--to-data", str(target)]
    with open(os.devnull, "wb") as nothing:
        return LoadedProcess(words, nothing, {**clean(), **variables})


def clean() -> dict[str, str]:
    """The environment of a process that compiles nothing twice."""
    return {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def new_source(folder: Path, *, series: int = 3, records: int = 40) -> Path:
    """A data folder with the records of a first start and some of each kind of series, as nobody wrote it better."""
    seed(folder, first_start)
    Config().with_data_dir(folder)
    with closing(sqlite3.connect(folder / "terrazzo.db")) as database:
        _fill(database)
        database.commit()
    (folder / "secrets-key").write_text("ab" * 32 + "\n")
    (folder / "files" / "1").mkdir(parents=True)
    (folder / "files" / "1" / "upload").write_bytes(os.urandom(10_000))
    asyncio.run(_fill_store(folder, series, records))
    return folder


def _fill(database: sqlite3.Connection) -> None:
    for number in range(1, 301):
        database.execute(
            "INSERT INTO change (entity, record_id, uid, changed_us, origin) VALUES (?, ?, ?, ?, ?)",
            ("terminal", 2**63 - number, f"ü{number}", number, None if number % 2 else "x"),
        )
    database.execute("DELETE FROM change WHERE id > 290")  # ids that were used and are never used again
    database.execute("INSERT INTO presence_day VALUES (7, 20000, ?)", (bytes(range(256)),))
    database.execute("INSERT INTO presence_day VALUES (7, 20001, x'')")
    database.execute("INSERT INTO effect_mark VALUES ('Zoë', ?)", (2**62,))
    database.execute("INSERT INTO effect_mark VALUES ('a b', 1)")
    for company, kind, part in ((1, "b", 2), (1, "B", 1), (1, "a", 3), (2, "Ä", 0)):
        database.execute("INSERT INTO company_usage VALUES (?, ?, ?, 5, 6)", (company, kind, part))


async def _fill_store(folder: Path, series: int, records: int) -> None:
    tasks = supervisor()
    store = await open_rocks(folder / "series", tasks)
    names = [f"g/T{n}/{channel}" for n in range(series) for channel in ("r", "é/ü , =", "n")]
    names += ["m/17", "x/T1", "c/T1"]
    try:
        for number in range(records):
            batch = [
                Record(name, 10**15 + number // 3, BODIES[(number + place) % 6]) for place, name in enumerate(names)
            ]
            await store.append(batch, notes={f"state/{number}": os.urandom(20), "same": b""})
        await store.append([Record("m/17", 0, b'{"late":1}'), Record("m/17", 5, b'{"late":2}')])
    finally:
        await store.close()
        await tasks.close()


def rows_of(folder: Path) -> dict[str, list[Any]]:
    """All rows of an SQLite file, and the ids that it has given out."""
    with closing(sqlite3.connect(folder / "terrazzo.db")) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found = {name: sorted(map(repr, database.execute(f'SELECT * FROM "{name}"'))) for name in names}
    found["sqlite_sequence"] = [each for each in found["sqlite_sequence"] if not each.endswith(", 0)")]  # as if unnamed
    return found


async def records_of(store: TimeSeriesStore) -> dict[str, list[Record]]:
    """All records by series, in order, read in another way than by ``scan``."""
    found = {}
    for name in await store.series(""):
        page = await store.page([name], 0, 2**62, offset=0, limit=1_000_000)
        found[name] = page.records[::-1]
    return found


def in_store(folder: Path, variables: Mapping[str, str]) -> tuple[dict[str, list[Record]], dict[str, bytes]]:
    """Records and notes of a data folder's store."""

    async def read() -> tuple[dict[str, list[Record]], dict[str, bytes]]:
        tasks = supervisor()
        store = await open_store(load_config(None, variables).with_data_dir(folder), tasks)
        try:
            return await records_of(store), await store.notes("")
        finally:
            await store.close()
            await tasks.close()

    return asyncio.run(read())
