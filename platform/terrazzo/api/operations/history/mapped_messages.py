"""The latest messages of a terminal, and which variables of which objects each of them became."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Annotated, Any, cast

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.long_answers.lists import answer_within, made
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.scope import find_terminal
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.history.grid import GridQuery, grid_series, json_of
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.payload import MANY_BYTES
from terrazzo.domain.report_topic import topic_of
from terrazzo.errors import NotFound
from terrazzo.mosaic.body import parse_mosaic, plain_number
from terrazzo.ports.store import Record
from terrazzo.times import format_spaced

MOST_MESSAGES = 50
MOST_OBJECTS = 20
"""That are looked into for one terminal; ``total_objects`` says how many it feeds."""
_PARTS = 3  # of an answer: payloads, points, values


class MappedMessagesQuery(GridQuery, kw_only=True):
    """``items``: so many messages, of all the chosen channels together."""

    items: Annotated[int, Meta(ge=1, le=MOST_MESSAGES, description="messages, the newest")] = 20


class MappedValues(msgspec.Struct):
    """The variables of an object that a message changed, by code."""

    object_id: int
    values: dict[str, float | int | str | bool | None]


class MappedMessage(msgspec.Struct):
    """A message as it is stored, and what is stored of the objects of its very time.

    ``points``: as its configuration reads it, null where that can't. ``became``: an object that nothing changed in is
    absent; with two terminals of an object that reported in the same microsecond, both show what became of the two.
    """

    topic: str
    time: str
    payload: msgspec.Raw
    points: dict[str, Any] | None
    became: list[MappedValues]


class FedObject(msgspec.Struct):
    """An object that lists the terminal, and its mapping; null: it has none, and messages become nothing."""

    id: int
    name: str
    mapping_id: int | None


class MappedMessages(msgspec.Struct):
    """``data``: the newest first. ``channels``: the topics that the terminal ever reported on. ``objects``: at most 20
    of those that it feeds."""

    data: list[MappedMessage]
    channels: list[str]
    objects: list[FedObject]
    total_objects: int


async def handle_get_mapped_messages(services: Services, actor: Actor, request: MappedMessagesQuery) -> MappedMessages:
    """The latest messages with what became of each.

    Raises:
        BadParameter: they are too large together.
        NotFound: no such terminal.
    """
    every = await grid_series(services, actor, GridQuery(terminal_id=request.terminal_id))
    chosen = await grid_series(services, actor, request) if request.topic.names else every
    objects, total = await _objects_of(services, actor, request.terminal_id)
    mapped = [row["id"] for row in objects if row["mapping_id"] is not None]
    most = services.limits.answer_bytes
    with answer_within(most):
        records = await services.store.latest(chosen, request.items, most_bytes=most // _PARTS)
        became = await _became(services, mapped, {each.time_us for each in records}, most // _PARTS)
    shown = await services.report_reader.as_json(records)
    read = await services.report_reader.as_json(await services.report_reader.read(shown))

    def present(pair: tuple[Record, Record]) -> MappedMessage:
        return _present(services, *pair, became[pair[0].time_us])

    return MappedMessages(
        data=made(list(zip(shown, read, strict=True)), present, size=_size),
        channels=sorted(map(topic_of, every)),
        objects=[FedObject(row["id"], row["name"], row["mapping_id"]) for row in objects],
        total_objects=total,
    )


async def _objects_of(services: Services, actor: Actor, key: str | int) -> tuple[Sequence[Row], int]:
    """The objects that list the terminal, the first ones, and how many there are; a former terminal has none."""
    try:
        uid = await find_terminal(services, actor, key)
    except NotFound:
        return (), 0
    ids = sorted(services.registry.terminal_objects(uid))
    if not ids:
        return (), 0
    found = await services.entities.objects.page(
        actor, conditions=Conditions(within=[("id", ids)]), page_size=MOST_OBJECTS
    )
    return found.rows, found.total


async def _became(
    services: Services, objects: Sequence[int], times: Collection[int], most_bytes: int
) -> dict[int, list[MappedValues]]:
    """By time (UTC microseconds) what is stored of the objects then.

    Raises:
        RecordsTooLarge: it has more than ``most_bytes`` in all.
    """
    found: dict[int, list[MappedValues]] = {each: [] for each in times}
    if not objects:
        return found
    series, left = [f"m/{each}" for each in objects], most_bytes
    for time_us in times:
        page = await services.store.page(series, time_us, time_us, offset=0, limit=len(series), most_bytes=left)
        left -= sum([len(record.body) for record in page.records])
        found[time_us] = _values_by_object(page.records)
    return found


def _values_by_object(records: Iterable[Record]) -> list[MappedValues]:
    changed: dict[int, dict[str, Any]] = {}
    for record in records:
        values = {code: plain_number(value) for code, value in parse_mosaic(record.body).items()}
        changed.setdefault(int(record.series.partition("/")[2]), {}).update(values)
    return [MappedValues(object_id, changed[object_id]) for object_id in sorted(changed)]


def _present(services: Services, record: Record, read: Record, became: list[MappedValues]) -> MappedMessage:
    return MappedMessage(
        topic=topic_of(record.series),
        time=format_spaced(record.time_us, services.zone),
        payload=json_of(record.body),
        points=_points(read.body),
        became=became,
    )


def _size(pair: tuple[Record, Record]) -> int:
    return sum([len(each.body) for each in pair])


def _points(body: bytes) -> dict[str, Any] | None:
    if len(body) > MANY_BYTES and body.startswith(b"{"):
        return cast("dict[str, Any]", json_of(body))  # which is an object of points: nothing needs to know which
    try:
        points: Mapping[str, Any] = msgspec.msgpack.decode(body) if body[0] >= 0x80 else msgspec.json.decode(body)
    except msgspec.MsgspecError:
        return None
    return dict(points) if isinstance(points, dict) else None


OPERATIONS = (
    Operation(
        name="get_mapped_messages",
        summary="The latest messages of a terminal, and which variables of which objects each of them became",
        request=MappedMessagesQuery,
        result=MappedMessages,
        permission=Role.VIEWER,
        handler=handle_get_mapped_messages,
    ),
)
