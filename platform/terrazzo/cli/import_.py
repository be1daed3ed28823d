"""``terrazzo import``: imports records from a file into a running platform, all or none."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from terrazzo.cli.connection import DEFAULT_URL, TokenOption, UrlOption, UserOption, connect, failed
from terrazzo.cli.options import JsonOption
from terrazzo.cli.shown import cell, print_json, say
from terrazzo.client.errors import ActionError, ClientError
from terrazzo.config.sections import ConfigError

if TYPE_CHECKING:
    from terrazzo.client.bulk import OnProgress
    from terrazzo.client.results import ImportReport

BAD_PARAMETER = 10401  # the gateway's code for what is wrong with a file
_FAILED = 1  # exit status: the file is at fault
_STAGES = {"read": "reading", "check": "checking", "write": "writing"}


class Kind(StrEnum):
    """The entities that can be imported and exported."""

    TERMINALS = "terminals"
    TERMINAL_CONFIGS = "terminal_configs"
    MAPPINGS = "mappings"
    CONTROLS = "controls"
    CUSTOMERS = "customers"
    OBJECTS = "objects"


class Mode(StrEnum):
    """What happens to rows whose records exist already."""

    CREATE = "create"
    UPSERT = "upsert"


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo import``."""
    app.command("import")(import_file)


def import_file(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV, JSON or JSON lines; - is standard input.")],
    entity: Annotated[Kind, typer.Option("--entity", help="What the rows are.")] = Kind.TERMINALS,
    mode: Annotated[Mode, typer.Option("--mode", help="upsert also changes records that are there.")] = Mode.CREATE,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only check, and say what would be done.")] = False,
    url: UrlOption = DEFAULT_URL,
    user: UserOption = "admin",
    token: TokenOption = None,
    as_json: JsonOption = False,
) -> None:
    """Import records, all or none; exit with 1 when the file has errors."""
    data = _read(file)
    try:
        with connect(url, user, token) as client, _progress() as on_progress:
            report = client.import_records(
                entity.value, data, dry_run=dry_run, mode=mode.value, on_progress=on_progress
            )
    except ActionError as error:
        if error.code != BAD_PARAMETER:
            raise failed(error) from None
        _show_refusal(error, as_json)
        raise typer.Exit(_FAILED) from None
    except ClientError as error:
        raise failed(error) from None
    if as_json:
        print_json(report)
    elif not report["errors"]:
        say(_summary(report))
    else:
        _show_errors(report)
    if report["errors"]:
        raise typer.Exit(_FAILED)


def _read(file: str) -> bytes:
    try:
        return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"FILE: {file}: {error.strerror}") from None


@contextmanager
def _progress() -> Iterator[OnProgress]:
    """A progress bar on standard error, if that is a terminal."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("sending", total=None)

        def show(progress: Any) -> None:
            total = progress.total or None
            bar.update(task, description=_STAGES.get(progress.stage, "working"), completed=progress.done, total=total)

        yield show


def _summary(report: ImportReport) -> str:
    counts = ", ".join(f"{report[each]} {each}" for each in ("created", "updated", "unchanged"))
    return f"{report['total']} rows: " + (f"would be {counts}" if report["dry_run"] else counts)


def _show_refusal(error: ActionError, as_json: bool) -> None:
    if isinstance(error.result, dict) and error.result.get("errors"):
        if as_json:
            print_json(error.result)
        else:
            _show_errors(error.result)
    else:
        say(f"terrazzo: {error.info}; nothing was imported", to_stderr=True)


def _show_errors(report: Any) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("row", "column", "error")
    for issue in report["errors"]:
        table.add_row(cell(issue["row"]), cell(issue["column"]), cell(issue["reason"]))
    console = Console(stderr=True)
    console.print(table)
    omitted = f" ({report['errors_omitted']} more are not shown)" if report["errors_omitted"] else ""
    total = len(report["errors"]) + report["errors_omitted"]
    console.print(
        cell(f"{total} errors in {report['failed']} of {report['total']} rows{omitted}; nothing was imported")
    )
