"""Rows of a table by key, in pieces of bounded size, checked for what the other database would not take."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import msgspec
import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.backup.migration.marker import Unmovable
from terrazzo.database.field import check_storable

Key = list[int | str]
"""The primary key of a row."""

_FIRST_ROWS, _MOST_ROWS = 16, 1_000
_PIECE_BYTES = 4 << 20
_SMALL, _BIG = 2**15, 2**63
_MODULUS = 2**256


async def pieces(
    connection: AsyncConnection, table: sa.Table, after: Key | None
) -> AsyncGenerator[list[dict[str, Any]], None]:
    """The rows with keys beyond ``after``, in their order; a piece has about 4 MB, or one row that is longer.

    Raises:
        Unmovable: a value is not of its column's type; names it.
    """
    limit = _FIRST_ROWS
    while True:
        found = (await connection.execute(_next(table, after, limit))).mappings().all()
        if not found:
            return
        rows = [dict(each) for each in found]
        size = sum(check_row(table, row) for row in rows)
        yield rows
        if len(rows) < limit:
            return
        after = key_of(table, rows[-1])
        limit = max(1, min(_MOST_ROWS, 2 * limit, len(rows) * _PIECE_BYTES // max(size, 1)))


def _next(table: sa.Table, after: Key | None, limit: int) -> sa.Select[Any]:
    key = list(table.primary_key.columns)
    query = sa.select(table).order_by(*key).limit(limit)
    if after is None:
        return query
    return query.where(key[0] > after[0] if len(key) == 1 else sa.tuple_(*key) > sa.tuple_(*after))


def key_of(table: sa.Table, row: dict[str, Any]) -> Key:
    """The primary key of a row."""
    return [row[column.name] for column in table.primary_key.columns]


def check_row(table: sa.Table, row: dict[str, Any]) -> int:
    """The size of a row, in bytes.

    Raises:
        Unmovable: a value is not of its column's type: SQLite keeps any, PostgreSQL does not.
    """
    size = 0
    for column in table.columns:
        try:
            size += _check(column, row[column.name])
        except ValueError as error:
            place = f"{table.name} {', '.join(map(str, key_of(table, row)))}: {column.name}"
            raise Unmovable(f"{place}: {error}; mend the record in the source, then start again") from None
    return size


def _check(column: sa.Column[Any], value: Any) -> int:
    kind = column.type
    if value is None:
        if not column.nullable:
            raise ValueError("is null")
        return 1
    if isinstance(kind, sa.LargeBinary):
        return len(_of_type(value, bytes, "bytes"))
    if isinstance(kind, sa.String):
        text = _of_type(value, str, "text")
        check_storable(text)
        if kind.length is not None and len(text) > kind.length:
            raise ValueError(f"at most {kind.length} characters, got {len(text)}")
        return len(text)
    limit = _SMALL if isinstance(kind, sa.SmallInteger) else _BIG
    if not -limit <= _of_type(value, int, "an integer") < limit:
        raise ValueError(f"expected {-limit}..{limit - 1}, got {value}")
    return 8


def _of_type(value: Any, kind: type, name: str) -> Any:
    if type(value) is not kind:
        raise ValueError(f"expected {name}, got {type(value).__name__}")
    return value


class Checksum:
    """Of a table, whatever the order of its rows: the sum of their SHA-256, each over all columns in their order."""

    def __init__(self, table: sa.Table) -> None:
        self._names = [column.name for column in table.columns]
        self._sum = 0
        self.rows = 0

    def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Adds some rows."""
        for row in rows:
            encoded = msgspec.msgpack.encode([row[name] for name in self._names])
            self._sum += int.from_bytes(hashlib.sha256(encoded).digest())
        self._sum %= _MODULUS
        self.rows += len(rows)

    def hex(self) -> str:
        """64 hexadecimal digits."""
        return f"{self._sum:064x}"
