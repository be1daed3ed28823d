"""What needs a person, in one answer: counts, and the first entries of each."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.readiness import check_readiness
from terrazzo.api.kernel.services import Services
from terrazzo.attention.attention import Overview
from terrazzo.attention.open_records import MOST_COUNTED, NEAR, Waiting
from terrazzo.attention.terminal_census import MOST_ENTRIES, CompanyCensus, Stopped
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.disk.series_figures import SeriesFigures
from terrazzo.domain.event_records import EventRecord, LabelRecord, event_record, label_record
from terrazzo.domain.refusals.reasons import REASONS
from terrazzo.memory_shares import MIB
from terrazzo.reasons import Reason
from terrazzo.times import format_spaced


class GetAttention(msgspec.Struct, kw_only=True):
    """How many entries of each kind."""

    entries: Annotated[int, Meta(ge=0, le=MOST_ENTRIES, description="entries of each kind at most")] = 5


class StoppedTerminal(msgspec.Struct):
    """A terminal that stopped. ``state``: away (not connected, not heard of for 5 minutes), silent (connected, nothing
    reported for an hour) or refused (within a day, and not heard of since).

    ``since``: heard, reported or refused last. ``cause``: why its connection ended, or the reason of the refusal, whose
    ``text`` and ``advice`` stand beside it.
    """

    terminal_id: str
    name: str
    state: str
    since: str
    address: str
    cause: str
    text: str
    advice: str
    objects: list[str]


class TerminalFlood(msgspec.Struct):
    """Five terminals or more that stopped alike, at one address (``site``; in IPv6 its /64) for one cause."""

    state: str
    site: str
    cause: str
    count: int
    first_time: str
    last_time: str
    terminal_ids: list[str]


class TerminalAttention(msgspec.Struct):
    """The terminals of the company that may connect: how many there are, and how many stopped; the latest come first.

    What belongs to a flood is counted, and not among the entries. Those that are ``out_of_service`` are among the total
    alone, whatever they do.
    """

    total: int
    online: int
    away: int
    silent: int
    refused: int
    out_of_service: int
    entries: list[StoppedTerminal]
    floods: list[TerminalFlood]


class UnknownAttention(msgspec.Struct):
    """Client ids that tried to log in and are no terminal's, as ``get_unknown_terminal_list`` has them."""

    count: int
    terminal_ids: list[str]


class LabelAttention(msgspec.Struct):
    """Open labels, the oldest first. ``by_age``: hour (less than one), day, week, older; a count ends at 10,000."""

    count: int
    is_more: bool
    by_age: dict[str, int]
    entries: list[LabelRecord]


class EventAttention(msgspec.Struct):
    """Events that nobody has acknowledged or cleared, the most severe first; a count ends at 10,000 each."""

    count: int
    is_more: bool
    by_severity: dict[str, int]
    entries: list[EventRecord]


class WaitingCommand(msgspec.Struct):
    """A command that waits, or expired."""

    uid: str
    terminal_id: str
    object_id: str | None
    command: str
    value: str
    state: str
    reason: str
    queued: str
    expires: str


class CommandAttention(msgspec.Struct):
    """Commands that wait for their terminals, and that expired within a day; the latter come first."""

    waiting: int
    expired: int
    is_more: bool
    entries: list[WaitingCommand]


class QuotaAttention(msgspec.Struct):
    """A limit of which the company has used 80% or more.

    ``days_left``: of ``limits.company_series_mib``, until its terminals are not read any more; null where nothing
    grows, or it isn't known, and of other limits.
    """

    limit: str
    has: int
    most: int
    percent: float
    days_left: float | None


class CompanyDisk(msgspec.Struct):
    """What a company's time series take of the disk, and may (0: as much as there is).

    ``is_full``: its terminals are not read until it has less, or may have more. ``days_left``: until then; null where
    it has no limit, nothing grows, or it isn't known.
    """

    company_id: int
    series_bytes: int
    most_bytes: int
    is_full: bool
    days_left: float | None


class DiskAttention(msgspec.Struct):
    """The disk of the data folder. ``days_left``: null where it isn't known (within an hour of the start), or nothing
    grows. ``companies``: those that are full, then those whose time series take most, five at most."""

    free_bytes: int
    total_bytes: int
    days_left: float | None
    companies: list[CompanyDisk]


class FailingTask(msgspec.Struct):
    """A task of the platform that is down or failed a moment ago, and the class of its error; or a part that is not
    ready (``ingest``, ``store``, ``database``, ...: those of ``/readyz``), and why; ``told``: its code."""

    name: str
    error: str
    told: Reason | msgspec.UnsetType = msgspec.UNSET


class AttentionAnswer(msgspec.Struct):
    """What needs a person, at ``time``. ``disk`` and ``tasks`` are null but for super users, who see all companies."""

    time: str
    terminals: TerminalAttention
    unknown: UnknownAttention
    labels: LabelAttention
    events: EventAttention
    commands: CommandAttention
    quotas: list[QuotaAttention]
    disk: DiskAttention | None
    tasks: list[FailingTask] | None


