"""Reads one page of records and the exact total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.ext.asyncio import AsyncConnection

from terrazzo.database.conditions import Column, Selection

OrderBy = tuple[str, bool] | None  # a column, and whether it falls


async def read_page(
    connection: AsyncConnection,
    rows: sa.Select[Any],
    selection: Selection,
    where: Sequence[Column],
    order_by: OrderBy,
    *,
    offset: int,
    limit: int,
) -> tuple[list[sa.Row[Any]], int]:
    """The rows of a page in their order, and the exact total.

    Ids come from an index alone, however far back the page is; a page in the second half is counted from the end.
    """
    ids = sa.select(selection.ids).where(*where)

    async def read(order: OrderBy, size: int, skipped: int) -> list[sa.Row[Any]]:
        page = ids.order_by(*selection.order(order)).limit(size).offset(skipped)
        query = rows.where(selection.ids.in_(page)).order_by(*selection.order(order_by))
        return list(await connection.execute(query))

    first = [] if offset else await read(order_by, limit, 0)
    if not offset and len(first) < limit:
        return first, len(first)
    count = sa.select(sa.func.count()).select_from(selection.table).where(*where)
    total: int = (await connection.execute(count)).scalar_one()
    size = min(limit, total - offset)
    behind = total - offset - size
    if not offset or size <= 0:
        return first, total
    if offset <= behind:
        return await read(order_by, size, offset), total
    name, descending = order_by or ("id", False)
    return await read((name, not descending), size, behind), total
