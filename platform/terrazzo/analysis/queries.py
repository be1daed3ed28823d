"""Pages of results, for whoever may see them: conditions checked, values bound."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import tzinfo

import sqlalchemy as sa

from terrazzo.database.conditions import Selection
from terrazzo.database.database import Database
from terrazzo.database.entity import past
from terrazzo.database.field import Field, moment, number, text
from terrazzo.database.port import EVERYTHING, Conditions, Row, Rows
from terrazzo.database.tables.analysis import (
    ANALYSIS_PROGRESS,
    BALANCE_RESULT,
    CALCULATE_RESULT,
    STATISTICS_PERIOD,
    STATISTICS_RESULT,
)
from terrazzo.domain.actor import Actor

Clause = sa.ColumnElement[bool]

_WHOSE = (number("script_id"), text("script_uid", 64), number("object_id"))
_WHEN = (number("type"), moment("start_time"), moment("end_time"), moment("created"))
_VARIABLE = (
    *_WHOSE,
    *_WHEN,
    *(text("var_name", 0), text("data", 0), text("description", 64), number("is_available")),
)
_FIELDS: dict[sa.Table, tuple[Field, ...]] = {
    STATISTICS_RESULT: _VARIABLE,
    CALCULATE_RESULT: _VARIABLE,
    STATISTICS_PERIOD: (*_WHOSE, *_WHEN, text("data", 0)),
    ANALYSIS_PROGRESS: _WHOSE,
    BALANCE_RESULT: (
        number("project_id"),
        *(text("class_id", 64), text("block_id", 64), number("object_id"), text("mapping_id", 64)),
        *(text("parameters", 0), text("correlation", 32), number("is_available")),
        *_WHEN[1:],
    ),
}


class ResultQueries:
    """Reads the tables of results. Conditions name their columns.

    Args:
        zone: of times without an offset.
    """

    def __init__(self, database: Database, zone: tzinfo) -> None:
        self._database = database
        self._selections = {
            table: Selection(past(table, fields, moment="created"), {}, zone) for table, fields in _FIELDS.items()
        }

    async def page(
        self,
        actor: Actor,
        table: sa.Table,
        *,
        where: Sequence[Clause] = (),
        conditions: Conditions = EVERYTHING,
        either: bool = False,
        order_by: tuple[str, bool] | None = None,
        page_index: int = 1,
        page_size: int = 20,
    ) -> Rows:
        """One page of the actor's company, newest period first unless ``order_by`` (column, descending) says otherwise.

        Args:
            either: one of ``all_of`` together and ``any_of`` is enough (``joint`` = ``OR``).

        Raises:
            BadParameter: an unknown column, or a value that doesn't suit it.
        """
        clauses = [*where, *self.clauses(actor, table, conditions, either=either)]
        order = self._selections[table].order(order_by or ("start_time", True))
        count = sa.select(sa.func.count()).select_from(table).where(*clauses)
        query = sa.select(table).where(*clauses).order_by(*order).limit(page_size)
        async with self._database.reading() as connection:
            total = (await connection.execute(count)).scalar_one()
            offset = (page_index - 1) * page_size
            found = (await connection.execute(query.offset(offset))).mappings().all() if offset < total else []
        return Rows([dict(row) for row in found], total)

    async def all(self, actor: Actor, table: sa.Table, *, where: Sequence[Clause], order: Sequence[str]) -> Rows:
        """All rows of the actor's company that meet the clauses, ordered by the given columns."""
        clauses = [*where, *self.clauses(actor, table, EVERYTHING)]
        query = sa.select(table).where(*clauses).order_by(*(table.c[name] for name in order))
        async with self._database.reading() as connection:
            found: list[Row] = [dict(row) for row in (await connection.execute(query)).mappings()]
        return Rows(found, len(found))

    def clauses(self, actor: Actor, table: sa.Table, conditions: Conditions, *, either: bool = False) -> list[Clause]:
        """SQL clauses for the conditions and for the actor's company. Raises what ``page`` raises."""
        selection = self._selections[table]
        if either and conditions.all_of and conditions.any_of:
            all_of = sa.and_(*selection.where(Conditions(conditions.all_of)))
            any_of = selection.where(Conditions((), conditions.any_of))
            found = [sa.or_(all_of, *any_of), *selection.where(Conditions(within=conditions.within))]
        else:
            found = selection.where(conditions)
        return found if actor.is_super else [*found, table.c.company_id == actor.company_id]
