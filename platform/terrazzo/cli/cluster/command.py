"""``terrazzo cluster``: the nodes around a replicated log, asked of the log itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from terrazzo.cli.cluster.drain import drain
from terrazzo.cli.cluster.reading import clustered, open_log, read_status
from terrazzo.cli.options import ConfigOption, DataOption, JsonOption
from terrazzo.cli.shown import cell, print_json, say
from terrazzo.config.sections import Config, ConfigError
from terrazzo.times import format_iso

if TYPE_CHECKING:
    from rich.console import Console

    from terrazzo.cli.cluster.reading import ClusterStatus
    from terrazzo.replication.database_record import DatabaseRecord


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo cluster``."""
    commands = typer.Typer(help="The nodes around a replicated log.", no_args_is_help=True)
    commands.command("status")(status)
    commands.command("drain")(drain)
    commands.command("forget")(forget)
    commands.command("begin-anew")(begin_anew)
    commands.command("accept-database")(accept_database)
    app.add_typer(commands, name="cluster")


def status(as_json: JsonOption = False, config: ConfigOption = None, data: DataOption = None) -> None:
    """Show nodes and fronts, who leads, how far each is, and how full the log is; exit with 1 when one isn't there."""
    found = asyncio.run(read_status(clustered(config, data)))
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        _print(found)
    nodes, fronts = {node.state for node in found.nodes}, {front.state for front in found.fronts}
    if nodes & {"away", "ended"} or "away" in fronts:  # a node that has ended holds the log as one that is away
        raise typer.Exit(1)


def forget(
    node: Annotated[str, typer.Argument(help="The cluster.node of a node or front that is gone for good.")],
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Forget a node that is gone, so that the log is not kept for it any more; it can't come back as it was."""
    is_front = asyncio.run(_forget(clustered(config, data), node))
    if as_json:
        print_json({"forgotten": node})
    elif is_front:
        say(f"The front {node} is not shown any more.")
    else:
        say(f"The log is not kept for {node} any more. To use it again, fill its data folder from another's backup.")


def begin_anew(as_json: JsonOption = False, config: ConfigOption = None, data: DataOption = None) -> None:
    """Take the time series of a node that doesn't run as the beginning of a new log; docs/scaling.md says when."""
    sequence = asyncio.run(_begin_anew(clustered(config, data)))
    if as_json:
        print_json({"sequence": sequence})
    else:
        say(f"This node had the log up to frame {sequence:,}. Now set cluster.name to a new name, and start it.")


def accept_database(as_json: JsonOption = False, config: ConfigOption = None, data: DataOption = None) -> None:
    """Go on with a database that went back to an older state, or is another one; docs/scaling.md says when."""
    found = asyncio.run(_accept_database(clustered(config, data)))
    if as_json:
        print_json(msgspec.to_builtins(found))
    elif found.reached:
        say(f"The database was at position {found.reached:,}, {format_iso(found.at_us)}.")
        say("The next node that leads takes it as it is.")
    else:
        say("Nothing was remembered of the database. The next node that leads takes it as it is.")


async def _forget(config: Config, node: str) -> bool:
    """Deletes the record of a node, or else of a front; whether it is a front."""
    from terrazzo.replication.front_lease import FRONT_PREFIX
    from terrazzo.replication.members import PREFIX

    found = await read_status(config)
    is_front = node not in {each.node for each in found.nodes} and node in {each.node for each in found.fronts}
    states = {each.node: each.state for each in (found.fronts if is_front else found.nodes)}
    if node not in states:
        raise ConfigError(f"node: no node {node!r}; there are {', '.join(states) or 'none'}")
    if states[node] not in ("away", "ended"):
        raise ConfigError(f"node: {node!r} is there and {states[node]}: end it first")
    stream = await open_log(config)
    try:
        await stream.records.delete((FRONT_PREFIX if is_front else PREFIX) + node)
    finally:
        await stream.close()
    return is_front


async def _accept_database(config: Config) -> DatabaseRecord:
    """Forgets how far the database was; what was remembered of that."""
    from terrazzo.replication.database_record import KEY, decode_database_record

    leads = [each.node for each in (await read_status(config)).nodes if each.state == "leads"]
    if leads:
        raise ConfigError(f"node: {leads[0]!r} is there and leads: end it first")
    stream = await open_log(config)
    try:
        record = await stream.records.get(KEY)
        await stream.records.delete(KEY)
    finally:
        await stream.close()
    return decode_database_record(None if record is None else record.value)


async def _begin_anew(config: Config) -> int:
    """Takes its place in the log from the store; the frame up to which it had it."""
    from terrazzo.ports.store import StoreUnavailable
    from terrazzo.replication.in_position import IN_NOTE
    from terrazzo.replication.position import NOTE, JoinRefused, read_position
    from terrazzo.runtime.lifetime import Lifetime
    from terrazzo.runtime.serve import open_store

    async with Lifetime() as lifetime:
        try:
            store = await open_store(config, lifetime.tasks)
            lifetime.push_async_callback(store.close)
            position = await read_position(store)
            await store.append((), notes={NOTE: None, IN_NOTE: None})
        except (StoreUnavailable, JoinRefused) as error:
            raise ConfigError(f"data.dir: {error}") from None
    if position is None:
        raise ConfigError(f"data.dir: the time series in {config.data_dir} follow no log")
    return position.sequence


def _print(found: ClusterStatus) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("node", "", "version", "frame", "behind", "age", "seen", "address")
    for node in found.nodes:
        seen, age = f"{node.seen_s:.0f} s ago", "" if node.age_s is None else f"{node.age_s:.1f} s"
        state = f"{node.state}, reads" if node.reads else node.state
        shown = (node.node, state, node.version, f"{node.sequence:,}", f"{node.lag:,}", age, seen, node.url)
        table.add_row(*map(cell, shown))
    console = Console()
    console.print(cell(f"cluster {found.cluster}, epoch {found.epoch}, leader {found.leader or 'nobody'}"))
    used = found.log_bytes / 2**20
    console.print(cell(f"log: frames {found.log_first:,} to {found.log_last:,}, {used:,.1f} MiB, {found.sync}"))
    _print_servers(found, console)
    database = found.database
    if database is not None:
        console.print(cell(f"database: position {database.reached:,}, {format_iso(database.at_us)}"))
    console.print(table)
    if found.fronts:
        _print_fronts(found, console)


def _print_servers(found: ClusterStatus, console: Console) -> None:
    """The servers of the log, and what of fronts' reports waits there."""
    lags = {each.name: f", {each.lag:,} behind" if each.lag else "" for each in found.servers}
    servers = ", ".join(f"{each.name} {each.state}{lags[each.name]}" for each in found.servers)
    console.print(cell(f"servers: {servers or 'not known'}"))
    reports = found.reports
    if reports is not None:
        behind = "nobody stores them now" if reports.behind is None else f"{reports.behind:,} not stored yet"
        size = f"{reports.bytes / 2**20:,.1f} MiB, {reports.leader or 'nobody'} leads"
        console.print(cell(f"fronts' log: frames {reports.first:,} to {reports.last:,}, {behind}, {size}"))


def _print_fronts(found: ClusterStatus, console: Console) -> None:
    from rich.table import Table

    table = Table("front", "", "version", "terminals", "frames", "seen")
    for front in found.fronts:
        seen = f"{front.seen_s:.0f} s ago"
        table.add_row(
            *map(cell, (front.node, front.state, front.version, f"{front.clients:,}", f"{front.frames:,}", seen))
        )
    console.print(table)
