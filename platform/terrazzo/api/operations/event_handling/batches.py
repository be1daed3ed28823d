"""Many events at once: acknowledged, cleared, commented, shelved; all of them, or none where one can't be found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import Moment
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.events import MOST_COMMENT
from terrazzo.database.field import check_storable
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.event_records import EventRecord, event_record
from terrazzo.errors import BadParameter
from terrazzo.events.events import ACKNOWLEDGED, CLEARED
from terrazzo.reasons import say, told_by
from terrazzo.times import DAY_US, now_us

MOST_EVENTS = 500
MOST_SHELVED_DAYS = 366

_Id = Annotated[int, Meta(ge=0, le=2**63 - 1)]
_Ids = Annotated[list[_Id], Meta(min_length=1, max_length=MOST_EVENTS, description="ids of events")]
_Said = Annotated[str, Meta(max_length=MOST_COMMENT)]


class HandleEvents(msgspec.Struct, kw_only=True):
    """Events, and why."""

    ids: _Ids
    comment: _Said = ""


class CommentEvents(msgspec.Struct, kw_only=True):
    """Events, and what to say about each."""

    ids: _Ids
    comment: Annotated[str, Meta(min_length=1, max_length=MOST_COMMENT)]


class ShelveEvents(msgspec.Struct, kw_only=True):
    """Events, until when nobody is to be reminded of them (none: they are taken off the shelf), and why."""

    ids: _Ids
    until: Moment | None = None
    comment: _Said = ""


async def handle_acknowledge_events(services: Services, actor: Actor, request: HandleEvents) -> list[EventRecord]:
    """Notes that somebody takes care of events."""
    comment = _storable(request.comment)
    return _present(services, await services.events.move_all(actor, request.ids, ACKNOWLEDGED, comment=comment))


async def handle_clear_events(services: Services, actor: Actor, request: HandleEvents) -> list[EventRecord]:
    """Notes that events are dealt with."""
    comment = _storable(request.comment)
    return _present(services, await services.events.move_all(actor, request.ids, CLEARED, comment=comment))


async def handle_comment_events(services: Services, actor: Actor, request: CommentEvents) -> list[EventRecord]:
    """Adds a comment to each of some events."""
    return _present(services, await services.events.comment_all(actor, request.ids, _storable(request.comment)))


async def handle_shelve_events(services: Services, actor: Actor, request: ShelveEvents) -> list[EventRecord]:
    """Shelves events until a time.

    Raises:
        BadParameter: the time is not ahead, or further than a year.
    """
    until_us, now = None if request.until is None else request.until.time_us, now_us()
    if until_us is not None and not now < until_us <= now + MOST_SHELVED_DAYS * DAY_US:
        raise BadParameter("until", say("expected_time_ahead", days=MOST_SHELVED_DAYS))
    comment = _storable(request.comment)
    return _present(services, await services.events.shelve_all(actor, request.ids, until_us, comment=comment))


def _storable(comment: str) -> str:
    try:
        check_storable(comment)
    except ValueError as error:
        raise BadParameter("comment", told_by(error)) from None
    return comment


def _present(services: Services, rows: Sequence[Row]) -> list[EventRecord]:
    return [event_record(row, services.zone) for row in rows]


OPERATIONS = (
    Operation(
        name="acknowledge_events",
        summary="Says that somebody takes care of events; those that are acknowledged or cleared stay as they are",
        request=HandleEvents,
        result=list[EventRecord],
        permission=Role.OPERATOR,
        handler=handle_acknowledge_events,
    ),
    Operation(
        name="clear_events",
        summary="Says that events are dealt with; those that are cleared stay as they are",
        request=HandleEvents,
        result=list[EventRecord],
        permission=Role.OPERATOR,
        handler=handle_clear_events,
    ),
    Operation(
        name="comment_events",
        summary="Adds a comment to each of some events",
        request=CommentEvents,
        result=list[EventRecord],
        permission=Role.OPERATOR,
        handler=handle_comment_events,
    ),
    Operation(
        name="shelve_events",
        summary="Shelves events: nobody is reminded of them before a time; those that are cleared stay as they are",
        request=ShelveEvents,
        result=list[EventRecord],
        permission=Role.OPERATOR,
        handler=handle_shelve_events,
    ),
)
