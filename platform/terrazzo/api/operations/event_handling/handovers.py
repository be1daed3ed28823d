"""Handovers of shifts: what is open, what was done, and what whoever leaves has to say to whoever comes."""

from __future__ import annotations

from heapq import nlargest
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.commands import CommandRecord, command_record
from terrazzo.api.operations.events import ById, record_id
from terrazzo.database.field import check_storable
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.event_records import EventRecord, LabelRecord, event_record, label_record
from terrazzo.errors import BadParameter
from terrazzo.reasons import told_by
from terrazzo.times import DAY_US, format_spaced, now_us

MOST_ENTRIES = 50  # of each kind
HOUR_US = DAY_US // 24
MOST_NOTES = 10_000  # characters
_HANDLED = ("acknowledged_at", "cleared_at")


class GetShift(msgspec.Struct, kw_only=True):
    """How long the shift has lasted."""

    hours: Annotated[int, Meta(ge=1, le=168, description="how long it has lasted")] = 8


class WriteHandover(GetShift):
    """What to say to whoever comes; what is open and was done stands beside it by itself."""

    notes: Annotated[str, Meta(max_length=MOST_NOTES)] = ""


class Shift(msgspec.Struct, kw_only=True):
    """What is open now, and what was done ``since``: the newest 50 of each, and how many there are.

    ``handled``: events that were acknowledged or cleared, whenever they were raised, what was done last first;
    ``closed``: labels that closed, alike.
    ``commands``: those that were given.
    """

    since: str
    until: str
    open_events: int
    events: list[EventRecord]
    open_labels: int
    labels: list[LabelRecord]
    handled_events: int
    handled: list[EventRecord]
    closed_labels: int
    closed: list[LabelRecord]
    commands: list[CommandRecord]


class HandoverHead(msgspec.Struct):
    """A handover as lists have it."""

    id: int
    user_id: int
    username: str
    since: str
    created: str
    notes: str


class Handover(HandoverHead):
    """With ``shift``: what was open and done then."""

    shift: Shift


async def handle_get_shift(services: Services, actor: Actor, request: GetShift) -> Shift:
    """What is open now and was done within the hours."""
    return await _shift(services, actor, now_us() - request.hours * HOUR_US)


async def _shift(services: Services, actor: Actor, since_us: int) -> Shift:
    now = now_us()
    opened = Conditions(all_of=[("state", "!=", "cleared")])
    found = await services.events.page(actor, page_size=MOST_ENTRIES, conditions=opened)
    done_total, done = await _handled(services, actor, since_us)
    still_open = Conditions(all_of=[("retained", "=", "1")])
    closed = Conditions(all_of=[("close_at", ">=", since_us)])
    labels = await _labels(services, actor, still_open, None, now)
    gone = await _labels(services, actor, closed, ("close_at", True), now)
    given = await services.commands.page(actor, page_size=MOST_ENTRIES)
    return Shift(
        since=format_spaced(since_us, services.zone),
        until=format_spaced(now, services.zone),
        open_events=found.total,
        events=[event_record(row, services.zone) for row in found.rows],
        open_labels=labels[0],
        labels=labels[1],
        handled_events=done_total,
        handled=[event_record(row, services.zone) for row in done],
        closed_labels=gone[0],
        closed=gone[1],
        commands=[command_record(row, actor, services.zone) for row in given.rows if row["queued_us"] >= since_us],
    )


async def handle_write_handover(services: Services, actor: Actor, request: WriteHandover) -> Handover:
    """Keeps what is open and was done, with notes."""
    try:
        check_storable(request.notes)
    except ValueError as error:
        raise BadParameter("notes", told_by(error)) from None
    since_us = now_us() - request.hours * HOUR_US
    shift = await _shift(services, actor, since_us)
    row = await services.handovers.write(
        actor, since_us=since_us, notes=request.notes, found=msgspec.json.encode(shift).decode()
    )
    return _whole(services, row)


async def handle_get_handover_list(services: Services, actor: Actor, request: ListRequest) -> Paged[HandoverHead]:
    """A page of handovers, newest first."""
    rows = await services.handovers.page(
        actor,
        page_index=request.page_index,
        page_size=request.page_size,
        conditions=conditions_of(request),
        order_by=request.order_by.by,
    )
    return paged(request, [HandoverHead(**_head(services, row)) for row in rows.rows], rows.total)


async def handle_get_handover_item(services: Services, actor: Actor, request: ById) -> Handover:
    """One handover with what was open and done then."""
    return _whole(services, await services.handovers.item(actor, record_id(request.id)))


async def _handled(services: Services, actor: Actor, since_us: int) -> tuple[int, list[Row]]:
    """How many events were acknowledged or cleared, and the rows of those with whom that was done last."""
    rows: dict[int, Row] = {}
    total = 0
    for moment in _HANDLED:  # what was done last is among the last of one of them; each has an index of its own
        done = Conditions(all_of=[(moment, ">=", since_us)])
        found = await services.events.page(actor, page_size=MOST_ENTRIES, conditions=done, order_by=(moment, True))
        rows |= {row["id"]: row for row in found.rows}
        total += found.total
    twice = Conditions(all_of=[(moment, ">=", since_us) for moment in _HANDLED])
    total -= await services.events.count(actor, twice)
    return total, nlargest(MOST_ENTRIES, rows.values(), key=lambda row: max(row[moment] or 0 for moment in _HANDLED))


async def _labels(
    services: Services, actor: Actor, conditions: Conditions, order_by: tuple[str, bool] | None, now: int
) -> tuple[int, list[LabelRecord]]:
    found = await services.labels.page(actor, page_size=MOST_ENTRIES, conditions=conditions, order_by=order_by)
    return found.total, [label_record(row, services.zone, now_us=now) for row in found.rows]


def _head(services: Services, row: Row) -> dict[str, Any]:
    times = {name: format_spaced(row[name], services.zone) for name in ("since", "created")}
    return {name: row[name] for name in ("id", "user_id", "username", "notes")} | times


def _whole(services: Services, row: Row) -> Handover:
    return Handover(**_head(services, row), shift=msgspec.json.decode(row["found"], type=Shift))


OPERATIONS = (
    Operation(
        name="get_shift",
        summary="What is open now, and what was done within some hours: for the handover of a shift",
        request=GetShift,
        result=Shift,
        permission=Role.VIEWER,
        handler=handle_get_shift,
    ),
    Operation(
        name="write_handover",
        summary="Keeps a handover: what is open and was done, with notes",
        request=WriteHandover,
        result=Handover,
        permission=Role.OPERATOR,
        handler=handle_write_handover,
    ),
    Operation(
        name="get_handover_list",
        summary="A page of handovers, newest first",
        request=ListRequest,
        result=Paged[HandoverHead],
        permission=Role.VIEWER,
        handler=handle_get_handover_list,
    ),
    Operation(
        name="get_handover_item",
        summary="One handover, with what was open and done then",
        request=ById,
        result=Handover,
        permission=Role.VIEWER,
        handler=handle_get_handover_item,
    ),
)
