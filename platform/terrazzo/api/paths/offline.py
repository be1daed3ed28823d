"""Offline projects and what is collected for them (section 2 "Offline data")."""

from __future__ import annotations

from typing import Any

import msgspec

from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.services import Services
from terrazzo.api.paths.component_columns import ARRAY, ComponentColumns
from terrazzo.api.paths.entity_paths import EntityPaths
from terrazzo.database.port import Conditions
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import NotFound
from terrazzo.metadata.definitions.components import COLLECT, COLLECTOS
from terrazzo.times import format_iso


class LastOf(msgspec.Struct, kw_only=True):
    """The newest record of a project and an object."""

    project_id: Key
    object_id: Key


async def handle_get_last(services: Services, actor: Actor, request: LastOf) -> dict[str, Any]:
    """The record that was collected last."""
    conditions = Conditions([("project_id", "=", request.project_id), ("object_id", "=", request.object_id)])
    rows = (
        await services.entities.collected.page(actor, page_size=1, conditions=conditions, order_by=("collect_at", True))
    ).rows
    if not rows:
        raise NotFound("project_id", request.project_id)
    return (await COLLECTED.present(services, actor, rows))[0]


PROJECTS = EntityPaths(
    title="offline project",
    name="collect",
    add="/offline/api/v1/collect/add",
    edit="/offline/api/v1/collect/edit",
    delete="/offline/api/v1/collect/delete",
    get_item="/offline/api/v1/collect/getItem",
    get_list="/offline/api/v1/collect/getList",
    columns=ComponentColumns(
        entity=COLLECT, shapes={"option": ARRAY}, booleans=("is_active", "is_available"), format_time=format_iso
    ),
    repository=lambda services: services.entities.collects,
)

COLLECTED = EntityPaths(
    title="offline data record",
    name="collectos",
    add="/offline/api/v1/collectos/add",
    edit="/offline/api/v1/collectos/edit",
    delete="/offline/api/v1/collectos/delete",
    get_item="/offline/api/v1/collectos/getItem",
    get_list="/offline/api/v1/collectos/getList",
    columns=ComponentColumns(entity=COLLECTOS, hidden=("last_modified",)),
    repository=lambda services: services.entities.collected,
    writers=Role.OPERATOR,
)

PATHS = (
    *PROJECTS.paths(),
    *COLLECTED.paths(),
    COLLECTED.read(
        "/offline/api/v1/collectos/getLastItem",
        "The newest record of a project and an object",
        LastOf,
        COLLECTED.record_type,
        handle_get_last,
    ),
)
