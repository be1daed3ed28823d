"""Rows of exported files, made of records: in the platform's process where they are few, else in one of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from terrazzo.domain.payload import Reject, decode, flatten
from terrazzo.domain.payloads.stored import json_payload
from terrazzo.domain.report_topic import topic_of
from terrazzo.mosaic.body import parse_mosaic
from terrazzo.mosaic.files import FileEncoder, FileFormat, Row, file_encoder
from terrazzo.ports.store import Record, Value


class FileForm(msgspec.Struct, frozen=True, array_like=True):
    """What a file is made of, and how.

    Args:
        kind: an object's records, or a terminal's.
        columns: a CSV's, after ``time``.
        keys: what of a record is wanted; empty: all of it.
    """

    kind: Literal["mosaic", "grid"]
    format: FileFormat
    columns: tuple[str, ...]
    keys: tuple[str, ...]

    def encoder(self) -> FileEncoder:
        """Which has nothing of the pieces before, so that each piece may have another."""
        return file_encoder(self.format, self.columns)


def encode_records(form: FileForm, records: Sequence[Record]) -> bytes:
    """The bytes of some records in a file.

    Raises:
        UnforeseenName: a CSV has no column for it.
    """
    wanted = frozenset(form.keys)
    make = _mosaic_row if form.kind == "mosaic" else _grid_row
    found = (make(record, wanted) for record in records)
    return form.encoder().encode([row for row in found if row is not None])


def _mosaic_row(record: Record, wanted: frozenset[str]) -> Row:
    values = parse_mosaic(record.body)
    if wanted:
        values = {key: value for key, value in values.items() if key in wanted}
    return Row(record.time_us, values, {"value": values})


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
