"""What objects' variables became: the mosaic queries.

Records are sparse: each has the variables that changed with one message.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import tzinfo
from functools import partial
from typing import Annotated, Any, ClassVar, Self

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import EVERY, Items, Key, Moment, Names, PageIndex, PageSize, Parsed
from terrazzo.api.kernel.long_answers.lists import SMALL_BYTES, answer_within, made
from terrazzo.api.kernel.long_answers.remembered import PageOfRecords
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, page_offset, paged
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.mapping_row import RowKind
from terrazzo.errors import BadParameter
from terrazzo.loop_pauses import LoopPauses
from terrazzo.mosaic.body import parse_mosaic, plain_numbers
from terrazzo.mosaic.duration import parse_duration
from terrazzo.ports.store import Buckets, Fn, Record, TooManyBuckets, Value
from terrazzo.reasons import say, told_by
from terrazzo.times import LATEST_US, format_spaced, format_spaced_each, to_datetime

MosaicRecord = Annotated[
    dict[str, float | str | bool | None],
    Meta(description="the requested variables, null where the record has none, and `time`"),
]


_NAME_BYTES = 50  # of a name that a record has, beside its text
_LEAST_ROWS = 8  # that are told together: each column costs as much as some values


class Keys(Names):
    """``Names`` of variables, at least one; no names: ``*`` was among them, which is all of them."""

    schema: ClassVar[dict[str, Any]] = {
        **Names.schema,
        "description": "codes of variables, at least one: a list, a list as JSON text, or one; `*`: all of them",
    }
    __slots__ = ()

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Reads codes of variables, each once, in the order given."""
        keys = super().parse(value, zone)
        if not keys.names:
            raise ValueError(say("names_no_variable"))
        return cls() if EVERY in keys.names else cls(tuple(dict.fromkeys(keys.names)))


class DurationText(Parsed):
    """A length of time; empty text is none."""

    schema: ClassVar[dict[str, Any]] = {
        "anyOf": [{"type": "number", "exclusiveMinimum": 0}, {"type": "string"}],
        "description": "seconds, or a number with s, m, h or d; empty: none",
    }
    __slots__ = ("length_us",)

    def __init__(self, length_us: int = 0) -> None:
        self.length_us = length_us

    @classmethod
    def parse(cls, value: Any, zone: tzinfo) -> Self:
        """Reads a length from a millisecond to ten years; null and empty text are none."""
        return cls() if value is None or value == "" else cls(parse_duration(value))


class MosaicQuery(msgspec.Struct, kw_only=True):
    """An object, and which of its variables."""

    object_id: Key
    keys: Keys


class MosaicItem(MosaicQuery):
    """The first record strictly later than ``time``."""

    time: Moment


class LastMosaicList(MosaicQuery):
    """The newest ``items`` records."""

    items: Items


class MosaicRange(MosaicQuery):
    """Both ends are inclusive."""

    start_time: Moment
    end_time: Moment
    page_index: PageIndex = 1
    page_size: PageSize = 20


class MosaicBuckets(MosaicRange):
    """``resample``: the length of buckets; empty: records as they are. ``fn``: mean unless given, and last of texts."""

    resample: DurationText = msgspec.field(default_factory=DurationText)
    fn: Fn | None = None


class MosaicData(msgspec.Struct):
    """At most one record."""

    data: list[MosaicRecord]


class MosaicList(msgspec.Struct):
    """The newest records first; ``items`` is what was asked for."""

    data: list[MosaicRecord]
    items: int


async def handle_get_last_mosaic(services: Services, actor: Actor, request: MosaicQuery) -> MosaicData:
    """One record with the newest value of each variable, and the time of the newest of them."""
    series, most = await _series(services, actor, request), services.limits.answer_bytes
    if not (keys := request.keys.names):  # those of its mapping, which may change
        return MosaicData(await _newest(services, series, await codes_of(services, actor, request.object_id), most))

    async def read() -> PageOfRecords:
        return PageOfRecords(await _newest(services, series, keys, most), 1)

    watch = partial(services.store.watch, series, 0, LATEST_US)
    found = await services.remembered.page((series, keys), watch, read, company_id=actor.company_id)
    return MosaicData(found.records)


async def _newest(services: Services, series: str, keys: Sequence[str], most: int) -> list[MosaicRecord]:
    """A record with the newest value of each variable; none where there is no value at all."""
    with answer_within(most):
        newest = await services.store.latest_each(series, keys, most_bytes=most)
    if not newest:
        return []
    values = await values_of_each(newest)
    return [_flat(keys, values, max(record.time_us for record in newest.values()), services.zone)]


