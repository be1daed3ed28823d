"""Dashboards on objects: ``object/addDashboard``, ``deleteDashboard``, ``getDashboardByCategory``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.envelope import Empty
from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.paths.entity_paths import EntityPaths
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import Actor
from terrazzo.errors import Conflict, NotFound
from terrazzo.reasons import say

Category = Annotated[str, Meta(min_length=1, max_length=16)]


class OnObject(msgspec.Struct, kw_only=True):
    """A dashboard and an object."""

    dashboard_id: Key
    object_id: Key


class AddObjectDashboard(OnObject):
    """The dashboard becomes the object's of this category; the newest of a category counts."""

    category: Category


class ByCategory(msgspec.Struct, kw_only=True):
    """An object's dashboard."""

    object_id: Key
    category: Category


class DashboardLinks(msgspec.Struct, frozen=True):
    """The handlers of the three paths that put dashboards on objects."""

    dashboards: EntityPaths

    async def handle_add(self, services: Services, actor: Actor, request: AddObjectDashboard) -> Empty:
        """Puts a dashboard on an object.

        Raises:
            Conflict: it is on this object already.
        """
        if await _links(services, actor, dashboard_id=request.dashboard_id, object_id=request.object_id):
            raise Conflict(say("dashboard_on_object", dashboard=request.dashboard_id))
        await services.entities.object_dashboards.create(actor, msgspec.structs.asdict(request))
        return Empty()

    async def handle_delete(self, services: Services, actor: Actor, request: OnObject) -> Empty:
        """Takes a dashboard off an object; the dashboard stays."""
        found = await _links(services, actor, dashboard_id=request.dashboard_id, object_id=request.object_id)
        if not found:
            raise NotFound("dashboard_id", request.dashboard_id)
        await services.entities.object_dashboards.delete(actor, found[0]["id"])
        return Empty()

    async def handle_get(self, services: Services, actor: Actor, request: ByCategory) -> dict[str, Any]:
        """The dashboard's record, with the category that it has on the object."""
        found = await _links(services, actor, object_id=request.object_id, category=request.category)
        if not found:
            raise NotFound("category", request.category)
        row = await services.entities.dashboards.item(actor, found[0]["dashboard_id"])
        record = (await self.dashboards.present(services, actor, [row]))[0]
        return {**record, "category": found[0]["category"]}


async def _links(services: Services, actor: Actor, **where: int | str) -> list[Row]:
    """The newest link that meets all of it."""
    conditions = Conditions([(name, "=", value) for name, value in where.items()])
    links = services.entities.object_dashboards
    return (await links.page(actor, page_size=1, conditions=conditions, order_by=("id", True))).rows


def dashboard_paths(objects: EntityPaths, dashboards: EntityPaths) -> Iterable[Operation]:
    """The rows of the three paths."""
    links, record = DashboardLinks(dashboards), dashboards.record_type
    yield objects.change(
        "/object/api/v1/object/addDashboard", "Puts a dashboard on an object", AddObjectDashboard, links.handle_add
    )
    yield objects.change(
        "/object/api/v1/object/deleteDashboard", "Takes a dashboard off an object", OnObject, links.handle_delete
    )
    yield objects.read(
        "/object/api/v1/object/getDashboardByCategory",
        "An object's dashboard of a category",
        ByCategory,
        record,
        links.handle_get,
    )
