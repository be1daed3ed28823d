"""``NameColumn``: the names of all records of a long table, so that a part of a name is not looked for in each row.

SQLite has no index of the middle of a name: a list by ``like`` reads all names from one of its indexes, and each row
where several columns are searched at once. Here they lie
in memory, some thousand of them as one text, and say which records *may* fit; the database then looks at these alone,
by the same condition, and has the last word. What was renamed or deleted may thus still stand here, but nothing that
is in the database may be missing: a list that could be ahead of what is here is read from the database as ever.
"""

from __future__ import annotations

import asyncio
from array import array
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate, product
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.changes import newest_change
from terrazzo.database.database import Database
from terrazzo.database.port import Conditions, Row
from terrazzo.database.tables.registry import CHANGE
from terrazzo.metadata.repositories.whole_table import columns_of

MOST = 500  # records that may fit; among more than that the first page of a list is found soon, too
CHANGED = 2_000  # records that were made or renamed; with more of them all are read again
_AT_ONCE = 5_000  # names of a piece
_MOST_PARTS = 4  # that are looked for, each in all names: a person searches several columns for one
_END = b"\0"  # of a name: no text in the database has it

_NEWER = sa.select(
    sa.func.max(CHANGE.c.id),
    sa.func.max(
        sa.case(
            (sa.and_(CHANGE.c.origin != sa.bindparam("own"), CHANGE.c.entity == sa.bindparam("entity")), 1), else_=0
        )
    ),
).where(CHANGE.c.id > sa.bindparam("seen"))


def parts_of_names(conditions: Conditions, columns: Collection[str]) -> list[bytes]:
    """Texts of which a record has to have one in its names (``columns``) for these conditions, as names are kept here;
    none: they ask for no part of a name, or other records fit, too."""
    patterns = [found for each in conditions.all_of if (found := _pattern(each, columns)) is not None]
    if part := max(map(_longest_part, patterns), key=len, default=b""):
        return [part]
    parts = {_longest_part(_pattern(each, columns) or "") for each in conditions.any_of}
    return [] if b"" in parts or len(parts) > _MOST_PARTS else sorted(parts)


def _pattern(condition: tuple[str, str, Any], columns: Collection[str]) -> str | None:
    """What a name has to be like; None: the condition is another one."""
    name, operator, value = condition
    is_like = name in columns and operator.strip().lower() == "like" and isinstance(value, str)
    return value if is_like else None


def _longest_part(pattern: str) -> bytes:
    return _plain(max(pattern.replace("_", "%").split("%"), key=len))


def _plain(text: str) -> bytes:
    """A text as ``LIKE`` compares it: the case of A to Z doesn't matter, that of other letters does."""
    return text.encode(errors="surrogatepass").lower()


def _joined(names: Sequence[str | None]) -> str:
    return _END.decode().join(name or "" for name in names)


class _Piece:
    """Some records, their names one after the other; where a record has several, they are one text with ends within."""

    __slots__ = ("_ends", "_ids", "_text")

    def __init__(self, ids: Sequence[int], names: Sequence[str]) -> None:
        plain = [_plain(name) for name in names]
        self._ids = array("q", ids)
        self._text = _END.join(plain) + _END
        self._ends = array("I", accumulate(len(name) + len(_END) for name in plain))

    def found(self, part: bytes) -> Iterator[int]:
        """The ids of records with this part in their names, each once."""
        text, ends, at = self._text, self._ends, 0
        while (at := text.find(part, at)) >= 0:
            place = bisect_right(ends, at)
            yield self._ids[place]
            at = ends[place]


class NameColumn:
    """The names of one kind of record: read when they are asked for first, and added to by changes from then on.

    Args:
        columns: those that have names; a part that is in any of them counts, since the database has the last word.
        is_changing: whether a change of these records is under way, or has not been told yet.
    """

    def __init__(
        self, database: Database, table: sa.Table, columns: Sequence[str], is_changing: Callable[[], bool]
    ) -> None:
        self._database = database
        self._table = table
        self._columns = columns
        self._is_changing = is_changing
        self._turn = asyncio.Lock()
        self._pieces: list[_Piece] | None = None  # None: they have not been read
        self._changed: dict[int, bytes] | None = None  # of records made or renamed since; None: nobody reads them
        self._seen = 0  # the number of the newest change, of whatever, that is known to be here

    async def read_for(self, conditions: Conditions) -> None:
        """Reads all names, 0.15 s of the processor for 100,000, where they are asked for and not here."""
        if self._pieces is not None or not parts_of_names(conditions, self._columns):
            return
        async with self._turn:
            if self._pieces is None:
                try:
                    self._pieces = await self._read()
                finally:
                    if self._pieces is None:
                        self._changed = None

    async def _read(self) -> list[_Piece]:
        self._changed = {}
        self._seen = await newest_change(self._database)
        columns = columns_of(self._database, self._table, ["id", *self._columns], at_once=_AT_ONCE)
        return [_Piece(ids, [_joined(each) for each in zip(*names, strict=True)]) async for ids, *names in columns]

    def note(self, record_id: int, row: Row | None) -> None:
        """A record was made, changed or (None) deleted."""
        if self._changed is None:
            return
        if row is not None:
            self._changed[record_id] = _plain(_joined([row[name] for name in self._columns]))
        if self._pieces is not None and len(self._changed) > CHANGED:
            self._forget()

    def _forget(self) -> None:
        """Has all read again when they are asked for next."""
        self._pieces = self._changed = None

    async def may_fit(self, connection: AsyncConnection, conditions: Conditions) -> list[int] | None:
        """The ids of all records that may have a name as these conditions say; None where they can't be told from here.

        ``connection``: a reading transaction that has read nothing yet: what it sees from now on is no newer than what
        is here.
        """
        parts = [] if self._pieces is None else parts_of_names(conditions, self._columns)
        if not parts or not await self._is_newest(connection) or self._pieces is None or self._changed is None:
            return None
        found = {record_id: None for record_id, name in self._changed.items() if any(part in name for part in parts)}
        for piece, part in product(self._pieces, parts):
            for record_id in piece.found(part):
                found[record_id] = None
                if len(found) > MOST:
                    return None
        return list(found)

    async def _is_newest(self, connection: AsyncConnection) -> bool:
        """Whether nothing that the transaction sees is missing here: no change of another process, and none of this
        one that is under way or was interrupted before it was told."""
        own = self._database.own
        asked = {"own": own.origin, "entity": self._table.name, "seen": self._seen}
        newest, by_others = (await connection.execute(_NEWER, asked)).one()
        if by_others or own.are_missed:
            self._forget()
            return False
        if self._is_changing():
            return False
        self._seen = max(self._seen, newest or 0)
        return True
