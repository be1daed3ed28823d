"""Time series as files, without page limits: what the paths under ``/export`` perform.

Rows are read, encoded and sent a piece at a time, oldest first; the store holds nothing between two pieces.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from terrazzo.api.kernel.fields import Key, Moment, Topics, VariableNames
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.pieces import begun, in_turn
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.history.column_export import ColumnSource, column_pieces
from terrazzo.api.operations.history.grid import grid_series
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.payload import Reject, decode, flatten
from terrazzo.domain.payloads.stored import json_payload
from terrazzo.domain.report_topic import topic_of
from terrazzo.errors import BadParameter
from terrazzo.mosaic.body import parse_mosaic
from terrazzo.mosaic.column_files import COLUMN_MEDIA_TYPES, HOW_TO_INSTALL, ColumnFormat, has_arrow
from terrazzo.mosaic.files import MEDIA_TYPES, FileEncoder, FileFormat, Row, file_encoder
from terrazzo.ports.store import Record, Value
from terrazzo.reasons import say
from terrazzo.times import now_us


class HistoryExportOptions(msgspec.Struct, kw_only=True):
    """``start`` and ``end`` are inclusive: from the first record, until now. ``keys``: only records that have one."""

    format: FileFormat | ColumnFormat = "csv"
    start: Moment = msgspec.field(default_factory=lambda: Moment(0))
    end: Moment | None = None
    keys: VariableNames = msgspec.field(default_factory=VariableNames)


class MosaicExport(HistoryExportOptions):
    """An object's records."""

    object_id: Key


class GridExport(HistoryExportOptions):
    """A terminal's records; CSV has a column for each key, or one with the whole payload."""

    terminal_id: Key
    topic: Topics = msgspec.field(default_factory=Topics)


class Export(NamedTuple):
    """A file that is made while it is sent."""

    pieces: AsyncGenerator[bytes, None]
    media_type: str
    file_name: str


class _Source(NamedTuple):
    """Which records, and what becomes of them. ``columns``: a CSV's."""

    series: Sequence[str]
    start_us: int
    end_us: int
    keys: Sequence[str]
    columns: Sequence[str]
    rows: Callable[[Iterable[Record]], list[Row]]


async def handle_export_mosaic(services: Services, actor: Actor, request: MosaicExport) -> Export:
    """An object's records, or those that have one of the keys."""
    object_id = await find_object(services, actor, request.object_id)
    start_us, end_us = _span(request)
    series, keys = f"m/{object_id}", request.keys.names
    columns: Sequence[str] = keys
    if request.format == "csv" and not keys:
        columns = await services.store.names(series, start_us, end_us)
    wanted = frozenset(keys)

    def rows(records: Iterable[Record]) -> list[Row]:
        return [_mosaic_row(record, wanted) for record in records]

    name = f"mosaic-{object_id}"
    match request.format:
        case "arrow" | "parquet" as format:
            every = ColumnSource({"": series}, start_us, end_us, keys)
            return await _columns_export(services, actor, every, format, name)
        case format:
            source = _Source([series], start_us, end_us, keys, columns, rows)
            return await _export(services, actor, source, format, name)


def _mosaic_row(record: Record, wanted: frozenset[str]) -> Row:
    values = parse_mosaic(record.body)
    if wanted:
        values = {key: value for key, value in values.items() if key in wanted}
    return Row(record.time_us, values, {"value": values})


async def handle_export_grid(services: Services, actor: Actor, request: GridExport) -> Export:
    """A terminal's records of the topics, or those that have one of the keys."""
    series = await grid_series(services, actor, request)
    start_us, end_us = _span(request)
    keys = request.keys.names
    wanted = frozenset(keys)

    def rows(records: Iterable[Record]) -> list[Row]:
        each = (_grid_row(record, wanted) for record in records)
        return [row for row in each if row is not None]

    name = f"grid-{_file_word(request.terminal_id)}"
    match request.format:
        case "arrow" | "parquet" as format:
            every = ColumnSource({topic_of(each): each for each in series}, start_us, end_us, keys)
            return await _columns_export(services, actor, every, format, name)
        case format:
            source = _Source(series, start_us, end_us, (), ("topic", *(keys or ("payload",))), rows)
            return await _export(services, actor, source, format, name)


