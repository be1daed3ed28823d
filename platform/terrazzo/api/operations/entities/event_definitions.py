"""What is said of a mapping's events, by code: name, severity, and what clears them."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from terrazzo.api.kernel.fields import Flag, Key, Names
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.database.field import check_storable
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.events.definition import DEFAULT_SEVERITY, MOST_CLEAR_AFTER_S, SEVERITIES
from terrazzo.errors import BadParameter
from terrazzo.events.definitions import DefinedEvent
from terrazzo.reasons import say, told_by

_Seconds = Annotated[int, Meta(ge=0, le=MOST_CLEAR_AFTER_S, description="seconds; 0: never")]
_WORDS = f"{', '.join(SEVERITIES)}; empty: {DEFAULT_SEVERITY}"


class EventsOfMapping(msgspec.Struct, kw_only=True):
    """Which mapping."""

    mapping_id: Key


class DefineEvent(msgspec.Struct, kw_only=True):
    """An event of a mapping, and what to say of it; what is not given stays as it is.

    ``clears_itself``: 1: when its condition is false again. ``clears``: codes whose open events are cleared when this
    one is raised. ``clear_after_s``: seconds after which it is cleared in any case; 0: never.
    """

    mapping_id: Key
    code: Annotated[str, Meta(min_length=1, max_length=64, description="the code of an EVNT row")]
    name: Annotated[str, Meta(max_length=64)] | UnsetType = UNSET
    severity: Annotated[str, Meta(max_length=16, description=_WORDS)] | UnsetType = UNSET
    clears_itself: Flag | UnsetType = UNSET
    clears: Names | UnsetType = UNSET
    clear_after_s: _Seconds | UnsetType = UNSET


class EventDefinitionRecord(msgspec.Struct):
    """An event of a mapping. ``severity`` is what holds, also where nothing was said."""

    code: str
    label_en: str
    label_cn: str
    name: str
    severity: str
    clears_itself: int
    clears: list[str]
    clear_after_s: int


async def handle_get_event_definition_list(
    services: Services, actor: Actor, request: EventsOfMapping
) -> list[EventDefinitionRecord]:
    """All events of a mapping, in the order of its rows."""
    return [_present(each) for each in await services.event_definitions.of(actor, request.mapping_id)]


async def handle_update_event_definition(
    services: Services, actor: Actor, request: DefineEvent
) -> EventDefinitionRecord:
    """Says something of one event of a mapping.

    Raises:
        BadParameter: a value that can't be.
        NotFound: no such mapping, or it has no such event.
    """
    given = {
        "name": request.name,
        "severity": request.severity,
        "clears_itself": UNSET if request.clears_itself is UNSET else bool(request.clears_itself),
        "clears": UNSET if request.clears is UNSET else list(request.clears.names),
        "clear_after_s": request.clear_after_s,
    }
    values = {name: value for name, value in given.items() if value is not UNSET}
    if not values:
        raise BadParameter("code", say("no_event_change"))
    if request.severity and request.severity not in SEVERITIES:
        raise BadParameter(
            "severity", say("expected_one_of_got", expected=", ".join(SEVERITIES), got=f"{request.severity!r:.64}")
        )
    try:
        check_storable(request.name or "")
    except ValueError as error:
        raise BadParameter("name", told_by(error)) from None
    return _present(await services.event_definitions.define(actor, request.mapping_id, request.code, values))


def _present(event: DefinedEvent) -> EventDefinitionRecord:
    said = event.said
    return EventDefinitionRecord(
        code=event.code,
        label_en=event.label_en,
        label_cn=event.label_cn,
        name=said.name,
        severity=said.severity or DEFAULT_SEVERITY,
        clears_itself=int(said.clears_itself),
        clears=list(said.clears),
        clear_after_s=said.clear_after_s,
    )


OPERATIONS = (
    Operation(
        name="get_event_definition_list",
        summary="The events of a mapping: how severe they are, and what clears them",
        request=EventsOfMapping,
        result=list[EventDefinitionRecord],
        permission=Role.VIEWER,
        handler=handle_get_event_definition_list,
    ),
    Operation(
        name="update_event_definition",
        summary="Says how severe an event of a mapping is, and what clears it, from now on",
        request=DefineEvent,
        result=EventDefinitionRecord,
        permission=Role.ADMIN,
        handler=handle_update_event_definition,
    ),
)
