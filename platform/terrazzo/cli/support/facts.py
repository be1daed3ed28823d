"""What can be said of a platform from its data folder, its configuration and this machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import shutil
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from terrazzo.cli.checks import MODULES, check_permissions, examine
from terrazzo.cli.finding import Finding, Level
from terrazzo.config.sections import Config
from terrazzo.runtime.build_info import build_info
from terrazzo.runtime.memory_ceiling import memory_there_is
from terrazzo.runtime.support_answers import process_figures

_EXTRAS = ("asyncpg", "boto3", "mcp", "pyarrow", "psutil")
_NAMES_RECORDS = frozenset({"pins", "keys", "scripts", "quotas"})
"""Parts of the doctor's report that name terminals and other records after a colon."""

_PATH = re.compile(r"(?<![\w/:.<])(?:\.{0,2}/)[^\s:;,]+")
_OTHER = "(other)"
_KNOWN = frozenset(
    {
        *("admin-password", "auto-logins", "backup-staging", "backup-status", "bridges", "broker", "broker-id"),
        *("control.sock", "demo-passwords", "files", "firmware-key", "last-seen", "refusals", "secrets-key"),
        *("secrets-key.old", "series", "spool", "terrazzo.db", "terrazzo.db-shm", "terrazzo.db-wal", "token-key"),
    }
)
"""What the platform itself puts into its folder. Anything else is counted, and not named."""

_MOST_ENTRIES = 200_000
_MOST_ROWS = 1_000_000


def versions() -> dict[str, Any]:
    """Of the platform, the interpreter, the system and the packages."""
    found = build_info()
    return {
        "terrazzo": found.version,
        "commit": found.commit,
        "python": found.python,
        "system": platform.system(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "sqlite": sqlite3.sqlite_version,
        "packages": {name: _version(name) for name in (*MODULES, *_EXTRAS)},
    }


def host(config: Config) -> dict[str, Any]:
    """Processors, memory and disk of this machine, and the limits on a process as it is started here."""
    there = next((each for each in (config.data_dir, *config.data_dir.resolve().parents) if each.exists()), Path("/"))
    disk = shutil.disk_usage(there)
    return {
        "processors": os.cpu_count(),
        "processors_usable": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory_bytes": memory_there_is(),
        "disk_bytes": disk.total,
        "disk_free_bytes": disk.free,
        "limits_here": process_figures()["limits"],
    }


def doctor(config: Config) -> list[dict[str, str]]:
    """The lines of ``terrazzo doctor``, without names of terminals and other records, and without paths."""
    return [
        {
            "level": each.level.value,
            "part": each.part,
            "found": _found(each),
            "advice": _PATH.sub("<path>", each.advice),
        }
        for each in examine(config)
        if each.part != "permissions"
    ] + _permissions(config)


def _found(finding: Finding) -> str:
    text = finding.found.split(":")[0] if finding.part in _NAMES_RECORDS else finding.found
    return _PATH.sub("<path>", text)


def _permissions(config: Config) -> list[dict[str, str]]:
    """How many findings there are on what others may open, which are full of names of files."""
    count = sum(1 for _ in check_permissions(config.data_dir))
    found = f"{count} findings on files and folders that others may open, or on their owner"
    level = Level.WARN if count else Level.OK
    return [{"level": level.value, "part": "permissions", "found": found, "advice": "see terrazzo doctor"}]


def folder(data_dir: Path) -> dict[str, Any]:
    """Files, bytes and the largest file of each thing in the data folder, by kind of file."""
    if not data_dir.is_dir():
        return {"exists": False}
    files: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    largest: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    looked = 0
    for where, _, names in os.walk(data_dir):
        for name in names:
            looked += 1
            if looked > _MOST_ENTRIES:
                break
            path = Path(where, name)
            top = path.relative_to(data_dir).parts[0]
            top = top if top in _KNOWN else _OTHER
            try:
                size = path.lstat().st_size
            except OSError:
                continue  # gone meanwhile: of a platform that runs
            files[top] += 1
            sizes[top] += size
            largest[top] = max(largest[top], size)
            kinds[f"{top}/*{path.suffix if path.suffix in ('.sst', '.log', '.blob') else ''}"] += 1
    return {
        "exists": True,
        "whole": looked <= _MOST_ENTRIES,
        "entries": {
            name: {"files": files[name], "bytes": sizes[name], "largest_bytes": largest[name]} for name in sorted(files)
        },
        "kinds": dict(sorted(kinds.items())),
    }


async def database(config: Config) -> dict[str, Any]:
    """The database's kind, its revision and the newest there is, and how many rows each table has."""
    import sqlalchemy as sa

    from terrazzo.database.database import Database
    from terrazzo.database.migration import DatabaseOutdated, DatabaseUnusable
    from terrazzo.database.migrations import REVISIONS

    kind = "postgresql" if config.database.url.startswith("postgres") else "sqlite"
    about: dict[str, Any] = {"kind": kind, "revision_needed": REVISIONS[-1]}
    try:
        opened = await Database.open(config.database.url, data_dir=config.data_dir, upgrade=False)
    except DatabaseOutdated:
        return about | {"state": "not there, or to be migrated by the next start"}
    except DatabaseUnusable:
        return about | {"state": "can't be opened; the doctor's report says why"}
    try:
        async with opened.reading() as connection:
            about["revision"] = (await connection.execute(sa.text("SELECT version_num FROM alembic_version"))).scalar()
            names = await connection.run_sync(lambda sync: sa.inspect(sync).get_table_names())
            rows = {}
            for name in sorted(names):
                some = sa.select(sa.literal(1)).select_from(sa.table(name)).limit(_MOST_ROWS + 1).subquery()
                count = (await connection.execute(sa.select(sa.func.count()).select_from(some))).scalar_one()
                rows[name] = count if count <= _MOST_ROWS else f"more than {_MOST_ROWS}"
    finally:
        await opened.close()
    return about | {"state": "up to date", "rows": rows}


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
