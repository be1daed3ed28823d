"""Time series as Arrow (IPC, streamed) and Parquet, made piece by piece.

pyarrow is imported when the first such file is asked for; it need not be installed.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from datetime import tzinfo
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, Protocol

from terrazzo.mosaic.typed_columns import NONE, ColumnType, check_type, texts_of
from terrazzo.ports.store import Points

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

ColumnFormat = Literal["arrow", "parquet"]
COLUMN_MEDIA_TYPES: Mapping[ColumnFormat, str] = {
    "arrow": "application/vnd.apache.arrow.stream",
    "parquet": "application/vnd.apache.parquet",
}
HOW_TO_INSTALL = "needs pyarrow: pip install 'terrazzo[columns]'"

ROWS_OF_GROUP = 65_536
"""Of a Parquet file's row groups, but for the last; they are kept in memory until one is whole."""


def has_arrow() -> bool:
    """Whether pyarrow is installed."""
    return find_spec("pyarrow") is not None


class ColumnEncoder(Protocol):
    """Encodes one file, piece by piece; ``end`` is called once, after the last."""

    def encode(self, rows: Mapping[str, Points], times_us: NDArray[np.int64], texts: Mapping[str, str]) -> bytes:
        """The bytes that some rows come to now; columns that are left out have no values.

        Args:
            rows: columns with a value, or none, for each row.
            texts: columns that have the same text in each row.

        Raises:
            UnforeseenType: a value doesn't fit into its column.
        """

    def end(self) -> bytes:
        """The bytes after the last row."""


def column_encoder(format: ColumnFormat, columns: Mapping[str, ColumnType], zone: tzinfo) -> ColumnEncoder:
    """An encoder. ``columns``: those after ``time``, whose type names the ``zone``."""
    return _Arrow(columns, zone) if format == "arrow" else _Parquet(columns, zone)


def zone_name(zone: tzinfo) -> str:
    """The name of a zone as Arrow has it."""
    return str(getattr(zone, "key", None) or "UTC")


def arrow_schema(columns: Mapping[str, ColumnType], zone: tzinfo) -> Any:
    """A schema of pyarrow: ``time`` in microseconds, and a column for each name."""
    import pyarrow as pa

    types = {"number": pa.float64(), "flag": pa.bool_(), "text": pa.string()}
    time = pa.field("time", pa.timestamp("us", tz=zone_name(zone)), nullable=False)
    return pa.schema([time, *(pa.field(name, types[type]) for name, type in columns.items())])


def _batch(schema: Any, rows: Mapping[str, Points], times_us: NDArray[np.int64], texts: Mapping[str, str]) -> Any:
    import pyarrow as pa

    times, *fields = schema
    arrays = [pa.array(times_us).cast(times.type)]
    for field in fields:
        if field.name in texts:
            arrays.append(pa.repeat(pa.scalar(texts[field.name], field.type), len(times_us)))
        elif field.name in rows:
            arrays.append(_array(rows[field.name], field.type))
        else:
            arrays.append(pa.nulls(len(times_us), field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _array(points: Points, type: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_string(type):
        return pa.array(texts_of(points), type)
    is_flag = pa.types.is_boolean(type)
    check_type(points, "flag" if is_flag else "number")
    return pa.array(points.numbers != 0 if is_flag else points.numbers, type, mask=points.kinds == NONE)


class _Sink(io.RawIOBase):
    """Takes what a writer writes, and gives it away."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        """Always."""
        return True

    def tell(self) -> int:
        """How much was written so far."""
        return self._size

    def write(self, data: Any) -> int:
        """Keeps some bytes."""
        piece = bytes(data)
        self._pieces.append(piece)
        self._size += len(piece)
        return len(piece)

    def drain(self) -> bytes:
        """What was written since the last time."""
        pieces, self._pieces = self._pieces, []
        return b"".join(pieces)


class _Arrow:
    """The streaming format of Arrow IPC: each piece is a batch."""

    def __init__(self, columns: Mapping[str, ColumnType], zone: tzinfo) -> None:
        import pyarrow as pa

        self._sink = _Sink()
        self._schema = arrow_schema(columns, zone)
        self._writer = pa.ipc.new_stream(self._sink, self._schema)

    def encode(self, rows: Mapping[str, Points], times_us: NDArray[np.int64], texts: Mapping[str, str]) -> bytes:
        """A batch."""
        self._writer.write_batch(_batch(self._schema, rows, times_us, texts))
        return self._sink.drain()

    def end(self) -> bytes:
        """The mark of the end."""
        self._writer.close()
        return self._sink.drain()


class _Parquet:
    """Row groups of ``ROWS_OF_GROUP`` rows, compressed with zstd."""

    def __init__(self, columns: Mapping[str, ColumnType], zone: tzinfo) -> None:
        import pyarrow.parquet as pq

        self._sink = _Sink()
        self._schema = arrow_schema(columns, zone)
        self._writer = pq.ParquetWriter(self._sink, self._schema, compression="zstd")
        self._batches: list[Any] = []
        self._rows = 0

    def encode(self, rows: Mapping[str, Points], times_us: NDArray[np.int64], texts: Mapping[str, str]) -> bytes:
        """A row group, once there are rows for one."""
        self._batches.append(_batch(self._schema, rows, times_us, texts))
        self._rows += len(times_us)
        if self._rows >= ROWS_OF_GROUP:
            self._write_group()
        return self._sink.drain()

    def end(self) -> bytes:
        """The last row group, and the file's footer."""
        if self._rows:
            self._write_group()
        self._writer.close()
        return self._sink.drain()

    def _write_group(self) -> None:
        import pyarrow as pa

        self._writer.write_table(pa.Table.from_batches(self._batches, schema=self._schema))
        self._batches, self._rows = [], 0
