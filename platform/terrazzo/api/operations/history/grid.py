"""What terminals reported: the four grid queries."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo
from typing import Protocol

import msgspec

from terrazzo.api.kernel.fields import Items, Key, Moment, PageIndex, PageSize, Topics
from terrazzo.api.kernel.long_answers.lists import SMALL_BYTES, answer_within, made
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, page_offset, paged
from terrazzo.api.kernel.scope import find_series_name
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.history.topic_selection import TopicSelection
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.payloads.stored import json_payload
from terrazzo.domain.report_topic import topic_of, uid_of
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import LoopPauses
from terrazzo.ports.store import Record
from terrazzo.reasons import say
from terrazzo.times import format_spaced


class GridQuery(msgspec.Struct, kw_only=True):
    """A terminal, and which of its topics."""

    terminal_id: Key
    topic: Topics = msgspec.field(default_factory=Topics)


class AsksForGrid(Protocol):
    """Any request with these two fields."""

    terminal_id: str | int
    topic: Topics


class GridItem(GridQuery):
    """The first record strictly later than ``time``."""

    time: Moment


class LastGridList(GridQuery):
    """The newest ``items`` records."""

    items: Items


class GridRange(GridQuery):
    """Both ends are inclusive."""

    start_time: Moment
    end_time: Moment
    page_index: PageIndex = 1
    page_size: PageSize = 20


class GridRecord(msgspec.Struct):
    """One record; ``payload`` is passed through as it is stored."""

    payload: msgspec.Raw
    time: str
    topic: str


class GridData(msgspec.Struct):
    """At most one record."""

    data: list[GridRecord]


class GridList(msgspec.Struct):
    """The newest records first; ``items`` is what was asked for."""

    data: list[GridRecord]
    items: int


async def handle_get_last_grid(services: Services, actor: Actor, request: GridQuery) -> GridData:
    """The latest record of the terminal, or none."""
    records = await services.store.latest(await grid_series(services, actor, request), 1)
    return GridData(await _presented(services, records))


async def handle_get_grid_item(services: Services, actor: Actor, request: GridItem) -> GridData:
    """The first record that is strictly later than a time, or none."""
    record = await services.store.first_after(await grid_series(services, actor, request), request.time.time_us)
    return GridData(await _presented(services, [record] if record else []))


async def handle_get_last_grid_list(services: Services, actor: Actor, request: LastGridList) -> GridList:
    """The newest records, newest first."""
    series, most = await grid_series(services, actor, request), services.limits.answer_bytes
    with answer_within(most):
        records = await services.store.latest(series, request.items, most_bytes=most)
    return GridList(await _presented(services, records), request.items)


async def handle_get_grid_list(services: Services, actor: Actor, request: GridRange) -> Paged[GridRecord]:
    """A page of the records of a time range, newest first.

    Raises:
        BadParameter: the range is reversed.
    """
    start_us, end_us = request.start_time.time_us, request.end_time.time_us
    if start_us > end_us:
        raise BadParameter("start_time", say("is_after_end_time"))
    series, most = await grid_series(services, actor, request), services.limits.answer_bytes
    with answer_within(most):
        page = await services.store.page(
            series,
            start_us,
            end_us,
            offset=page_offset(request),
            limit=request.page_size,
            most_bytes=most,
        )
    return paged(request, await _presented(services, page.records), page.total)


async def grid_series(services: Services, actor: Actor, request: AsksForGrid) -> list[str]:
    """The series that the topics select, all of this terminal whatever the topics say."""
    series_name = await find_series_name(services, actor, request.terminal_id)
    own, topics = f"g/{series_name}/", f"g/{uid_of(series_name)}/"
    names = request.topic.names
    if len(names) == 1 and "+" not in names[0] and "#" not in names[0]:  # as most ask
        return [own + names[0].removeprefix(topics)]
    if names and not any("+" in name or "#" in name for name in names):
        return sorted({own + name.removeprefix(topics) for name in names})
    series = await services.store.series(own)
    if not names:
        return series
    selection, pauses, found = TopicSelection(names, own=topics), LoopPauses(), []
    for each in series:
        if selection.selects(topic_of(each)):
            found.append(each)
        await pauses.pause()
    return found


class _Topics(dict[str, str]):
    """The topic of each series of an answer, whose records are of few."""

    def __missing__(self, series: str) -> str:
        topic = self[series] = topic_of(series)
        return topic


async def _presented(services: Services, records: Sequence[Record]) -> list[GridRecord]:
    return _present(await services.report_reader.as_json(records), services.zone)


def _present(records: Sequence[Record], zone: tzinfo) -> list[GridRecord]:
    if len(records) == 1 and len(records[0].body) <= SMALL_BYTES:
        record = records[0]
        return [GridRecord(json_of(record.body), format_spaced(record.time_us, zone), topic_of(record.series))]
    topics = _Topics()

    def present(record: Record) -> GridRecord:
        return GridRecord(json_of(record.body), format_spaced(record.time_us, zone), topics[record.series])

    return made(records, present, size=_size)


def _size(record: Record) -> int:
    return len(record.body)


def json_of(body: bytes) -> msgspec.Raw:
    """A stored report as JSON: an object as it is, on one line, which TCP needs; MessagePack is translated."""
    if body[0] >= 0x80:
        return msgspec.Raw(msgspec.json.encode(json_payload(body)))
    return msgspec.Raw(body.replace(b"\n", b" ") if b"\n" in body else body)


GET_LAST_GRID = Operation(
    name="get_last_grid",
    summary="The latest record of a terminal",
    request=GridQuery,
    result=GridData,
    permission=Role.VIEWER,
    handler=handle_get_last_grid,
)
GET_GRID_ITEM = Operation(
    name="get_grid_item",
    summary="The first record of a terminal after a time",
    request=GridItem,
    result=GridData,
    permission=Role.VIEWER,
    handler=handle_get_grid_item,
)
GET_LAST_GRID_LIST = Operation(
    name="get_last_grid_list",
    summary="The latest records of a terminal, newest first",
    request=LastGridList,
    result=GridList,
    permission=Role.VIEWER,
    handler=handle_get_last_grid_list,
)
GET_GRID_LIST = Operation(
    name="get_grid_list",
    summary="The records of a terminal in a time range, newest first",
    request=GridRange,
    result=Paged[GridRecord],
    permission=Role.VIEWER,
    handler=handle_get_grid_list,
)

OPERATIONS = (
    GET_LAST_GRID,
    GET_GRID_ITEM,
    GET_LAST_GRID_LIST,
    GET_GRID_LIST,
)