async def handle_get_mosaic_item(services: Services, actor: Actor, request: MosaicItem) -> MosaicData:
    """The first record strictly later than a time that has one of the variables, or none."""
    series, keys = await _series(services, actor, request), request.keys.names
    record = await services.store.first_after([series], request.time.time_us, keys=keys)
    return MosaicData(_present([record] if record else [], keys, services.zone))


async def handle_get_last_mosaic_list(services: Services, actor: Actor, request: LastMosaicList) -> MosaicList:
    """The newest records that have one of the variables, newest first."""
    series, keys = await _series(services, actor, request), request.keys.names
    most = services.limits.answer_bytes
    with answer_within(most):
        records = await services.store.latest([series], request.items, keys=keys, most_bytes=most)
    return MosaicList(_present(records, keys, services.zone), request.items)


async def handle_get_mosaic_list(services: Services, actor: Actor, request: MosaicRange) -> Paged[MosaicRecord]:
    """A page of the records of a time range that have one of the variables, newest first.

    Raises:
        BadParameter: the range is reversed.
    """
    start_us, end_us = span_of(request)
    series, keys = await _series(services, actor, request), request.keys.names
    most = services.limits.answer_bytes

    async def read() -> PageOfRecords:
        with answer_within(most):
            page = await services.store.page(
                [series],
                start_us,
                end_us,
                keys=keys,
                offset=page_offset(request),
                limit=request.page_size,
                most_bytes=most,
                whole=False,
            )
        return PageOfRecords(_present(page.records, keys, services.zone), page.total)

    question = (series, keys, start_us, end_us, request.page_index, request.page_size)
    watch = partial(services.store.watch, series, start_us, end_us)
    return paged(request, *await services.remembered.page(question, watch, read, company_id=actor.company_id))


async def handle_get_mosaic_list_by_key(
    services: Services, actor: Actor, request: MosaicBuckets
) -> Paged[MosaicRecord]:
    """The buckets of a time range, or its records where no length of buckets is given."""
    if not request.resample.length_us:
        return await handle_get_mosaic_list(services, actor, request)
    start_us, end_us = span_of(request)
    series, length_us = await _series(services, actor, request), request.resample.length_us

    async def read() -> PageOfRecords:
        keys = request.keys.names or await services.store.names(series, start_us, end_us)
        buckets = await services.store.resample(
            series,
            keys,
            start_us,
            end_us,
            bucket_us=length_us,
            fn=request.fn,
            origin_us=_midnight_us(start_us, services.zone),
            offset=page_offset(request),
            limit=request.page_size,
        )
        return PageOfRecords(_present_buckets(buckets, keys, services.zone), buckets.total)

    page = (request.page_index, request.page_size)
    question = (series, request.keys.names, start_us, end_us, length_us, request.fn, page)
    watch = partial(services.store.watch, series, start_us, end_us)
    try:
        return paged(request, *await services.remembered.page(question, watch, read, company_id=actor.company_id))
    except TooManyBuckets as error:
        raise BadParameter("resample", told_by(error)) from None


def span_of(request: MosaicRange) -> tuple[int, int]:
    """The range of a request.

    Raises:
        BadParameter: it is reversed.
    """
    start_us, end_us = request.start_time.time_us, request.end_time.time_us
    if start_us > end_us:
        raise BadParameter("start_time", say("is_after_end_time"))
    return start_us, end_us


async def _series(services: Services, actor: Actor, request: MosaicQuery) -> str:
    return f"m/{await find_object(services, actor, request.object_id)}"


def _present(records: Sequence[Record], keys: Sequence[str], zone: tzinfo) -> list[MosaicRecord]:
    names = sum(_NAME_BYTES + len(key) for key in keys)  # which each record repeats, whether it has them or not

    def present(record: Record) -> MosaicRecord:
        return _flat(keys, parse_mosaic(record.body), record.time_us, zone)

    return made(records, present, size=lambda record: names + len(record.body))


async def values_of_each(newest: Mapping[str, Record]) -> dict[str, Value]:
    """The value of each key in its record; each record is read once."""
    keys_of: dict[Record, list[str]] = {}
    for key, record in newest.items():
        keys_of.setdefault(record, []).append(key)
    values, pauses = {}, LoopPauses()
    for record, keys in keys_of.items():
        found = parse_mosaic(record.body)
        values.update({key: found.get(key) for key in keys})
        await pauses.pause()
    return values


def _present_buckets(buckets: Buckets, keys: Sequence[str], zone: tzinfo) -> list[MosaicRecord]:
    names, columns = (*keys, "time"), [plain_numbers(buckets.columns[key]) for key in keys]
    rows = list(zip(*columns, buckets.starts_us, strict=True))
    row_bytes = sum(_NAME_BYTES + len(key) for key in names)

    def present(row: Sequence[Any]) -> MosaicRecord:
        found = dict(zip(names, row, strict=True))
        found["time"] = format_spaced(row[-1], zone)
        return found

    is_worth = "time" not in keys and _LEAST_ROWS * row_bytes <= SMALL_BYTES
    text = partial(_rows_text, keys, zone) if is_worth else None
    return made(rows, present, size=lambda _: row_bytes, text=text)


