"""Replay: an object's mosaic, events and labels of a past range made again, after its mapping was changed."""

from __future__ import annotations

import msgspec

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.fields import Flag, Key, Moment
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.events import ById, record_id
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.record import record_of
from terrazzo.times import format_spaced


class StartReplay(msgspec.Struct, kw_only=True):
    """An object and a range, both ends inclusive; without ``end_time`` up to now.

    ``dry_run`` only counts what would be.
    """

    object_id: Key
    start_time: Moment
    end_time: Moment | None = None
    dry_run: Flag = 0


class ReplayList(ListRequest):
    """Of one object, or all. The newest come first."""

    object_id: Key | None = None


class StartedReplay(msgspec.Struct):
    """The number to ask for it by."""

    id: int


class ReplayRecord(msgspec.Struct):
    """``state`` is waiting, running, done, failed or cancelled; ``info`` says why it failed.

    ``records_total`` and ``records_done`` count reports, those before the range included: they are read to know how
    things stood. ``records_skipped`` went into no object. ``position`` is the time of the last one. The counts before
    and after are of the range, labels by when they opened; null: not known yet. ``end_time`` null: up to now.
    """

    id: int
    object_id: str
    start_time: str
    end_time: str | None
    dry_run: int
    state: str
    info: str
    records_total: int
    records_done: int
    records_skipped: int
    position: str | None
    mosaic_before: int | None
    mosaic_after: int | None
    events_before: int | None
    events_after: int | None
    labels_before: int | None
    labels_after: int | None
    created_by: int
    username: str
    created: str
    ended: str | None


async def handle_replay(services: Services, actor: Actor, request: StartReplay) -> StartedReplay:
    """Queues a replay, which runs in the background; the answer comes at once."""
    object_id = await find_object(services, actor, request.object_id)
    whose = await services.entities.objects.item(actor, object_id)
    end_us = None if request.end_time is None else request.end_time.time_us
    dry_run = bool(request.dry_run)
    found = await services.replays.submit(actor, whose, request.start_time.time_us, end_us, dry_run=dry_run)
    return StartedReplay(found)


async def handle_cancel_replay(services: Services, actor: Actor, request: ById) -> ReplayRecord:
    """Ends a replay that waits or runs; one that has ended stays as it is."""
    return _present(services, await services.replays.cancel(actor, record_id(request.id)))


async def handle_get_replay_item(services: Services, actor: Actor, request: ById) -> ReplayRecord:
    """One replay of the actor's company, and how far it is."""
    return _present(services, await services.replays.item(actor, record_id(request.id)))


async def handle_get_replay_list(services: Services, actor: Actor, request: ReplayList) -> Paged[ReplayRecord]:
    """A page of replays, newest first unless ordered otherwise."""
    conditions = conditions_of(request)
    if request.object_id is not None:
        object_id = await find_object(services, actor, request.object_id)
        conditions = conditions._replace(all_of=[*conditions.all_of, ("object_id", "=", object_id)])
    rows = await services.replays.page(
        actor,
        page_index=request.page_index,
        page_size=request.page_size,
        conditions=conditions,
        order_by=request.order_by.by,
    )
    return paged(request, [_present(services, row) for row in rows.rows], rows.total)


def _present(services: Services, row: Row) -> ReplayRecord:
    columns = {"start_time": "start_us", "end_time": "end_us", "position": "position_us", "ended": "ended_us"}
    columns["created"] = "created"
    times = {
        name: None if row[column] is None else format_spaced(row[column], services.zone)
        for name, column in columns.items()
    }
    return record_of(ReplayRecord, row, times | {"object_id": str(row["object_id"])})


OPERATIONS = (
    Operation(
        name="replay",
        summary="Makes an object's mosaic, events and labels of a past range again from what its terminals reported",
        request=StartReplay,
        result=StartedReplay,
        permission=Role.ADMIN,
        handler=handle_replay,
    ),
    Operation(
        name="cancel_replay",
        summary="Ends a replay that waits or runs; what it has replaced of the mosaic stays replaced",
        request=ById,
        result=ReplayRecord,
        permission=Role.ADMIN,
        handler=handle_cancel_replay,
    ),
    Operation(
        name="get_replay_item",
        summary="One replay: how far it is, or how it ended",
        request=ById,
        result=ReplayRecord,
        permission=Role.ADMIN,
        handler=handle_get_replay_item,
    ),
    Operation(
        name="get_replay_list",
        summary="A page of replays, newest first",
        request=ReplayList,
        result=Paged[ReplayRecord],
        permission=Role.ADMIN,
        handler=handle_get_replay_list,
    ),
)
