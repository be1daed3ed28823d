"""Results of statistics and calculations: a record for each variable of each period (section 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from typing import Annotated, Any

import msgspec
import sqlalchemy as sa
from msgspec import Meta

from terrazzo.analysis.periods import FINISHED, PeriodType
from terrazzo.analysis.queries import Clause
from terrazzo.analysis.results import VARIABLES
from terrazzo.analysis.scripts import Script, ScriptKind
from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.fields import Key, Moment
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, page_offset, paged
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import Changed
from terrazzo.database.one_of import one_of
from terrazzo.database.port import Row
from terrazzo.database.tables.analysis import ANALYSIS_PROGRESS
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.record import record_of
from terrazzo.errors import BadParameter, NotFound
from terrazzo.loop_pauses import LoopPauses
from terrazzo.mosaic.body import text_of
from terrazzo.reasons import say
from terrazzo.times import format_iso

MOST_LATEST = 10_000  # records of one answer

ResultType = Annotated[
    int,
    Meta(
        ge=1,
        le=8,
        description="1 hour, 2 day, 3 month, 4 year; until now: 5 current day, 6 current month, 7 current year, 8 all",
    ),
]


class LastResult(msgspec.Struct, kw_only=True):
    """The latest period of a script: on one object, or on each."""

    script_uid: Key
    object_id: Key | None = None
    type: ResultType = 1


class ResultList(ListRequest):
    """Results of one script or of all; without ``type`` those of all finished periods.

    Of running periods (``type`` 5 to 8) conditions select by ``script_id``, ``script_uid`` and ``object_id``, and the
    order is that of scripts and objects.
    """

    script_uid: Key | None = None
    type: ResultType | None = None


class Recompute(msgspec.Struct, kw_only=True):
    """Which periods: those that are over and meet the range."""

    script_uid: Key
    object_id: Key | None = None
    start_time: Moment
    end_time: Moment


class RecomputeQuery(msgspec.Struct, kw_only=True):
    """Of which statistics script."""

    script_uid: Key


class RecomputeOfObject(msgspec.Struct):
    """What is still to be computed again on an object: ``ranges``, first to last, ``seconds`` altogether."""

    object_id: str
    start_time: str
    end_time: str
    ranges: int
    seconds: float


class RecomputeProgress(msgspec.Struct):
    """``objects``: on which periods are still to be computed again; empty: all of it is done."""

    objects: list[RecomputeOfObject]


class ResultRecord(msgspec.Struct):
    """One variable of one period. ``id`` 0: computed for this answer. ``data``: empty where there is no value."""

    id: int
    script_uid: str
    object_id: str
    description: str
    data: str
    var_name: str
    start_time: str
    end_time: str
    created: str
    is_available: int


class ResultData(msgspec.Struct):
    """The latest records: a variable each."""

    data: list[ResultRecord]


class ResultActions(msgspec.Struct, frozen=True):
    """The actions of one kind of results."""

    kind: ScriptKind
    title: str
    get_last: str  # the two actions
    get_list: str

    @property
    def table(self) -> sa.Table:
        """The table of the results, a row for each variable of each finished period."""
        return VARIABLES[self.kind]

    def operations(self) -> Iterable[Operation]:
        """The rows of its two actions."""
        yield Operation(
            name=self.get_last,
            summary=f"The latest results of a {self.title} script",
            request=LastResult,
            result=ResultData,
            permission=Role.VIEWER,
            handler=self.handle_get_last,
        )
        yield Operation(
            name=self.get_list,
            summary=f"A page of the results of {self.title} scripts, newest period first",
            request=ResultList,
            result=Paged[ResultRecord],
            permission=Role.VIEWER,
            handler=self.handle_get_list,
        )

    async def handle_get_last(self, services: Services, actor: Actor, request: LastResult) -> ResultData:
        """All variables of the latest period that has results, by object."""
        script = await find_script(services, actor, self.kind, request.script_uid)
        where = [ANALYSIS_PROGRESS.c.script_id == script["id"], ANALYSIS_PROGRESS.c.kind == self.kind.value]
        if request.object_id is not None:
            where.append(ANALYSIS_PROGRESS.c.object_id == await find_object(services, actor, request.object_id))
        jobs = await services.analysis.results.all(actor, ANALYSIS_PROGRESS, where=where, order=("object_id",))
        if len(jobs.rows) * len(script["script"]) > MOST_LATEST:
            raise BadParameter("object_id", say("required_for_many_results", most=MOST_LATEST))
        if request.type not in FINISHED:
            return ResultData(await self._running(services, jobs.rows, request.type))
        latest = [latest_period(self.table, request.type)]
        objects = [row["object_id"] for row in jobs.rows]
        mine = [*self._mine(script), self.table.c.type == request.type, one_of(self.table.c.object_id, objects)]
        found = await services.analysis.results.all(
            actor, self.table, where=[*mine, *latest], order=("object_id", "id")
        )
        return ResultData(await _records(services, found.rows))

    async def handle_get_list(self, services: Services, actor: Actor, request: ResultList) -> Paged[ResultRecord]:
        """Results of finished periods from the table, of running ones as they are now."""
        script = None
        if request.script_uid is not None:
            script = await find_script(services, actor, self.kind, request.script_uid)
        if request.type is not None and request.type not in FINISHED:
            return await self._running_list(services, actor, request, script)
        where = self._mine(script)
        if request.type is not None:
            where.append(self.table.c.type == request.type)
        rows = await services.analysis.results.page(
            actor,
            self.table,
            where=where,
            conditions=conditions_of(request),
            order_by=request.order_by.by,
            page_index=request.page_index,
            page_size=request.page_size,
        )
        return paged(request, await _records(services, rows.rows), rows.total)

    async def _running_list(
        self, services: Services, actor: Actor, request: ResultList, script: Row | None
    ) -> Paged[ResultRecord]:
        results = services.analysis.results
        where = [ANALYSIS_PROGRESS.c.kind == self.kind.value]
        where += results.clauses(actor, ANALYSIS_PROGRESS, conditions_of(request))
        if script is not None:
            where.append(ANALYSIS_PROGRESS.c.script_id == script["id"])
        jobs = await results.all(actor, ANALYSIS_PROGRESS, where=where, order=("script_id", "object_id"))
        sizes = [_size(services.analysis.script(self.kind, row["script_id"])) for row in jobs.rows]
        start, wanted, before = page_offset(request), [], 0
        for row, size in zip(jobs.rows, sizes, strict=True):
            if before < start + request.page_size and before + size > start:
                wanted.append((before, row))
            before += size
        skipped = start - wanted[0][0] if wanted else 0
        records = await self._running(services, [row for _, row in wanted], request.type or PeriodType.TOTAL)
        return paged(request, records[skipped : skipped + request.page_size], sum(sizes))

    async def _running(self, services: Services, jobs: Iterable[Row], kind: int) -> list[ResultRecord]:
        analysis, records = services.analysis, []
        for job in jobs:
            script = analysis.script(self.kind, job["script_id"])
            if script is None:
                continue
            found = await analysis.running.compute(script, job["object_id"], PeriodType(kind))
            period, values = found or analysis.running.nothing(script, PeriodType(kind))
            said = {
                "description": analysis.describe(PeriodType(kind), period.start_us),
                "start_time": period.start_us,
                "end_time": period.end_us,
                "created": analysis.now_us(),
            }
            said = {**job, **said, "id": 0, "is_available": 1}
            records += await _records(
                services, ({**said, "var_name": name, "data": text_of(value)} for name, value in values.items())
            )
        return records

    def _mine(self, script: Row | None) -> list[Clause]:
        return [] if script is None else [self.table.c.script_id == script["id"]]


def latest_period(table: sa.Table, kind: int) -> Clause:
    """The clause that leaves the latest period of each script and object."""
    other = table.alias("other")
    same = [other.c[name] == table.c[name] for name in ("script_id", "object_id")]
    newest = sa.select(sa.func.max(other.c.start_time)).where(*same, other.c.type == kind)
    return table.c.start_time == newest.scalar_subquery()


async def find_script(
    services: Services, actor: Actor, kind: ScriptKind, key: Any, *, field: str = "script_uid"
) -> Row:
    """A statistics or calculation script of the actor's company.

    Raises:
        NotFound: there is none; ``field`` is what names it.
    """
    entities = services.entities
    try:
        return await (entities.statistics if kind is ScriptKind.STATISTICS else entities.calculates).item(actor, key)
    except NotFound:
        raise NotFound(field, key) from None


async def handle_recompute_statistics(services: Services, actor: Actor, request: Recompute) -> Changed:
    """Notes what is to be computed again; the results follow within seconds."""
    start_us, end_us = request.start_time.time_us, request.end_time.time_us
    if start_us > end_us:
        raise BadParameter("start_time", say("is_after_end_time"))
    script = await find_script(services, actor, ScriptKind.STATISTICS, request.script_uid)
    objects = [int(key) for key in script["object_list"] or ()]
    if request.object_id is not None:
        wanted = await find_object(services, actor, request.object_id)
        if wanted not in objects:
            raise BadParameter("object_id", say("script_names_no_object", object=wanted))
        objects = [wanted]
    await services.analysis.recompute(actor, script["id"], objects, start_us, end_us)
    return Changed(script["uid"])


async def handle_get_recompute_progress(services: Services, actor: Actor, request: RecomputeQuery) -> RecomputeProgress:
    """What is still to be done of ``recompute_statistics``, and of records that came late."""
    script = await find_script(services, actor, ScriptKind.STATISTICS, request.script_uid)
    found = await services.analysis.remaining(ScriptKind.STATISTICS, script["id"])
    zone = services.zone
    return RecomputeProgress(
        [
            RecomputeOfObject(
                str(each.object_id),
                format_iso(each.start_us, zone),
                format_iso(each.end_us, zone),
                each.ranges,
                each.length_us / 1e6,
            )
            for each in found
        ]
    )


def _size(script: Script | None) -> int:
    if script is None:
        return 0
    return len(script.body.measures) if script.kind is ScriptKind.STATISTICS else len(script.body)


async def _records(services: Services, rows: Iterable[Mapping[str, Any]]) -> list[ResultRecord]:
    """Thousands of them would hold the loop: others have their turns in between."""
    records, pauses, iso = [], LoopPauses(), _IsoTimes(services.zone)
    for row in rows:
        records.append(_record(iso, row))
        await pauses.pause()
    return records


class _IsoTimes(dict[int, str]):
    """Times as they are told, each made once: the thousand results of a period have three among them."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone

    def __missing__(self, time_us: int) -> str:
        made = self[time_us] = format_iso(time_us, self._zone)
        return made


def _record(iso: _IsoTimes, row: Mapping[str, Any]) -> ResultRecord:
    times = {name: iso[row[name]] for name in ("start_time", "end_time", "created")}
    return record_of(ResultRecord, row, times, {"object_id": str(row["object_id"]), "data": row["data"] or ""})


OPERATIONS = (
    *ResultActions(
        ScriptKind.STATISTICS, "statistics", get_last="get_last_statistics", get_list="get_statistics_list"
    ).operations(),
    *ResultActions(
        ScriptKind.CALCULATE, "calculation", get_last="get_last_calculate", get_list="get_calculate_list"
    ).operations(),
    Operation(
        name="get_recompute_progress",
        summary="What a statistics script has still to compute again, by object",
        request=RecomputeQuery,
        result=RecomputeProgress,
        permission=Role.VIEWER,
        handler=handle_get_recompute_progress,
    ),
    Operation(
        name="recompute_statistics",
        summary="Computes finished periods of a statistics script again",
        request=Recompute,
        result=Changed,
        permission=Role.ADMIN,
        handler=handle_recompute_statistics,
    ),
)
