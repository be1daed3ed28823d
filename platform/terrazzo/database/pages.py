"""Reads one page of records and the exact total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.conditions import Column, Selection
from terrazzo.database.one_of import one_of
from terrazzo.errors import BadParameter
from terrazzo.reasons import say

MAX_PAGE_SIZE = 1_000
OrderBy = tuple[str, bool] | None  # a column, and whether it falls

_SIZE, _SKIPPED = "page_size", "page_skipped"  # parameters of the statements
_FEW = 200  # records that fit: so many are looked for at once, and then their number is known, too


class Among(NamedTuple):
    """Another table that has the ids of what fits in their order, so that the list's own is not looked through.

    ``ids``: its column with them, each once; ``source``: what it is joined with; ``where``: all that has to hold.
    """

    ids: Column
    source: sa.FromClause
    where: Sequence[Column]

    def select(self, *columns: Column) -> sa.Select[Any]:
        """Something of what fits."""
        return sa.select(*columns).select_from(self.source).where(*self.where)


def check_page(page_index: int, page_size: int) -> None:
    """Refuses a page that there can't be.

    Raises:
        BadParameter: it says which of the two is wrong.
    """
    if page_index < 1:
        raise BadParameter("page_index", say("expected_1_or_more", got=page_index))
    if not 1 <= page_size <= MAX_PAGE_SIZE:
        raise BadParameter("page_size", say("expected_1_to_got", most=MAX_PAGE_SIZE, got=page_size))


class PageStatements:
    """What reads the pages of one list: they differ by parameters, so that whoever asks for many keeps it.

    Ids come from an index alone, however far back the page is; a page in the second half is counted from the end.

    Args:
        where: all have to hold; what they compare with may be parameters, which ``read_page`` is given.
        may_be_few: whether few records may fit, so that most have to be looked at for a page.
        among: where another table says sooner which they are; it goes for their number, and for their order by id.

    Raises:
        BadParameter: an order that makes no sense.
    """

    def __init__(
        self,
        rows: sa.Select[Any],
        selection: Selection,
        where: Sequence[Column],
        order_by: OrderBy,
        *,
        may_be_few: bool = False,
        among: Among | None = None,
    ) -> None:
        self.may_be_few = may_be_few
        self._among = among
        self._rows = rows
        self._selection = selection
        self._where = where
        self._order_by = order_by
        self._order = selection.order(order_by)

    @cached_property
    def forwards(self) -> sa.Select[Any]:
        """The rows of a page, counted from the first record."""
        return self._read(is_reversed=False)

    @cached_property
    def backwards(self) -> sa.Select[Any]:
        """The rows of a page, in the same order, counted from the last record."""
        return self._read(is_reversed=True)

    @cached_property
    def count(self) -> sa.Select[Any]:
        """How many records there are."""
        if self._among is not None:
            return self._among.select(sa.func.count())
        return sa.select(sa.func.count()).select_from(self._selection.table).where(*self._where)

    @cached_property
    def first_ids(self) -> sa.Select[Any]:
        """The ids of the first records, in their order."""
        return self._ids(is_reversed=False).limit(sa.bindparam(_SIZE, type_=sa.BigInteger))

    def of_ids(self, ids: Sequence[int]) -> sa.Select[Any]:
        """The rows of some ids, in their order."""
        return self._rows.where(one_of(self._selection.ids, ids)).order_by(*self._order)

    def _read(self, *, is_reversed: bool) -> sa.Select[Any]:
        size, skipped = sa.bindparam(_SIZE, type_=sa.BigInteger), sa.bindparam(_SKIPPED, type_=sa.BigInteger)
        page = self._ids(is_reversed=is_reversed).limit(size).offset(skipped)
        return self._rows.where(self._selection.ids.in_(page)).order_by(*self._order)

    def _ids(self, *, is_reversed: bool) -> sa.Select[Any]:
        name, descending = self._order_by or ("id", False)
        falls = descending != is_reversed
        if self._among is not None and name == "id":
            ids = self._among.ids
            return self._among.select(ids).order_by(ids.desc() if falls else ids.asc())
        return sa.select(self._selection.ids).where(*self._where).order_by(*self._selection.order((name, falls)))


async def read_page(
    connection: AsyncConnection,
    statements: PageStatements,
    *,
    offset: int,
    limit: int,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Sequence[sa.Row[Any]], int]:
    """The rows of a page in their order, and the exact total.

    Where few records fit, looking for them is what takes time, and they are looked for once; where more do, the first
    ones are known then.
    """
    given = parameters or {}
    if statements.may_be_few and offset + limit <= _FEW:
        ids = (await connection.execute(statements.first_ids, {_SIZE: _FEW + 1, **given})).scalars().all()
        page = ids[offset : offset + limit]
        found = (await connection.execute(statements.of_ids(page))).all() if page else ()
        all_of_them = len(ids) <= _FEW
        return found, len(ids) if all_of_them else (await connection.execute(statements.count, given)).scalar_one()
    first: Sequence[sa.Row[Any]] = ()
    if not offset:
        first = (await connection.execute(statements.forwards, {_SIZE: limit, _SKIPPED: 0, **given})).all()
        if len(first) < limit:
            return first, len(first)
    total: int = (await connection.execute(statements.count, given)).scalar_one()
    size = min(limit, total - offset)
    if not offset or size <= 0:
        return first, total
    behind = total - offset - size
    statement, skipped = (statements.forwards, offset) if offset <= behind else (statements.backwards, behind)
    return (await connection.execute(statement, {_SIZE: size, _SKIPPED: skipped, **given})).all(), total
