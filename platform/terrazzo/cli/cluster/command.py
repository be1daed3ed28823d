"""``terrazzo cluster``: the nodes around a replicated log, asked of the log itself."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from terrazzo.cli.options import ConfigOption, DataOption, JsonOption, read_config
from terrazzo.cli.shown import cell, print_json, say
from terrazzo.config.sections import Config, ConfigError
from terrazzo.times import now_us

if TYPE_CHECKING:
    from rich.console import Console

    from terrazzo.runtime.serve import Stream

_OLD_S = 10.0  # since a node has written its record: it is not there


class NodeStatus(msgspec.Struct, frozen=True):
    """A node as its record says. ``lag``: frames that it doesn't have; ``seen_s``: the age of the record."""

    node: str
    state: str  # leads | follows | away
    version: str
    sequence: int
    lag: int
    seen_s: float


class FrontStatus(msgspec.Struct, frozen=True):
    """A front as its record says. ``frames``: of its reports, that the log has acknowledged since it started."""

    node: str
    state: str  # serves | ended | away
    version: str
    clients: int
    frames: int
    seen_s: float


class ClusterStatus(msgspec.Struct, frozen=True):
    """What ``terrazzo cluster status`` shows."""

    cluster: str
    epoch: int
    leader: str
    log_first: int
    log_last: int
    log_bytes: int
    log_limit_bytes: int
    sync: str
    nodes: list[NodeStatus]
    fronts: list[FrontStatus]


def register(app: typer.Typer) -> None:
    """Adds ``terrazzo cluster``."""
    commands = typer.Typer(help="The nodes around a replicated log.", no_args_is_help=True)
    commands.command("status")(status)
    commands.command("forget")(forget)
    commands.command("begin-anew")(begin_anew)
    app.add_typer(commands, name="cluster")


def status(as_json: JsonOption = False, config: ConfigOption = None, data: DataOption = None) -> None:
    """Show nodes and fronts, who leads, how far each is, and how full the log is; exit with 1 when one is away."""
    found = asyncio.run(_read(_clustered(config, data)))
    if as_json:
        print_json(msgspec.to_builtins(found))
    else:
        _print(found)
    if "away" in [*(node.state for node in found.nodes), *(front.state for front in found.fronts)]:
        raise typer.Exit(1)


def forget(
    node: Annotated[str, typer.Argument(help="The cluster.node of a node or front that is gone for good.")],
    as_json: JsonOption = False,
    config: ConfigOption = None,
    data: DataOption = None,
) -> None:
    """Forget a node that is gone, so that the log is not kept for it any more; it can't come back as it was."""
    is_front = asyncio.run(_forget(_clustered(config, data), node))
    if as_json:
        print_json({"forgotten": node})
    elif is_front:
        say(f"The front {node} is not shown any more.")
    else:
        say(f"The log is not kept for {node} any more. To use it again, fill its data folder from another's backup.")


def begin_anew(as_json: JsonOption = False, config: ConfigOption = None, data: DataOption = None) -> None:
    """Take the time series of a node that doesn't run as the beginning of a new log; docs/scaling.md says when."""
    sequence = asyncio.run(_begin_anew(_clustered(config, data)))
    if as_json:
        print_json({"sequence": sequence})
    else:
        say(f"This node had the log up to frame {sequence:,}. Now set cluster.name to a new name, and start it.")


def _clustered(config: ConfigOption, data: DataOption) -> Config:
    loaded = read_config(config, data)
    if loaded.stream.kind == "none":
        raise ConfigError("stream.kind: is none: this platform is one process, and no cluster")
    return loaded


async def _read(config: Config) -> ClusterStatus:
    from terrazzo.replication.front_lease import fronts_of
    from terrazzo.replication.lease import KEY, decode_lease
    from terrazzo.replication.members import members_of

    stream = await _open(config)
    try:
        log, found = await stream.log.state(), await stream.records.get(KEY)
        records = await stream.records.all()
        members, fronts = members_of(records), fronts_of(records)
    finally:
        await stream.close()
    lease = None if found is None else decode_lease(found)
    leader = "" if lease is None or lease.is_free else lease.node
    return ClusterStatus(
        cluster=config.cluster.name,
        epoch=0 if lease is None else lease.epoch,
        leader=leader,
        log_first=log.first,
        log_last=log.last,
        log_bytes=log.size,
        log_limit_bytes=log.most,
        sync=stream.sync,
        nodes=[
            NodeStatus(
                member.node,
                _state(member.leads and member.node == leader, age_s := max(0.0, (now_us() - member.seen_us) / 1e6)),
                member.version,
                member.sequence,
                max(0, log.last - member.sequence),
                round(age_s, 1),
            )
            for member in members
        ],
        fronts=[
            FrontStatus(
                front.node,
                "ended" if front.is_free else _served(front.seen_us),
                front.version,
                front.clients,
                front.frames,
                round(max(0.0, (now_us() - front.seen_us) / 1e6), 1),
            )
            for front in fronts
        ],
    )


def _state(leads: bool, age_s: float) -> str:
    if age_s > _OLD_S:
        return "away"
    return "leads" if leads else "follows"


def _served(seen_us: int) -> str:
    return "away" if (now_us() - seen_us) / 1e6 > _OLD_S else "serves"


async def _forget(config: Config, node: str) -> bool:
    """Deletes the record of a node, or else of a front; whether it is a front."""
    from terrazzo.replication.front_lease import FRONT_PREFIX
    from terrazzo.replication.members import PREFIX

    found = await _read(config)
    is_front = node not in {each.node for each in found.nodes} and node in {each.node for each in found.fronts}
    states = {each.node: each.state for each in (found.fronts if is_front else found.nodes)}
    if node not in states:
        raise ConfigError(f"node: no node {node!r}; there are {', '.join(states) or 'none'}")
    if states[node] not in ("away", "ended"):
        raise ConfigError(f"node: {node!r} is there and {states[node]}: end it first")
    stream = await _open(config)
    try:
        await stream.records.delete((FRONT_PREFIX if is_front else PREFIX) + node)
    finally:
        await stream.close()
    return is_front


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


async def _open(config: Config) -> Stream:
    from terrazzo.ports.stream import LogUnavailable, LogUnusable
    from terrazzo.runtime.serve import open_stream

    try:
        return await open_stream(config)
    except (LogUnavailable, LogUnusable) as error:
        raise ConfigError(str(error)) from None


def _print(found: ClusterStatus) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("node", "", "version", "frame", "behind", "seen")
    for node in found.nodes:
        seen = f"{node.seen_s:.0f} s ago"
        table.add_row(*map(cell, (node.node, node.state, node.version, f"{node.sequence:,}", f"{node.lag:,}", seen)))
    console = Console()
    console.print(cell(f"cluster {found.cluster}, epoch {found.epoch}, leader {found.leader or 'nobody'}"))
    used = found.log_bytes / 2**20
    console.print(cell(f"log: frames {found.log_first:,} to {found.log_last:,}, {used:,.1f} MiB, {found.sync}"))
    console.print(table)
    if found.fronts:
        _print_fronts(found, console)


def _print_fronts(found: ClusterStatus, console: Console) -> None:
    from rich.table import Table

    table = Table("front", "", "version", "terminals", "frames", "seen")
    for front in found.fronts:
        seen = f"{front.seen_s:.0f} s ago"
        table.add_row(
            *map(cell, (front.node, front.state, front.version, f"{front.clients:,}", f"{front.frames:,}", seen))
        )
    console.print(table)
