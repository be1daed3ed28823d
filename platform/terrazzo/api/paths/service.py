"""Service records, and how many there were each day (section 2 "Service" and "Statistics counts")."""

from __future__ import annotations

from terrazzo.api.kernel.conditions import conditions_of
from terrazzo.api.kernel.day_counts import ByDay, DayFilter, by_day, days_asked
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.paths.component_columns import ComponentColumns
from terrazzo.api.paths.entity_paths import EntityPaths
from terrazzo.domain.actor import Actor, Role
from terrazzo.metadata.definitions.components import SERVICE

CATEGORIES = ("其他", "定期保养", "报警处理", "故障排除", "日常巡检", "设备维修")
OTHER = CATEGORIES[0]
"""Other, regular maintenance, alarm handling, troubleshooting, daily inspection, equipment repair."""

SERVICES = EntityPaths(
    title="service record",
    name="service",
    add="/service/api/v1/service/add",
    edit="/service/api/v1/service/edit",
    delete="/service/api/v1/service/delete",
    get_item="/service/api/v1/service/getItem",
    get_list="/service/api/v1/service/getList",
    columns=ComponentColumns(entity=SERVICE, hidden=("last_modified",)),
    repository=lambda services: services.entities.services,
    writers=Role.OPERATOR,
)


async def handle_types_by_day(services: Services, actor: Actor, request: DayFilter) -> ByDay[dict[str, int]]:
    """Service records by day and category; other categories count as ``其他``."""
    days = days_asked(services, request)
    tally = await services.entities.services.tally(actor, days, conditions_of(request), by="category")
    counts = [dict.fromkeys(CATEGORIES, 0) for _ in days.names]
    for (day, category), count in tally.items():
        counts[day][category if category in CATEGORIES else OTHER] += count
    return by_day(days, counts)


PATHS = (
    *SERVICES.paths(),
    Operation(
        name="statistics/serviceTypeQuantityByDay",
        summary="How many service records of each category were made each day",
        request=DayFilter,
        result=ByDay[dict[str, int]],
        permission=Role.VIEWER,
        handler=handle_types_by_day,
        method="GET",
        path="/service/api/v1/statistics/serviceTypeQuantityByDay",
    ),
)
