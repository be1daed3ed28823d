"""``terrazzo export``: writes records and time series of a running platform to files."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

from terrazzo.cli.connection import DEFAULT_URL, TokenOption, UrlOption, UserOption, connect, failed
from terrazzo.cli.import_ import Kind
from terrazzo.cli.shown import say
from terrazzo.client.errors import ClientError
from terrazzo.config.sections import ConfigError

if TYPE_CHECKING:
    from terrazzo.client import Client

SECRETS = {  # what the platform leaves out unless it is asked for
    Kind.TERMINALS: "pin, rsa_privatekey",
    Kind.CUSTOMERS: "secret",
    Kind.OBJECTS: "secret",
}

OutputOption = Annotated[str, typer.Option("--output", metavar="FILE", help="Where to write; - is standard output.")]

_commands = typer.Typer(help="Export records and time series to files.", no_args_is_help=True)


class Format(StrEnum):
    """Formats of exported records."""

    CSV = "csv"
    JSON = "json"
    JSONL = "jsonl"


class SeriesFormat(StrEnum):
    """Formats of exported time series."""

    CSV = "csv"
    JSONL = "jsonl"
    MSGPACK = "msgpack"
    ARROW = "arrow"
    PARQUET = "parquet"


KeysOption = Annotated[list[str] | None, typer.Option("--keys", help="Only this key; may be repeated.")]
StartOption = Annotated[str | None, typer.Option("--start", help="From this time on, inclusive.")]
EndOption = Annotated[str | None, typer.Option("--end", help="Until this time, inclusive.")]
SeriesFormatOption = Annotated[SeriesFormat, typer.Option("--format", help="The form of the file.")]


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo export``."""
    app.add_typer(_commands, name="export")


@_commands.callback()
def _describe() -> None:
    """Export records and time series to files."""


@_commands.command("records")
def export_records(
    entity: Annotated[Kind, typer.Option("--entity", help="Which records.")] = Kind.TERMINALS,
    format: Annotated[Format, typer.Option("--format", help="The form of the file.")] = Format.CSV,
    secrets: Annotated[bool, typer.Option("--secrets", help="With secrets; administrators only.")] = False,
    output: OutputOption = "-",
    url: UrlOption = DEFAULT_URL,
    user: UserOption = "admin",
    token: TokenOption = None,
) -> None:
    """Export all records of a kind in the form that terrazzo import takes."""
    with _connected(url, user, token) as client:
        pieces = client.export_records(entity.value, format=format.value, secrets=secrets)
        size = write_file(output, pieces, is_private=secrets)
    if not secrets and entity in SECRETS:
        say(f"left out: {SECRETS[entity]}; --secrets has them written too", to_stderr=True)
    _say_size(output, size)


@_commands.command("grid")
def export_grid(
    terminal: Annotated[str, typer.Argument(metavar="TERMINAL", help="The terminal's uid.")],
    topic: Annotated[
        list[str] | None, typer.Option("--topic", help="Topics, channels or filters; may be repeated.")
    ] = None,
    keys: KeysOption = None,
    start: StartOption = None,
    end: EndOption = None,
    format: SeriesFormatOption = SeriesFormat.CSV,
    output: OutputOption = "-",
    url: UrlOption = DEFAULT_URL,
    user: UserOption = "admin",
    token: TokenOption = None,
) -> None:
    """Export a terminal's messages, oldest first, however many there are."""
    options = {"format": format.value, "start": start, "end": end, "topic": topic or [], "keys": keys or []}
    with _connected(url, user, token) as client:
        _say_size(output, write_file(output, client.export_grid(terminal, **options)))


@_commands.command("mosaic")
def export_mosaic(
    object_id: Annotated[str, typer.Argument(metavar="OBJECT", help="The object's id.")],
    keys: KeysOption = None,
    start: StartOption = None,
    end: EndOption = None,
    format: SeriesFormatOption = SeriesFormat.CSV,
    output: OutputOption = "-",
    url: UrlOption = DEFAULT_URL,
    user: UserOption = "admin",
    token: TokenOption = None,
) -> None:
    """Export an object's values, oldest first, however many there are."""
    options = {"format": format.value, "start": start, "end": end, "keys": keys or []}
    with _connected(url, user, token) as client:
        _say_size(output, write_file(output, client.export_mosaic(object_id, **options)))


@contextmanager
def _connected(url: str, user: str, token: str | None) -> Iterator[Client]:
    try:
        with connect(url, user, token) as client:
            yield client
    except ClientError as error:
        raise failed(error) from None


def write_file(output: str, pieces: Iterator[bytes], *, is_private: bool = False) -> int:
    """Writes a file or (``-``) standard output; a file appears only when it is complete. Returns its size in bytes.

    Args:
        is_private: creates the file with mode 0600.

    Raises:
        ConfigError: it can't be written.
    """
    first = next(pieces, b"")  # nothing is written where the platform refuses
    if output == "-":
        return _write(sys.stdout.buffer, first, pieces)
    path = Path(output)
    part = path.with_name(f".{path.name}.part")
    try:
        with open(os.open(part, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600 if is_private else 0o666), "wb") as file:
            size = _write(file, first, pieces)
        part.replace(path)
    except OSError as error:
        raise ConfigError(f"--output: {output}: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
    return size


def _say_size(output: str, size: int) -> None:
    if output != "-":
        say(f"{size:,} bytes in {output}", to_stderr=True)


def _write(file: IO[bytes], first: bytes, pieces: Iterator[bytes]) -> int:
    size = file.write(first) + sum(map(file.write, pieces))
    file.flush()
    return size
