"""Time series as files, without page limits: what the paths under ``/export`` perform.

Rows are read, encoded and sent a piece at a time, oldest first; the store holds nothing between two pieces.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import NamedTuple

import msgspec

from terrazzo.api.kernel.fields import Key, Moment, Topics, VariableNames
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.pieces import begun, in_turn
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.history.column_export import ColumnSource, column_pieces
from terrazzo.api.operations.history.export_process import data_of, request_of
from terrazzo.api.operations.history.export_rows import FileForm, encode_records
from terrazzo.api.operations.history.grid import grid_series
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.report_topic import topic_of
from terrazzo.errors import BadParameter
from terrazzo.mosaic.column_files import COLUMN_MEDIA_TYPES, HOW_TO_INSTALL, ColumnFormat, has_arrow
from terrazzo.mosaic.files import MEDIA_TYPES, FileFormat
from terrazzo.ports.store import Record
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog
from terrazzo.times import now_us

_log = logging.getLogger(__name__)
_sparse_log = SparseLog(_log)

_SHORT_BYTES = 64 * 1024  # of bodies: some milliseconds


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
    """Which records, and what becomes of them."""

    series: Sequence[str]
    start_us: int
    end_us: int
    keys: Sequence[str]
    form: FileForm


async def handle_export_mosaic(services: Services, actor: Actor, request: MosaicExport) -> Export:
    """An object's records, or those that have one of the keys."""
    object_id = await find_object(services, actor, request.object_id)
    start_us, end_us = _span(request)
    series, keys = f"m/{object_id}", request.keys.names
    columns: Sequence[str] = keys
    if request.format == "csv" and not keys:
        columns = await services.store.names(series, start_us, end_us)
    name = f"mosaic-{object_id}"
    match request.format:
        case "arrow" | "parquet" as format:
            every = ColumnSource({"": series}, start_us, end_us, keys)
            return await _columns_export(services, actor, every, format, name)
        case format:
            form = FileForm("mosaic", format, tuple(columns), tuple(keys))
            source = _Source([series], start_us, end_us, keys, form)
            return await _export(services, actor, source, name)


async def handle_export_grid(services: Services, actor: Actor, request: GridExport) -> Export:
    """A terminal's records of the topics, or those that have one of the keys."""
    series = await grid_series(services, actor, request)
    start_us, end_us = _span(request)
    keys = request.keys.names
    name = f"grid-{_file_word(request.terminal_id)}"
    match request.format:
        case "arrow" | "parquet" as format:
            every = ColumnSource({topic_of(each): each for each in series}, start_us, end_us, keys)
            return await _columns_export(services, actor, every, format, name)
        case format:
            form = FileForm("grid", format, ("topic", *(keys or ("payload",))), tuple(keys))
            return await _export(services, actor, _Source(series, start_us, end_us, (), form), name)


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


async def _export(services: Services, actor: Actor, source: _Source, name: str) -> Export:
    """The first piece is read before there is an answer, so that a store that is away can still be told.

    Raises:
        Throttled: too many exports of the company wait.
    """
    turn, holding = services.exports.turn(actor.company_id), services.memory.holding("exports", actor.company_id)
    pieces = await begun(in_turn(_pieces(services, source), turn, holding))
    format = source.form.format
    return Export(pieces, MEDIA_TYPES[format], f"{name}.{format}")


async def _pieces(services: Services, source: _Source) -> AsyncGenerator[bytes, None]:
    head = source.form.encoder().begin()
    scan = services.store.scan(source.series, source.start_us, source.end_us, keys=source.keys)
    async with aclosing(scan) as found:
        async for records in found:
            yield head + await _encoded(services, source.form, await services.report_reader.read(records))
            head = b""
    yield head


async def _encoded(services: Services, form: FileForm, records: Sequence[Record]) -> bytes:
    """The bytes of some records: in a process where they are many, so that others have the interpreter."""
    process = services.export_process
    if process is not None and sum(len(record.body) for record in records) > _SHORT_BYTES:
        try:
            return await process.ask(request_of(form, records), data_of)
        except (OSError, EOFError) as error:
            _sparse_log.warning("rows of an export are made beside the event loop: %r", error)
    return await services.computing.run(encode_records, form, records)


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