async def handle_get_attention(services: Services, actor: Actor, request: GetAttention) -> AttentionAnswer:
    """What needs a person, of the actor's company; super users see that of all."""
    company_id = None if actor.is_super else actor.company_id
    found = await services.attention.overview(company_id, owner=actor.company_id)
    most, unknown = request.entries, services.unknown_terminals.found(actor)
    tasks = await _failing(services) if actor.is_super else None
    disk = None if found.disk is None else DiskAttention(*found.disk, [of_disk(each) for each in found.companies])
    return AttentionAnswer(
        time=format_spaced(found.time_us, services.zone),
        terminals=_terminals(services, found.terminals, most),
        unknown=UnknownAttention(len(unknown), [each.uid for each in unknown[:most]]),
        labels=_labels(services, found.labels, most, found.time_us),
        events=_events(services, found.events, most),
        commands=_commands(services, found.commands, most),
        quotas=_quotas(found),
        disk=disk,
        tasks=tasks,
    )


def _quotas(found: Overview) -> list[QuotaAttention]:
    quotas = [QuotaAttention(*each, _percent(each.has, each.limit), None) for each in found.quotas]
    series = found.series
    if series.most and series.bytes >= NEAR * series.most:
        has, most = series.bytes // MIB, series.most // MIB
        percent = _percent(series.bytes, series.most)
        quotas.append(QuotaAttention("limits.company_series_mib", has, most, percent, series.days_left))
    return quotas


def _percent(has: int, most: int) -> float:
    return round(100 * has / max(1, most), 1)


def of_disk(series: SeriesFigures) -> CompanyDisk:
    """What is told of a company's part of the disk."""
    return CompanyDisk(series.company_id, series.bytes, series.most, series.is_full, series.days_left)


async def _failing(services: Services) -> list[FailingTask]:
    found = await check_readiness(services.readiness, services.tasks)
    down = {name: part for name, part in found.parts.items() if not part.ready and name != "tasks"}
    parts = [FailingTask(name, part.reason, part.told) for name, part in down.items()]
    return parts + [FailingTask(*each) for each in found.degraded.items()]


def _terminals(services: Services, census: CompanyCensus, most: int) -> TerminalAttention:
    entries = [
        _stopped(services, each) for state in ("refused", "away", "silent") for each in census.first(state, most)
    ]
    return TerminalAttention(
        total=census.total,
        online=census.online,
        away=census.away,
        silent=census.silent,
        refused=census.refused,
        out_of_service=census.out_of_service,
        entries=entries,
        floods=[
            TerminalFlood(
                state=each.state,
                site=each.site,
                cause=each.cause,
                count=each.terminals,
                first_time=format_spaced(each.first_us, services.zone),
                last_time=format_spaced(each.last_us, services.zone),
                terminal_ids=list(each.uids),
            )
            for each in census.floods()
        ],
    )


def _stopped(services: Services, stopped: Stopped) -> StoppedTerminal:
    reason = REASONS.get(stopped.cause) if stopped.state == "refused" else None
    return StoppedTerminal(
        terminal_id=stopped.uid,
        name=stopped.name,
        state=stopped.state,
        since=format_spaced(stopped.since_us, services.zone),
        address=stopped.address,
        cause=stopped.cause,
        text="" if reason is None else reason.text,
        advice="" if reason is None else reason.advice,
        objects=[str(each) for each in sorted(services.registry.terminal_objects(stopped.uid))],
    )


def _labels(services: Services, found: Waiting, most: int, now: int) -> LabelAttention:
    return LabelAttention(
        count=sum(found.counts.values()),
        is_more=_is_more(found),
        by_age=dict(found.counts),
        entries=[label_record(row, services.zone, now_us=now) for row in found.rows[:most]],
    )


def _events(services: Services, found: Waiting, most: int) -> EventAttention:
    return EventAttention(
        count=sum(found.counts.values()),
        is_more=_is_more(found),
        by_severity=dict(found.counts),
        entries=[event_record(row, services.zone) for row in found.rows[:most]],
    )


def _commands(services: Services, found: Waiting, most: int) -> CommandAttention:
    entries = [
        WaitingCommand(
            uid=row["uid"],
            terminal_id=row["terminal_id"],
            object_id=None if row["object_id"] is None else str(row["object_id"]),
            command=row["command"],
            value=row["value"],
            state=row["state"],
            reason=row["reason"],
            queued=format_spaced(row["queued_us"], services.zone),
            expires=format_spaced(row["expires_us"], services.zone),
        )
        for row in found.rows[:most]
    ]
    return CommandAttention(found.counts["waiting"], found.counts["expired"], _is_more(found), entries)


def _is_more(found: Waiting) -> bool:
    return any(count >= MOST_COUNTED for count in found.counts.values())


OPERATIONS = (
    Operation(
        name="get_attention",
        summary="What needs a person: stopped terminals, open labels, events, commands, quotas, disk",
        request=GetAttention,
        result=AttentionAnswer,
        permission=Role.VIEWER,
        handler=handle_get_attention,
    ),
)
