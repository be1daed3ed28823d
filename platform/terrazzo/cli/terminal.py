"""``terrazzo terminal why``: why a terminal can't connect, asked of a running platform or read in its data folder.

Where no platform is named it is the one that runs on the data folder, by its control socket; else the folder is read.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from terrazzo.cli.connection import DEFAULT_URL, TOKEN_VARIABLE, TokenOption, connect, failed
from terrazzo.cli.options import ConfigOption, DataOption, JsonOption, read_config
from terrazzo.cli.shown import print_json, say
from terrazzo.client.errors import ClientError
from terrazzo.config.sections import Config, ConfigError
from terrazzo_broker.log_text import visible

if TYPE_CHECKING:
    from terrazzo.diagnostics.refusal_file import KeptRefusals
    from terrazzo.domain.refusals.entry import RefusalEntry

Status = dict[str, Any]

_PATIENCE_S = 5.0  # with a platform that stands still: that is looked into at night, too

_AskedUrl = Annotated[
    str | None,
    typer.Option("--url", metavar="URL", help="Ask the running platform there.", show_default=False),
]
_AskedUser = Annotated[
    str | None,
    typer.Option("--user", metavar="NAME", help="Ask the running platform, as this user.", show_default=False),
]

_commands = typer.Typer(help="Look into terminals.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo terminal``."""
    app.add_typer(_commands, name="terminal")
    _commands.callback()(_describe)


def _describe() -> None:
    """Look into terminals."""


