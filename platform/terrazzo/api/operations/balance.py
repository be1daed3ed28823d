"""Results of balance scripts (section 1 "Balance result record")."""

from __future__ import annotations

import msgspec
import sqlalchemy as sa

from terrazzo.analysis.queries import Clause
from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.services import Services
from terrazzo.database.port import Row
from terrazzo.database.tables.analysis import BALANCE_RESULT
from terrazzo.domain.actor import Actor, Role
from terrazzo.times import format_iso


class BalanceValue(msgspec.Struct):
    """``parameters``: JSON text of ``intercept``, ``coefficients`` by code, ``points``, and ``reason`` where any lacks.

    ``correlation``: r, empty where there is none. ``time``: the end of the window.
    """

    correlation: str
    parameters: str
    time: str


class BalanceResultRecord(msgspec.Struct):
    """One window, which begins at ``block_id``. ``project_id`` and ``class_id`` are the script's id and uid."""

    id: str
    project_id: str
    class_id: str
    block_id: str
    object_id: str
    mapping_id: str | None
    created: str
    value: BalanceValue


class BalanceResultList(ListRequest):
    """Conditions and the order name the record's fields, those of ``value``, ``start_time`` or ``end_time``."""


async def handle_get_balance_result_list(
    services: Services, actor: Actor, request: BalanceResultList
) -> Paged[BalanceResultRecord]:
    """A page of all windows, newest first unless ordered otherwise."""
    return await _page(services, actor, request)


async def handle_get_last_balance_result(
    services: Services, actor: Actor, request: BalanceResultList
) -> Paged[BalanceResultRecord]:
    """A page of the latest windows, one of each script and object."""
    other = BALANCE_RESULT.alias("other")
    same = [other.c[name] == BALANCE_RESULT.c[name] for name in ("project_id", "object_id")]
    newest = sa.select(sa.func.max(other.c.start_time)).where(*same)
    return await _page(services, actor, request, BALANCE_RESULT.c.start_time == newest.scalar_subquery())


async def _page(
    services: Services, actor: Actor, request: BalanceResultList, *where: Clause
) -> Paged[BalanceResultRecord]:
    rows = await services.analysis.results.page(
        actor,
        BALANCE_RESULT,
        where=where,
        conditions=conditions_of(request),
        order_by=request.order_by.by,
        page_index=request.page_index,
        page_size=request.page_size,
    )
    return paged(request, [_record(services, row) for row in rows.rows], rows.total)


def _record(services: Services, row: Row) -> BalanceResultRecord:
    zone = services.zone
    return BalanceResultRecord(
        id=str(row["id"]),
        project_id=str(row["project_id"]),
        class_id=row["class_id"],
        block_id=row["block_id"],
        object_id=str(row["object_id"]),
        mapping_id=row["mapping_id"],
        created=format_iso(row["created"], zone),
        value=BalanceValue(row["correlation"], row["parameters"], format_iso(row["end_time"], zone)),
    )


OPERATIONS = (
    Operation(
        name="get_balance_result_list",
        summary="A page of the results of balance scripts, newest window first",
        request=BalanceResultList,
        result=Paged[BalanceResultRecord],
        permission=Role.VIEWER,
        handler=handle_get_balance_result_list,
    ),
    Operation(
        name="get_last_balance_result",
        summary="The latest result of each balance script on each object",
        request=BalanceResultList,
        result=Paged[BalanceResultRecord],
        permission=Role.VIEWER,
        handler=handle_get_last_balance_result,
    ),
)