def _rows_text(keys: Sequence[str], zone: tzinfo, rows: Sequence[Any]) -> bytes:
    """An array of JSON with the buckets in some rows, column by column: a fourth of what records would take."""
    *columns, starts_us = zip(*rows, strict=True)
    width = 2 * len(keys) + 3
    parts = ["{"] * (width * len(rows))
    for place, (key, values) in enumerate(zip(keys, columns, strict=True)):
        parts[2 * place :: width] = [f"{',' if place else '{'}{_json(key)}:"] * len(rows)
        parts[2 * place + 1 :: width] = _json_texts(values)
    parts[width - 3 :: width] = [',"time":"'] * len(rows)
    parts[width - 2 :: width] = format_spaced_each(starts_us, zone)
    parts[width - 1 :: width] = ['"},'] * len(rows)
    parts[-1] = '"}'
    return f"[{''.join(parts)}]".encode()


def _json(value: Value) -> str:
    return msgspec.json.encode(value).decode()


def _json_texts(values: Sequence[Value]) -> list[str]:
    """Each value as JSON."""
    if str in set(map(type, values)):
        return list(map(_json, values))
    return msgspec.json.encode(values).decode()[1:-1].split(",")


def _flat(keys: Sequence[str], values: Mapping[str, Value], time_us: int, zone: tzinfo) -> MosaicRecord:
    """The variables that were asked for, null where the record has none; of all those that it has."""
    wanted = {key: values.get(key) for key in keys} if keys else values
    return {**wanted, "time": format_spaced(time_us, zone)}


async def codes_of(services: Services, actor: Actor, object_id: int | str) -> list[str]:
    """The codes of an object's variables: of those that its mapping makes, and of those in its newest record."""
    item = await services.entities.objects.item(actor, object_id)
    codes: dict[str, None] = {}
    if item["mapping_id"] is not None:
        mapping = await services.entities.mappings.item(actor, item["mapping_id"])
        codes |= dict.fromkeys(str(row[0]) for row in mapping["script"] or () if _makes_a_variable(row))
    newest = await services.store.latest([f"m/{item['id']}"], 1)
    return [*codes | dict.fromkeys(name for record in newest for name in parse_mosaic(record.body))]


def _makes_a_variable(row: Sequence[Any]) -> bool:
    """Whether a mapping's row makes a variable; those of events have a code too."""
    return len(row) > 3 and str(row[3]).strip() != RowKind.EVNT.value


def _midnight_us(time_us: int, zone: tzinfo) -> int:
    """Where buckets begin: midnight in the zone, as its clocks stood at that time."""
    offset = to_datetime(time_us, zone).utcoffset()
    return -round(offset.total_seconds() * 1_000_000) if offset else 0


GET_LAST_MOSAIC = Operation(
    name="get_last_mosaic",
    summary="The newest value of each variable of an object",
    request=MosaicQuery,
    result=MosaicData,
    permission=Role.VIEWER,
    handler=handle_get_last_mosaic,
    is_series=True,
)
GET_MOSAIC_ITEM = Operation(
    name="get_mosaic_item",
    summary="The first record after a time that has one of an object's variables",
    request=MosaicItem,
    result=MosaicData,
    permission=Role.VIEWER,
    handler=handle_get_mosaic_item,
    is_series=True,
)
GET_LAST_MOSAIC_LIST = Operation(
    name="get_last_mosaic_list",
    summary="The latest records that have one of an object's variables, newest first",
    request=LastMosaicList,
    result=MosaicList,
    permission=Role.VIEWER,
    handler=handle_get_last_mosaic_list,
    is_series=True,
)
GET_MOSAIC_LIST = Operation(
    name="get_mosaic_list",
    summary="The records of a time range that have one of an object's variables, newest first",
    request=MosaicRange,
    result=Paged[MosaicRecord],
    permission=Role.VIEWER,
    handler=handle_get_mosaic_list,
    is_series=True,
)
GET_MOSAIC_LIST_BY_KEY = Operation(
    name="get_mosaic_list_by_key",
    summary="An object's variables in a time range, in buckets of equal length, newest first",
    request=MosaicBuckets,
    result=Paged[MosaicRecord],
    permission=Role.VIEWER,
    handler=handle_get_mosaic_list_by_key,
    is_series=True,
)

OPERATIONS = (
    GET_LAST_MOSAIC,
    GET_MOSAIC_ITEM,
    GET_LAST_MOSAIC_LIST,
    GET_MOSAIC_LIST,
    GET_MOSAIC_LIST_BY_KEY,
)
