"""What the log says of nodes and fronts, for the commands of ``terrazzo cluster``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from terrazzo.cli.options import ConfigOption, DataOption, read_config
from terrazzo.config.sections import Config, ConfigError
from terrazzo.times import now_us

if TYPE_CHECKING:
    from terrazzo.ports.stream import LogServer, LogState
    from terrazzo.replication.front_lease import FrontRecord
    from terrazzo.replication.members import Member
    from terrazzo.runtime.stream import Stream

_OLD_S = 10.0  # since a node has written its record: it is not there


class NodeStatus(msgspec.Struct, frozen=True):
    """A node as its record says. ``lag``: frames that it doesn't have; ``seen_s``: the age of the record.

    ``reads``: it answers reads, though it doesn't lead; ``age_s``: all that had been acknowledged so long before the
    record is in its store, null: not known; ``url``: where its HTTP port is reached.
    """

    node: str
    state: str  # leads | follows | ended | away
    version: str
    sequence: int
    lag: int
    seen_s: float
    reads: bool = False
    age_s: float | None = None
    url: str = ""


class FrontStatus(msgspec.Struct, frozen=True):
    """A front as its record says. ``frames``: of its reports, that the log has acknowledged since it started."""

    node: str
    state: str  # serves | drains | ended | away
    version: str
    clients: int
    frames: int
    seen_s: float


class ServerStatus(msgspec.Struct, frozen=True):
    """A server of the log. ``behind``: it isn't heard, or has less than the one that leads; ``lag``: by how much."""

    name: str
    state: str  # leads | follows | behind | away
    lag: int


class ReportsStatus(msgspec.Struct, frozen=True):
    """The log of what fronts have taken. ``stored``: the frame up to which the leader has stored all, null: not known.

    ``behind``: frames after that one. ``leader``: the server of the log that leads it.
    """

    first: int
    last: int
    bytes: int
    limit_bytes: int
    leader: str
    stored: int | None = None
    behind: int | None = None


class DatabaseStatus(msgspec.Struct, frozen=True):
    """How far the database is known to be: a number that rises with what is committed, and when it was committed."""

    reached: int
    at_us: int


class ClusterStatus(msgspec.Struct, frozen=True):
    """What ``terrazzo cluster status`` shows; ``reports`` is null where there never was a front, ``database`` where
    nothing was remembered."""

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
    servers: list[ServerStatus] = []
    reports: ReportsStatus | None = None
    database: DatabaseStatus | None = None


def clustered(config: ConfigOption, data: DataOption) -> Config:
    """The configuration of a node.

    Raises:
        ConfigError: this is one process.
    """
    loaded = read_config(config, data)
    if loaded.stream.kind == "none":
        raise ConfigError("stream.kind: is none: this platform is one process, and no cluster")
    return loaded


async def read_status(config: Config) -> ClusterStatus:
    """Asks the log; raises ``ConfigError`` where it doesn't answer."""
    from terrazzo.replication.database_record import KEY as DATABASE
    from terrazzo.replication.database_record import decode_database_record
    from terrazzo.replication.front_lease import fronts_of
    from terrazzo.replication.lease import KEY, decode_lease
    from terrazzo.replication.members import members_of

    stream = await open_log(config)
    try:
        log, found = await stream.log.state(), await stream.records.get(KEY)
        records = await stream.records.all()
        reports = await stream.reports.state() if await stream.reports.is_there() else None
        members, fronts = members_of(records), fronts_of(records)
    finally:
        await stream.close()
    lease = None if found is None else decode_lease(found)
    leader = "" if lease is None or lease.is_free else lease.node
    known = decode_database_record(records.get(DATABASE))
    stored = max((each.fronts_sequence for each in members if each.node == leader), default=-1)
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
                _state(member, leader, age_s := max(0.0, (now_us() - member.seen_us) / 1e6)),
                member.version,
                member.sequence,
                max(0, log.last - member.sequence),
                round(age_s, 1),
                member.reads and not member.has_ended and age_s <= _OLD_S,
                None if member.age_s < 0 else round(member.age_s, 1),
                member.url,
            )
            for member in members
        ],
        fronts=[
            FrontStatus(
                front.node,
                "ended" if front.is_free else _served(front),
                front.version,
                front.clients,
                front.frames,
                round(max(0.0, (now_us() - front.seen_us) / 1e6), 1),
            )
            for front in fronts
        ],
        servers=[ServerStatus(each.name, _state_of(each), each.lag) for each in log.servers],
        reports=None if reports is None else _of_reports(reports, stored),
        database=DatabaseStatus(known.reached, known.at_us) if known.reached else None,
    )


def _of_reports(log: LogState, stored: int) -> ReportsStatus:
    leader = next((each.name for each in log.servers if each.leads), "")
    found = ReportsStatus(log.first, log.last, log.size, log.most, leader)
    return found if stored < 0 else replace(found, stored=stored, behind=max(0, log.last - stored))


def _state_of(server: LogServer) -> str:
    if server.leads:
        return "leads"
    if server.is_away:
        return "away"
    return "follows" if server.is_current else "behind"


def _state(member: Member, leader: str, age_s: float) -> str:
    if member.has_ended:
        return "ended"
    if age_s > _OLD_S:
        return "away"
    return "leads" if member.leads and member.node == leader else "follows"


def _served(front: FrontRecord) -> str:
    if (now_us() - front.seen_us) / 1e6 > _OLD_S:
        return "away"
    return "drains" if front.drains else "serves"


async def open_log(config: Config) -> Stream:
    """A connection to the log; raises ``ConfigError`` where it doesn't answer."""
    from terrazzo.ports.stream import LogUnavailable, LogUnusable
    from terrazzo.runtime.serve import open_stream

    try:
        return await open_stream(config)
    except (LogUnavailable, LogUnusable) as error:
        raise ConfigError(str(error)) from None
