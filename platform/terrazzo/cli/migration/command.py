"""``terrazzo migrate``: a platform from SQLite to PostgreSQL, from RocksDB to InfluxDB, into a cluster, and back."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from terrazzo.cli.options import ConfigOption, DataOption, JsonOption
from terrazzo.cli.shown import PRIVATE_UMASK, end_progress, print_json, say, show_progress
from terrazzo.config.sections import Config, ConfigError, load_config

if TYPE_CHECKING:
    from terrazzo.backup.migration.log_side import LogPlan
    from terrazzo.backup.migration.report import Report

TO = "TERRAZZO_TO_"
"""The prefix of variables that the target's configuration is made of, beside its file."""

_FAILED = 1  # exit status: source and target differ
_STEP_S = 0.5  # between two looks at progress
_ASK_S = 3.0

ToConfigOption = Annotated[
    Path | None, typer.Option("--to-config", metavar="FILE", help="Configuration of the target.", show_default=False)
]
ToDataOption = Annotated[
    Path | None,
    typer.Option("--to-data", metavar="DIR", help="Its data folder, empty or not there.", show_default=False),
]


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo migrate``."""
    app.command("migrate")(migrate)


def migrate(
    to_config: ToConfigOption = None,
    to_data: ToDataOption = None,
    replica: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Data folder of a further node of the target's cluster; may be repeated."),
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Only compare, after a migration that ended.")] = False,
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Move a stopped platform to another database or store, into a cluster or out of it; compare. Again it goes on."""
    source = _loaded(config, data, {name: text for name, text in os.environ.items() if not name.startswith(TO)})
    target = _loaded(to_config, to_data, _of_target(os.environ))
    os.umask(PRIVATE_UMASK)
    _refuse_running(source.data_dir)
    replicas = tuple(replica or ())
    for folder in (target.data_dir, *replicas):
        _refuse_running(folder)
    with _worded():
        report = asyncio.run(_migrate(source, target, replicas, verify=verify))
    if as_json:
        print_json(_described(report, target))
    else:
        _say(report, target, verify=verify)
    for line in report.differences:
        say(f"terrazzo: {line}", to_stderr=True)
    if report.differences:
        raise typer.Exit(_FAILED)


def _loaded(path: Path | None, data: Path | None, environ: Mapping[str, str]) -> Config:
    loaded = load_config(path, environ)
    return loaded if data is None else loaded.with_data_dir(data)


def _of_target(environ: Mapping[str, str]) -> dict[str, str]:
    return {f"TERRAZZO_{name.removeprefix(TO)}": text for name, text in environ.items() if name.startswith(TO)}


def _refuse_running(folder: Path) -> None:
    from terrazzo.cli.control import NotDone, ask_running

    advice = "stop it, or migrate what terrazzo restore made of a backup of it"
    if not folder.is_dir():
        return
    try:
        answer = ask_running(folder, {"do": "migrate"}, lambda _: None, timeout_s=_ASK_S)
    except NotDone:
        raise ConfigError(f"data.dir: a platform runs on {folder}; {advice}") from None
    if answer is not None:
        raise ConfigError(f"data.dir: a platform runs on {folder}; {advice}")


def _log_between(source: Config, target: Config, replicas: tuple[Path, ...]) -> LogPlan | None:
    """The log of the cluster that source or target is; None where both are one process."""
    is_former, is_new = (config.stream.kind != "none" for config in (source, target))
    for config, name in ((source, "--config"), (target, "--to-config")):
        if config.cluster.role == "front":
            raise ConfigError(f"{name}: is a front's, which keeps nothing: name that of a node")
    if replicas and not is_new:
        raise ConfigError("--replica: the target is one process: there are no further nodes")
    if is_former and is_new:
        raise ConfigError("--to-config: source and target are clusters: move it into one process first")
    if not is_former and not is_new:
        return None
    from terrazzo.backup.migration.log_side import LogPlan
    from terrazzo.cli.migration.log_sides import FormerLog, NewLog

    return LogPlan(NewLog(target) if is_new else FormerLog(source), replicas)


async def _migrate(source: Config, target: Config, replicas: tuple[Path, ...], *, verify: bool) -> Report:
    from terrazzo.backup.migration.runner import Migration, make_plan
    from terrazzo.runtime.serve import open_store
    from terrazzo.runtime.supervisor import Supervisor

    plan = make_plan(source, target, _log_between(source, target, replicas))
    tasks = Supervisor(on_stop=lambda: None)
    try:
        with _progress() as tell:
            migration = Migration(plan, open_store=lambda config: open_store(config, tasks), tell=tell)
            return await (migration.verify() if verify else migration.run())
    finally:
        await tasks.close()


def _described(report: Report, target: Config) -> dict[str, Any]:
    return {
        "id": report.id,
        "data_dir": str(target.data_dir),
        "tables": {name: {"rows": rows, "sha256": checksum} for name, (rows, checksum) in report.tables.items()},
        "series": report.series,
        "records": report.records,
        "notes": report.notes,
        "files": report.files,
        "left_out": report.left_out,
        "replicas": [str(folder) for folder in report.replicas],
        "unreadable": report.unreadable,
        "equal": not report.differences,
        "differences": report.differences,
    }


def _say(report: Report, target: Config, *, verify: bool) -> None:
    rows = sum(count for count, _ in report.tables.values())
    moved = f"{len(report.tables)} tables with {rows} rows, {report.series} series with {report.records} records"
    if report.left_out:
        say(f"left behind, as this version doesn't know them: {', '.join(report.left_out)}")
    if report.unreadable:
        say(f"{report.unreadable} secrets can't be opened with the key at hand, in the source neither")
    if report.differences:
        say(f"{moved} were compared, and differ; the source is as it was. Has it run meanwhile? Begin anew")
    elif verify:
        say(f"{moved} are equal")
    else:
        say(f"moved {moved}, and compared: all is equal; start it with its configuration and --data {target.data_dir}")
        for folder in report.replicas:
            say(f"{folder} has the same: it is the data folder of a further node")


@contextmanager
def _worded() -> Iterator[None]:
    from terrazzo.database.migration import DatabaseUnusable
    from terrazzo.ports.store import StoreUnavailable

    try:
        yield
    except (DatabaseUnusable, OSError, StoreUnavailable, ValueError) as error:
        raise ConfigError(f"{error}; what was moved stays: the same command goes on with it") from error


@contextmanager
def _progress() -> Iterator[Callable[[str, int, int], None]]:
    """Says how far it is: on a terminal twice a second, else once for each thing that is done."""
    last, said = 0.0, ""

    def tell(what: str, done: int, total: int) -> None:
        nonlocal last, said
        now = time.monotonic()
        if sys.stderr.isatty():
            if now - last > _STEP_S:
                last, said = now, what
                show_progress(f"{what}: {done} of {total}")
        elif what != said:
            said = what
            say(f"{what} ...", to_stderr=True)

    yield tell
    if said and sys.stderr.isatty():
        end_progress()
