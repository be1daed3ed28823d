"""The statistics-record component: a record for each period with all variables of the script (section 2)."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.analysis.periods import FINISHED, PeriodType
from terrazzo.analysis.results import encode_variables
from terrazzo.analysis.scripts import ScriptKind
from terrazzo.api.kernel.conditions import Comparisons, Order
from terrazzo.api.kernel.fields import Key, Moment
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, PageRequest, page_offset, paged
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.statistics import ResultType, find_script, latest_period
from terrazzo.database.port import Conditions, Row
from terrazzo.database.tables.analysis import ANALYSIS_PROGRESS
from terrazzo.database.tables.analysis import STATISTICS_PERIOD as PERIOD
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter, NotFound
from terrazzo.reasons import say
from terrazzo.times import format_spaced

Joint = Annotated[str, Meta(pattern="(?i)^(and|or)$", description="AND or OR: what connects where_and and where_or")]

_COLUMNS = {"id": "start_time", "time": "start_time", "start": "start_time", "end": "end_time", "flag": "type"}


class PeriodList(PageRequest):
    """Periods of one type; conditions name the record's fields.

    Of running periods (``type`` 5 to 8) they select by ``project_id`` and ``object_id``.
    """

    where_and: Comparisons = msgspec.field(default_factory=Comparisons)
    where_or: Comparisons = msgspec.field(default_factory=Comparisons)
    type: ResultType = 1
    joint: Joint = "AND"
    order_by: Order = msgspec.field(default_factory=Order)


class PeriodItem(msgspec.Struct, kw_only=True):
    """The period of a script with exactly this beginning and end."""

    start: Moment
    end: Moment
    project_id: Key
    object_id: Key


class LastPeriod(msgspec.Struct, kw_only=True):
    """The latest period of a script on an object."""

    project_id: Key
    object_id: Key
    type: ResultType = 1


class PeriodRecord(msgspec.Struct):
    """One period. ``id``: its beginning; ``data``: JSON text, ``[{var_name, value}, ...]``; ``flag``: its type."""

    id: str
    created: str
    object_id: str
    project_id: str
    data: str
    start: str
    end: str
    flag: int


async def handle_get_period_list(services: Services, actor: Actor, request: PeriodList) -> Paged[PeriodRecord]:
    """Finished periods from the table, newest first; running ones as they are now, by script and object."""
    conditions, either = _conditions(request), request.joint.upper() == "OR"
    if request.type not in FINISHED:
        return await _running_list(services, actor, request, conditions, either=either)
    name, descending = request.order_by.by or ("time", True)
    if name.lower() != "time":
        raise BadParameter("order_by", say("only_time", got=name[:60]))
    rows = await services.analysis.results.page(
        actor,
        PERIOD,
        where=[PERIOD.c.type == request.type],
        conditions=conditions,
        either=either,
        order_by=("start_time", descending),
        page_index=request.page_index,
        page_size=request.page_size,
    )
    return paged(request, [_record(services, row) for row in rows.rows], rows.total)


async def handle_get_period_item(services: Services, actor: Actor, request: PeriodItem) -> PeriodRecord:
    """One finished period.

    Raises:
        NotFound: the script has no result of exactly this period on the object.
    """
    where = [
        *await _named(services, actor, request),
        PERIOD.c.start_time == request.start.time_us,
        PERIOD.c.end_time == request.end.time_us,
    ]
    found = await services.analysis.results.all(actor, PERIOD, where=where, order=("id",))
    if not found.rows:
        raise NotFound("start", format_spaced(request.start.time_us, services.zone))
    return _record(services, found.rows[0])


async def handle_get_last_period(services: Services, actor: Actor, request: LastPeriod) -> PeriodRecord:
    """The latest finished period of a type, or the running one."""
    named = await _named(services, actor, request)
    if request.type in FINISHED:
        where = [*named, PERIOD.c.type == request.type, latest_period(PERIOD, request.type)]
        found = await services.analysis.results.all(actor, PERIOD, where=where, order=("id",))
        records = [_record(services, row) for row in found.rows]
    else:
        script = await find_script(services, actor, ScriptKind.STATISTICS, request.project_id, field="project_id")
        number = await find_object(services, actor, request.object_id)
        record = await _running(services, script["id"], number, request.type)
        records = [] if record is None else [record]
    if not records:
        raise NotFound("type", request.type)
    return records[0]


async def _named(services: Services, actor: Actor, request: PeriodItem | LastPeriod) -> list[Any]:
    script = await find_script(services, actor, ScriptKind.STATISTICS, request.project_id, field="project_id")
    number = await find_object(services, actor, request.object_id)
    return [PERIOD.c.script_id == script["id"], PERIOD.c.object_id == number]


def _conditions(request: PeriodList) -> Conditions:
    all_of = [_column(*each) for each in request.where_and.conditions]
    return Conditions(all_of, [_column(*each) for each in request.where_or.conditions])


def _column(name: str, operator: str, value: Any) -> tuple[str, str, Any]:
    """The column behind a field of the record; a project is named by its id or its uid."""
    if name == "project_id":
        return ("script_uid" if _is_uid(value) else "script_id"), operator, value
    return _COLUMNS.get(name, name), operator, value


def _is_uid(value: Any) -> bool:
    return isinstance(value, str) and not value.replace(",", "").replace(" ", "").isdecimal()


async def _running_list(
    services: Services, actor: Actor, request: PeriodList, conditions: Conditions, *, either: bool
) -> Paged[PeriodRecord]:
    results = services.analysis.results
    where = [ANALYSIS_PROGRESS.c.kind == ScriptKind.STATISTICS.value]
    where += results.clauses(actor, ANALYSIS_PROGRESS, conditions, either=either)
    jobs = await results.all(actor, ANALYSIS_PROGRESS, where=where, order=("script_id", "object_id"))
    start = page_offset(request)
    records = [
        await _running(services, job["script_id"], job["object_id"], request.type)
        for job in jobs.rows[start : start + request.page_size]
    ]
    return paged(request, [record for record in records if record is not None], jobs.total)


async def _running(services: Services, script_id: int, object_id: int, kind: int) -> PeriodRecord | None:
    script = services.analysis.script(ScriptKind.STATISTICS, script_id)
    found = script and await services.analysis.running.compute(script, object_id, PeriodType(kind))
    if not found:
        return None
    row = {
        "script_id": script_id,
        "object_id": object_id,
        "type": kind,
        "start_time": found.period.start_us,
        "end_time": found.period.end_us,
        "created": services.analysis.now_us(),
        "data": encode_variables(found.values),
    }
    return _record(services, row)


def _record(services: Services, row: Row) -> PeriodRecord:
    start = format_spaced(row["start_time"], services.zone)
    return PeriodRecord(
        id=start,
        created=format_spaced(row["created"], services.zone),
        object_id=str(row["object_id"]),
        project_id=str(row["script_id"]),
        data=row["data"],
        start=start,
        end=format_spaced(row["end_time"], services.zone),
        flag=row["type"],
    )


_LIST = Operation(
    name="statos_list",
    summary="Statistics by period, newest first",
    request=PeriodList,
    result=Paged[PeriodRecord],
    permission=Role.VIEWER,
    handler=handle_get_period_list,
    method="GET",
    path="/stats/api/v1/statos/getList",
)

PATHS = (
    _LIST,
    replace(_LIST, method="POST"),
    Operation(
        name="statos_item",
        summary="The statistics of one period",
        request=PeriodItem,
        result=PeriodRecord,
        permission=Role.VIEWER,
        handler=handle_get_period_item,
        method="GET",
        path="/stats/api/v1/statos/getItem",
    ),
    Operation(
        name="statos_last_item",
        summary="The statistics of the latest period",
        request=LastPeriod,
        result=PeriodRecord,
        permission=Role.VIEWER,
        handler=handle_get_last_period,
        method="GET",
        path="/stats/api/v1/statos/getLastItem",
    ),
)
