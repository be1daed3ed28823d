"""Everything that happened to an object, the latest first."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter
from terrazzo.events.object_log import KINDS, LogEntry, LogPlace
from terrazzo.reasons import say
from terrazzo.times import format_spaced

LogKind = Literal["event", "label_opened", "label_closed", "command", "change"]


class GetObjectLog(msgspec.Struct, kw_only=True):
    """Which object; ``before``: the ``next`` of the page before. ``kinds``: those alone; none given: all."""

    object_id: Key
    before: Annotated[str, Meta(max_length=64, description="the next of the page before; empty: the latest")] = ""
    page_size: Annotated[int, Meta(ge=1, le=200)] = 50
    kinds: Annotated[list[LogKind], Meta(max_length=len(KINDS), description="of entries; empty: all")] = []


class ObjectLogEntry(msgspec.Struct):
    """Something that happened.

    ``kind``: event, label_opened, label_closed, command or change (of the object's record; administrators see them,
    with the names of the changed fields as ``value`` and what was done as ``code``). ``id`` is the record's.
    """

    kind: str
    id: int
    time: str
    code: str
    label_en: str
    label_cn: str
    value: str
    state: str
    severity: str
    terminal_id: str
    username: str


class ObjectLogPage(msgspec.Struct):
    """``next``: for the page after this one; empty: there is none."""

    data: list[ObjectLogEntry]
    next: str


async def handle_get_object_log(services: Services, actor: Actor, request: GetObjectLog) -> ObjectLogPage:
    """A page of what happened to an object.

    Raises:
        BadParameter: ``before`` is no ``next`` of a page.
        NotFound: no such object.
    """
    object_id = await find_object(services, actor, request.object_id)
    company_id = services.registry.object_company(object_id) or actor.company_id
    kinds = frozenset[str](request.kinds or KINDS)
    found = await services.object_log.page(
        object_id,
        company_id,
        before=parse_place(request.before) if request.before else None,
        size=request.page_size,
        kinds=kinds if actor.may(Role.ADMIN) else kinds - {"change"},
    )
    following = ".".join(map(str, found[-1].place)) if len(found) == request.page_size else ""
    return ObjectLogPage([_present(services, each) for each in found], following)


def parse_place(text: str) -> LogPlace:
    """Where a page ended: three numbers with dots between them. Raises ``BadParameter`` for anything else."""
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in parts):
        raise BadParameter("before", say("expected_next_of_page"))
    return LogPlace(*map(int, parts))


def _present(services: Services, entry: LogEntry) -> ObjectLogEntry:
    place, *texts = entry
    time = format_spaced(place.time_us, services.zone)
    return ObjectLogEntry(KINDS[place.kind], place.record_id, time, *texts)


OPERATIONS = (
    Operation(
        name="get_object_log",
        summary="Everything that happened to an object: events, labels, commands, changes; the latest first",
        request=GetObjectLog,
        result=ObjectLogPage,
        permission=Role.VIEWER,
        handler=handle_get_object_log,
    ),
)
