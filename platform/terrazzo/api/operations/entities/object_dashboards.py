"""Which dashboards are on an object, by category."""

from __future__ import annotations

import msgspec

from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.scope import find_object
from terrazzo.api.kernel.services import Services
from terrazzo.database.port import Conditions
from terrazzo.domain.actor import Actor, Role

MOST = 100


class DashboardsOfObject(msgspec.Struct, kw_only=True):
    """The object."""

    object_id: Key


class ObjectDashboard(msgspec.Struct):
    """A dashboard on an object: ``dashboard_id`` is its uid, ``category`` the one that it has there."""

    dashboard_id: str
    name: str
    category: str


async def handle_get_object_dashboard_list(
    services: Services, actor: Actor, request: DashboardsOfObject
) -> list[ObjectDashboard]:
    """The dashboards on an object, at most 100: the newest first, which counts where a category has several.

    Raises:
        NotFound: no such object of the actor's.
    """
    object_id = await find_object(services, actor, request.object_id)
    mine = Conditions([("object_id", "=", object_id)])
    links = (
        await services.entities.object_dashboards.page(actor, page_size=MOST, conditions=mine, order_by=("id", True))
    ).rows
    if not links:
        return []
    named = Conditions(within=[("id", [link["dashboard_id"] for link in links])])
    found = (await services.entities.dashboards.page(actor, page_size=MOST, conditions=named)).rows
    by_id = {row["id"]: row for row in found}
    return [
        ObjectDashboard(row["uid"], row["name"], link["category"])
        for link in links
        if (row := by_id.get(link["dashboard_id"])) is not None
    ]


OPERATIONS = (
    Operation(
        name="get_object_dashboard_list",
        summary="The dashboards on an object, by category",
        request=DashboardsOfObject,
        result=list[ObjectDashboard],
        permission=Role.VIEWER,
        handler=handle_get_object_dashboard_list,
    ),
)