@_commands.command("why")
def why(
    uid: Annotated[str, typer.Argument(metavar="UID", help="The terminal's uid.", show_default=False)] = "",
    address: Annotated[
        str, typer.Option("--address", metavar="ADDRESS", help="What failed at an address, whoever it was, instead.")
    ] = "",
    as_json: JsonOption = False,
    url: _AskedUrl = None,
    user: _AskedUser = None,
    token: TokenOption = None,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Say why a terminal was refused or went, and what to do about it."""
    if bool(uid) == bool(address):
        raise ConfigError("terminal why: expected a terminal's UID, or --address")
    asks = url or user or token or os.environ.get(TOKEN_VARIABLE)
    if asks:
        question = {"terminal_id": uid} if uid else {"address": address}
        status = _ask(question, url or DEFAULT_URL, user or "admin", token)
    else:
        loaded = read_config(config, data)
        status = _ask_here(uid, address, loaded) or _look(uid, address, loaded)
    if as_json:
        print_json(status)
    else:
        say(*_lines(status))


def _ask(question: Mapping[str, str], url: str, user: str, token: str | None) -> Status:
    """What the running platform says, of a terminal or of an address."""
    action = "get_terminal_status" if "terminal_id" in question else "get_address_refusals"
    try:
        with connect(url, user, token) as client:
            return dict(client.call(action, **question))
    except ClientError as error:
        raise failed(error) from None


def _ask_here(uid: str, address: str, config: Config) -> Status | None:
    """What the platform says that runs on the data folder; None where none runs, or it doesn't answer.

    Raises:
        ConfigError: it has no terminal with this uid.
    """
    from terrazzo.cli.control import NotDone, ask_running

    asked = {"do": "terminal_status", "terminal_id": uid} if uid else {"do": "address_refusals", "address": address}
    try:
        status = ask_running(config.data_dir, asked, lambda _line: None, timeout_s=_PATIENCE_S)
    except NotDone as error:
        say(f"{error}; read in its data folder, which is some seconds behind:", to_stderr=True)
        return None
    if status == {}:
        raise _nobody(uid)
    return status


def _look(uid: str, address: str, config: Config) -> Status:
    return asyncio.run(_look_up(uid, config)) if uid else _look_at(address, config)


async def _look_up(uid: str, config: Config) -> Status:
    """What stands in the data folder, a few seconds late; whether the terminal is connected doesn't."""
    terminal_id = await _find_id(uid, config)
    kept = _kept(config)
    entries = [entry for each in kept if each.terminal_id == terminal_id for entry in each.entries[::-1]]
    addresses = {entry.address for entry in entries if entry.is_own}
    others = [entry for each in kept if each.share in addresses for entry in each.entries[::-1]]
    return {"terminal_id": uid, "refusals": _shown(entries, config), "address_refusals": _shown(others, config)}


def _look_at(address: str, config: Config) -> Status:
    """What failed at an address before it was known who is there, and what was refused under uids that nobody has."""
    from terrazzo_broker.peer_address import share_of

    share = share_of(address)
    entries = [entry for each in _kept(config) if each.share == share for entry in each.entries[::-1]]
    return {"address": share, "refusals": _shown(entries, config)}


def _kept(config: Config) -> list[KeptRefusals]:
    """What the file in the data folder says.

    Raises:
        ConfigError: there is no data folder, or the file can't be read.
    """
    from terrazzo.diagnostics.refusal_file import FILE_NAME, kept_in

    if not config.data_dir.is_dir():
        raise ConfigError(f"data.dir: there is no folder {config.data_dir}; --url asks a running platform")
    try:
        return kept_in(config.data_dir / FILE_NAME)
    except OSError as error:
        raise ConfigError(str(error)) from error


def _shown(entries: list[RefusalEntry], config: Config) -> list[Status]:
    import msgspec

    from terrazzo.domain.refusals.entry import refusal_record

    return [msgspec.to_builtins(refusal_record(each, config.zone)) for each in entries]


async def _find_id(uid: str, config: Config) -> int:
    """The record id of a terminal.

    Raises:
        ConfigError: nobody has this uid, or the database can't be read.
    """
    import sqlalchemy as sa

    from terrazzo.database.database import Database
    from terrazzo.database.migration import DatabaseUnusable
    from terrazzo.metadata.definitions.registry import TERMINAL

    if not config.data_dir.is_dir():
        raise ConfigError(f"data.dir: there is no folder {config.data_dir}; --url asks a running platform")
    try:
        database = await Database.open(config.database.url, data_dir=config.data_dir, upgrade=False)
    except DatabaseUnusable as error:
        raise ConfigError(str(error)) from None
    try:
        table = TERMINAL.table
        async with database.reading() as connection:
            found = (await connection.execute(sa.select(table.c.id).where(table.c.uid == uid))).scalar()
    finally:
        await database.close()
    if found is None:
        raise _nobody(uid)
    return int(found)


def _nobody(uid: str) -> ConfigError:
    return ConfigError(f"{uid}: no terminal with this uid is registered; a terminal's client id has to be its uid")


def _lines(status: Status) -> Iterator[str]:
    yield visible(f"{status['terminal_id']}{_connection(status)}" if "terminal_id" in status else status["address"])
    for each in status["refusals"]:
        yield from _entry(each, of_whom=", unproven" if "terminal_id" in status else "")
    if not status["refusals"]:
        yield "  nothing was refused"
    if status.get("address_refusals"):
        yield "at its addresses, of whoever it was:"
        for each in status["address_refusals"]:
            yield from _entry(each, of_whom="")


def _connection(status: Status) -> str:
    """Whether it is connected, where that is known."""
    if "online" not in status:
        return ""
    if status["online"]:
        return f": online since {status['since']} from {status['address']} ({status['protocol']})"
    if not status["last_seen"]:
        return ": not connected since the platform started"
    return f": offline, last seen {status['last_seen']} at {status['address']}: {status['disconnect_reason']}"


def _entry(each: dict[str, Any], *, of_whom: str) -> Iterator[str]:
    """The lines of an entry; ``of_whom``: what is said of one where nobody had proven to be the terminal."""
    code = f" (0x{each['reason_code']:02X})" if each["reason_code"] else ""
    times = f", {each['count']} times since {each['first_time']}" if each["count"] > 1 else ""
    source = f", from {each['address']}" if each["address"] else ""
    unproven = "" if each["proven"] else of_whom
    yield visible(f"  {each['time']}  {each['reason']}{code}{source}{unproven}{times}")
    yield visible(f"      {each['text']}")
    yield visible(f"      to do: {each['advice']}")
