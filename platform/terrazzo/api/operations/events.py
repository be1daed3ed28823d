"""Events: what the mapping raised, and what people do about it."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.conditions import Filter, ListRequest, conditions_of
from terrazzo.api.kernel.day_counts import ByDay, DayFilter, Quantity, by_day, days_asked
from terrazzo.api.kernel.fields import Key, Moment
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.database.field import check_storable
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.event_records import EventRecord, event_record
from terrazzo.errors import BadParameter, NotFound
from terrazzo.events.events import ACKNOWLEDGED, CLEARED
from terrazzo.metadata.lookup import as_id
from terrazzo.reasons import say, told_by

MOST_COMMENT = 1_000  # characters
_Said = Annotated[str, Meta(max_length=MOST_COMMENT)]


class HappeningList(ListRequest):
    """Of one object, of a time, or all; both ends of the time are inclusive. The newest come first."""

    object_id: Key | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None


class ById(msgspec.Struct, kw_only=True):
    """A record's number, as a number or as text."""

    id: Key


class HandleEvent(ById):
    """An event, and why."""

    comment: _Said = ""


class CommentEvent(ById):
    """An event, and what to say about it."""

    comment: Annotated[str, Meta(min_length=1, max_length=MOST_COMMENT)]


async def handle_get_event_list(services: Services, actor: Actor, request: HappeningList) -> Paged[EventRecord]:
    """A page of events, newest first unless ordered otherwise."""
    rows = await services.events.page(
        actor,
        page_index=request.page_index,
        page_size=request.page_size,
        conditions=await conditions_in_time(services, actor, request, moment="created"),
        order_by=request.order_by.by,
    )
    return paged(request, [event_record(row, services.zone) for row in rows.rows], rows.total)


async def handle_get_event_item(services: Services, actor: Actor, request: ById) -> EventRecord:
    """One event of the actor's company."""
    return _present(services, await services.events.item(actor, record_id(request.id)))


async def handle_acknowledge_event(services: Services, actor: Actor, request: HandleEvent) -> EventRecord:
    """Notes that somebody takes care of an event."""
    return await _move(services, actor, request, ACKNOWLEDGED)


async def handle_clear_event(services: Services, actor: Actor, request: HandleEvent) -> EventRecord:
    """Notes that an event is dealt with."""
    return await _move(services, actor, request, CLEARED)


async def handle_comment_event(services: Services, actor: Actor, request: CommentEvent) -> EventRecord:
    """Adds a comment to an event, which stays in its state."""
    comment = _storable(request.comment)
    return _present(services, await services.events.comment(actor, record_id(request.id), comment))


async def handle_get_event_quantity(services: Services, actor: Actor, request: Filter) -> Quantity:
    """How many events meet the conditions."""
    return Quantity(await services.events.count(actor, conditions_of(request)))


async def handle_get_event_quantity_by_day(services: Services, actor: Actor, request: DayFilter) -> ByDay[int]:
    """How many events that meet the conditions were raised on each of the last days."""
    days = days_asked(services, request)
    return by_day(days, await services.events.count_by_day(actor, days, conditions_of(request)))


async def conditions_in_time(services: Services, actor: Actor, request: HappeningList, *, moment: str) -> Conditions:
    """The conditions of a list request, its object and its time range.

    Args:
        moment: the column of times, in UTC microseconds, that the range is about.

    Raises:
        BadParameter: the range is reversed.
        NotFound: the object isn't one of the actor's company.
    """
    start, end = request.start_time, request.end_time
    if start and end and start.time_us > end.time_us:
        raise BadParameter("start_time", say("is_after_end_time"))
    object_id = None if request.object_id is None else await find_object(services, actor, request.object_id)
    given = [
        ("object_id", "=", object_id),
        (moment, ">=", start and start.time_us),
        (moment, "<=", end and end.time_us),
    ]
    conditions = conditions_of(request)
    return conditions._replace(all_of=[*conditions.all_of, *(each for each in given if each[2] is not None)])


def record_id(key: str | int) -> int:
    """The number that a key stands for.

    Raises:
        NotFound: it is none.
    """
    number = as_id(key)
    if number is None:
        raise NotFound("id", key)
    return number


async def _move(services: Services, actor: Actor, request: HandleEvent, state: str) -> EventRecord:
    comment = _storable(request.comment)
    return _present(services, await services.events.move(actor, record_id(request.id), state, comment=comment))


def _storable(comment: str) -> str:
    try:
        check_storable(comment)
    except ValueError as error:
        raise BadParameter("comment", told_by(error)) from None
    return comment


def _present(services: Services, row: Row) -> EventRecord:
    return event_record(row, services.zone)


GET_EVENT_LIST = Operation(
    name="get_event_list",
    summary="A page of events, newest first",
    request=HappeningList,
    result=Paged[EventRecord],
    permission=Role.VIEWER,
    handler=handle_get_event_list,
)
GET_EVENT_ITEM = Operation(
    name="get_event_item",
    summary="One event",
    request=ById,
    result=EventRecord,
    permission=Role.VIEWER,
    handler=handle_get_event_item,
)
GET_EVENT_QUANTITY = Operation(
    name="get_event_quantity",
    summary="How many events there are",
    request=Filter,
    result=Quantity,
    permission=Role.VIEWER,
    handler=handle_get_event_quantity,
)
GET_EVENT_QUANTITY_BY_DAY = Operation(
    name="get_event_quantity_by_day",
    summary="How many events were raised each day",
    request=DayFilter,
    result=ByDay[int],
    permission=Role.VIEWER,
    handler=handle_get_event_quantity_by_day,
)

OPERATIONS = (
    GET_EVENT_LIST,
    GET_EVENT_ITEM,
    Operation(
        name="acknowledge_event",
        summary="Says that somebody takes care of an event; one that is acknowledged or cleared stays as it is",
        request=HandleEvent,
        result=EventRecord,
        permission=Role.OPERATOR,
        handler=handle_acknowledge_event,
    ),
    Operation(
        name="clear_event",
        summary="Says that an event is dealt with; one that is cleared stays as it is",
        request=HandleEvent,
        result=EventRecord,
        permission=Role.OPERATOR,
        handler=handle_clear_event,
    ),
    Operation(
        name="comment_event",
        summary="Adds a comment to an event",
        request=CommentEvent,
        result=EventRecord,
        permission=Role.OPERATOR,
        handler=handle_comment_event,
    ),
    GET_EVENT_QUANTITY,
    GET_EVENT_QUANTITY_BY_DAY,
)
