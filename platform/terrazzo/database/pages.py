"""Reads one page of records and the exact total."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.database.conditions import Column, Selection
from terrazzo.database.one_of import one_of

OrderBy = tuple[str, bool] | None  # a column, and whether it falls

_SIZE, _SKIPPED = "page_size", "page_skipped"  # parameters of the statements
_FEW = 200  # records that fit: so many are looked for at once, and then their number is known, too


class PageStatements:
    """What reads the pages of one list: they differ by parameters, so that whoever asks for many keeps it.

    Ids come from an index alone, however far back the page is; a page in the second half is counted from the end.

    Args:
        where: all have to hold; what they compare with may be parameters, which ``read_page`` is given.
        may_be_few: whether few records may fit, so that most have to be looked at for a page.
        count: how many there are, where another table says so at once.

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
        count: sa.Select[Any] | None = None,
    ) -> None:
        self.may_be_few = may_be_few
        self._count = count
        self._rows = rows
        self._selection = selection
        self._where = where
        self._order_by = order_by
        self._order = selection.order(order_by)

    @cached_property
    def forwards(self) -> sa.Select[Any]:
        """The rows of a page, counted from the first record."""
        return self._read(self._order)

    @cached_property
    def backwards(self) -> sa.Select[Any]:
        """The rows of a page, in the same order, counted from the last record."""
        name, descending = self._order_by or ("id", False)
        return self._read(self._selection.order((name, not descending)))

    @cached_property
    def count(self) -> sa.Select[Any]:
        """How many records there are."""
        if self._count is not None:
            return self._count
        return sa.select(sa.func.count()).select_from(self._selection.table).where(*self._where)

    @cached_property
    def first_ids(self) -> sa.Select[Any]:
        """The ids of the first records, in their order."""
        size = sa.bindparam(_SIZE, type_=sa.BigInteger)
        return sa.select(self._selection.ids).where(*self._where).order_by(*self._order).limit(size)

    def of_ids(self, ids: Sequence[int]) -> sa.Select[Any]:
        """The rows of some ids, in their order."""
        return self._rows.where(one_of(self._selection.ids, ids)).order_by(*self._order)

    def _read(self, order: Sequence[Column]) -> sa.Select[Any]:
        ids = self._selection.ids
        size, skipped = sa.bindparam(_SIZE, type_=sa.BigInteger), sa.bindparam(_SKIPPED, type_=sa.BigInteger)
        page = sa.select(ids).where(*self._where).order_by(*order).limit(size).offset(skipped)
        return self._rows.where(ids.in_(page)).order_by(*self._order)


async def read_page(
    connection: AsyncConnection,
    statements: PageStatements,
    *,
    offset: int,
    limit: int,
    parameters: Mapping[str, Any] | None = None,
) -> tuple[Sequence[sa.Row[Any]], int]:
    """The rows of a page in their order, and the exact total.

    Where few records fit, looking for them is what takes time, and they are looked for once.
    """
    given = parameters or {}
    if statements.may_be_few and offset + limit <= _FEW:
        ids = (await connection.execute(statements.first_ids, {_SIZE: _FEW + 1, **given})).scalars().all()
        if len(ids) <= _FEW:
            page = ids[offset : offset + limit]
            found = (await connection.execute(statements.of_ids(page))).all() if page else ()
            return found, len(ids)
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
