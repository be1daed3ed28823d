"""Flat records, as queries answer them, as one table of Arrow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from terrazzo.mosaic.body import text_of
from terrazzo.ports.store import Value


def encode_records(records: Sequence[Mapping[str, Value]], metadata: Mapping[str, str]) -> bytes:
    """The records in the streaming format, typed as files are; ``time`` is text, as in JSON.

    Args:
        metadata: of the schema.
    """
    names = ["time", *(name for name in dict.fromkeys(name for row in records for name in row) if name != "time")]
    arrays = [_array([row.get(name) for row in records]) for name in names]
    table = pa.Table.from_arrays(arrays, names=names).replace_schema_metadata(dict(metadata))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


def _array(values: Sequence[Value]) -> Any:
    types = {type(value) for value in values} - {type(None)}
    if str in types:
        return pa.array([text_of(value) for value in values], pa.string())
    if types == {bool}:
        return pa.array(values, pa.bool_())
    return pa.array([None if value is None else float(value) for value in values], pa.float64())