def _grid_row(record: Record, wanted: frozenset[str]) -> Row | None:
    topic = topic_of(record.series)
    try:
        payload = decode(record.body)
    except Reject:  # an array, or what a decoder had read: no configuration says now how to read it
        payload = msgspec.to_builtins(msgspec.json.decode(msgspec.json.encode(json_payload(record.body))))
        if wanted:
            return None
    if not wanted:
        cells: Mapping[str, Value] = {"topic": topic, "payload": msgspec.json.encode(payload).decode()}
        return Row(record.time_us, cells, {"topic": topic, "payload": payload})
    try:
        flat = flatten(payload)
    except Reject:  # beyond what a report may be today: no point of it goes into an object either
        return None
    found = {key: value for key, value in flat.items() if key in wanted}
    if not found:
        return None
    return Row(record.time_us, {"topic": topic, **found}, {"topic": topic, "payload": found})


def _span(request: HistoryExportOptions) -> tuple[int, int]:
    """What comes while the export goes on is not in it, so that it has an end."""
    end_us = now_us() if request.end is None else min(request.end.time_us, now_us())
    if request.end is not None and request.start.time_us > request.end.time_us:
        raise BadParameter("start", say("is_after_end"))
    return request.start.time_us, end_us


async def _columns_export(
    services: Services, actor: Actor, source: ColumnSource, format: ColumnFormat, name: str
) -> Export:
    """As ``_export``.

    Raises:
        BadParameter: pyarrow is not installed.
    """
    if not has_arrow():
        raise BadParameter("format", f"{format} {HOW_TO_INSTALL}")
    turn, holding = services.exports.turn(actor.company_id), services.memory.holding("exports", actor.company_id)
    made = column_pieces(services.store, services.computing, source, format, services.zone)
    return Export(await begun(in_turn(made, turn, holding)), COLUMN_MEDIA_TYPES[format], f"{name}.{format}")


async def _export(services: Services, actor: Actor, source: _Source, format: FileFormat, name: str) -> Export:
    """The first piece is read before there is an answer, so that a store that is away can still be told.

    Raises:
        Throttled: too many exports of the company wait.
    """
    turn, holding = services.exports.turn(actor.company_id), services.memory.holding("exports", actor.company_id)
    pieces = await begun(in_turn(_pieces(services, source, format), turn, holding))
    return Export(pieces, MEDIA_TYPES[format], f"{name}.{format}")


async def _pieces(services: Services, source: _Source, format: FileFormat) -> AsyncGenerator[bytes, None]:
    encoder = file_encoder(format, source.columns)
    head = encoder.begin()
    scan = services.store.scan(source.series, source.start_us, source.end_us, keys=source.keys)
    async with aclosing(scan) as found:
        async for records in found:
            read = await services.report_reader.read(records)
            yield head + await services.computing.run(_encode, encoder, source, read)
            head = b""
    yield head


def _encode(encoder: FileEncoder, source: _Source, records: Sequence[Record]) -> bytes:
    return encoder.encode(source.rows(records))


def _file_word(key: str | int) -> str:
    """What of a key may stand in a file's name."""
    return "".join(letter if letter.isascii() and (letter.isalnum() or letter in "-_.") else "_" for letter in str(key))


EXPORTS = (
    Operation(
        name="export_mosaic",
        summary="All records of an object in a time range, as a file",
        request=MosaicExport,
        result=str,
        permission=Role.VIEWER,
        handler=handle_export_mosaic,
        method="GET",
        path="/export/mosaic/{object_id}",
        media_types=(*MEDIA_TYPES.values(), *COLUMN_MEDIA_TYPES.values()),
    ),
    Operation(
        name="export_grid",
        summary="All records of a terminal in a time range, as a file",
        request=GridExport,
        result=str,
        permission=Role.VIEWER,
        handler=handle_export_grid,
        method="GET",
        path="/export/grid/{terminal_id}",
        media_types=(*MEDIA_TYPES.values(), *COLUMN_MEDIA_TYPES.values()),
    ),
)
"""The parameters that aren't in the path come in the query string."""
