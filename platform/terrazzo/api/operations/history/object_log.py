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
from terrazzo.events.object_log import KINDS, LogEntry, LoggedObject, LogPlace
from terrazzo.reasons import say
from terrazzo.times import format_spaced

LogKind = Literal[
    "event",
    "label_opened",
    "label_closed",
    "command",
    "change",
    "service",
    "offline",
    "file",
    "out_of_service",
    "presence",
]


class GetObjectLog(msgspec.Struct, kw_only=True):
    """Which object; ``before``: the ``next`` of the page before. ``kinds``: those alone; none given: all."""

    object_id: Key
    before: Annotated[str, Meta(max_length=64, description="the next of the page before; empty: the latest")] = ""
    page_size: Annotated[int, Meta(ge=1, le=200)] = 50
    kinds: Annotated[list[LogKind], Meta(max_length=len(KINDS), description="of entries; empty: all")] = []


class ObjectLogEntry(msgspec.Struct):
    """Something that happened.

    ``kind``: event, label_opened, label_closed, command, change (of the object's record; administrators see them,
    with the names of the changed fields as ``value`` and what was done as ``code``), service (record; ``code`` is its
    category), offline (data; ``value`` its first 255 characters), file (``code``: attached or removed; ``value``: its
    name), out_of_service (of a terminal; ``code``: set or ended; ``value``: why) or presence (of a terminal; ``state``:
    online, offline or flapping; ``value``: why it went, or how often it came and went). ``id`` is the record's, of
    presence the terminal's, of a file and of out_of_service the entry's own. ``place``, given as ``before``, has what
    was before the entry; no two have the same.
    """

    kind: str
    id: int
    place: str
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
    registry = services.registry
    terminals = [each for uid in registry.object_terminals(object_id) if (each := registry.terminal(uid)) is not None]
    kinds = frozenset[str](request.kinds or KINDS)
    found = await services.object_log.page(
        LoggedObject(object_id, registry.object_company(object_id) or actor.company_id, terminals),
        before=parse_place(request.before) if request.before else None,
        size=request.page_size,
        kinds=kinds if actor.may(Role.ADMIN) else kinds - {"change"},
    )
    data = [_present(services, each) for each in found]
    return ObjectLogPage(data, data[-1].place if len(data) == request.page_size else "")


def parse_place(text: str) -> LogPlace:
    """Where a page ended: three numbers with dots between them. Raises ``BadParameter`` for anything else."""
    parts = text.split(".")
    if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) < 19 for part in parts):
        raise BadParameter("before", say("expected_next_of_page"))
    return LogPlace(*map(int, parts))


def _present(services: Services, entry: LogEntry) -> ObjectLogEntry:
    place, *texts = entry
    time = format_spaced(place.time_us, services.zone)
    return ObjectLogEntry(KINDS[place.kind], place.record_id, ".".join(map(str, place)), time, *texts)


OPERATIONS = (
    Operation(
        name="get_object_log",
        summary="Everything that happened to an object and its terminals, by whoever did it; the latest first",
        request=GetObjectLog,
        result=ObjectLogPage,
        permission=Role.VIEWER,
        handler=handle_get_object_log,
    ),
)
