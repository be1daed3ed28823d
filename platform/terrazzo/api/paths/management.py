"""Object management: objects, terminals, configurations, control and mapping tables, dashboards, groups, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.terminals import TerminalFilter, page_of_terminals
from terrazzo.api.paths.component_columns import ARRAY, JOINED, OBJECT, ComponentColumns
from terrazzo.api.paths.dashboards import dashboard_paths
from terrazzo.api.paths.entity_paths import EntityPaths
from terrazzo.database.port import Row
from terrazzo.metadata.definitions import components
from terrazzo.metadata.definitions import registry as definitions
from terrazzo.objects.flags import ObjectFlags


async def _with_flags(services: Services, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    flags = await services.object_flags.of([row["id"] for row in rows])
    return [{name: int(value) for name, value in msgspec.structs.asdict(flags[row["id"]]).items()} for row in rows]


OBJECTS = EntityPaths(
    title="object",
    name="object",
    add="/object/api/v1/object/add",
    edit="/object/api/v1/object/edit",
    delete="/object/api/v1/object/delete",
    get_item="/object/api/v1/object/getItem",
    get_list="/object/api/v1/object/getList",
    columns=ComponentColumns(
        entity=definitions.OBJECT,
        hidden=("customer_id", "object_list"),
        shapes={"terminal_list": JOINED, "addition": ARRAY, "template": OBJECT, "script": OBJECT},
    ),
    repository=lambda services: services.entities.objects,
    more=dict.fromkeys(ObjectFlags.__struct_fields__, int),
    extend=_with_flags,
)

TERMINALS = EntityPaths(
    title="terminal",
    name="terminal",
    add="/object/api/v1/terminal/add",
    edit="/object/api/v1/terminal/edit",
    delete="/object/api/v1/terminal/delete",
    get_item="/object/api/v1/terminal/getItem",
    get_list="/object/api/v1/terminal/getList",
    columns=ComponentColumns(entity=definitions.TERMINAL, names={"uid": "terminal_id"}, hidden=("tags",)),
    repository=lambda services: services.entities.terminals,
    list_request=TerminalFilter,
    read_page=page_of_terminals,
)

CONFIGURATIONS = EntityPaths(
    title="configuration",
    name="config",
    add="/object/api/v1/config/add",
    edit="/object/api/v1/config/edit",
    delete="/object/api/v1/config/delete",
    get_item="/object/api/v1/config/getItem",
    get_list="/object/api/v1/config/getList",
    columns=ComponentColumns(
        entity=definitions.CONFIGURATION, hidden=("terminal_script", "config_script", "deliver", "payload")
    ),
    repository=lambda services: services.entities.configurations,
)

CONTROLS = EntityPaths(
    title="control table",
    name="control",
    add="/object/api/v1/control/add",
    edit="/object/api/v1/control/edit",
    delete="/object/api/v1/control/delete",
    get_item="/object/api/v1/control/getItem",
    get_list="/object/api/v1/control/getList",
    columns=ComponentColumns(entity=definitions.CONTROL, shapes={"script": ARRAY}),
    repository=lambda services: services.entities.controls,
)

MAPPINGS = EntityPaths(
    title="mapping table",
    name="mapping",
    add="/object/api/v1/mapping/add",
    edit="/object/api/v1/mapping/edit",
    delete="/object/api/v1/mapping/delete",
    get_item="/object/api/v1/mapping/getItem",
    get_list="/object/api/v1/mapping/getList",
    columns=ComponentColumns(
        entity=definitions.MAPPING, hidden=("addition", "events", "variables"), shapes={"script": ARRAY}
    ),
    repository=lambda services: services.entities.mappings,
)

DASHBOARDS = EntityPaths(
    title="dashboard",
    name="dashboard",
    add="/object/api/v1/dashboard/add",
    edit="/object/api/v1/dashboard/edit",
    delete="/object/api/v1/dashboard/delete",
    get_item="/object/api/v1/dashboard/getItem",
    get_list="/object/api/v1/dashboard/getList",
    columns=ComponentColumns(entity=definitions.DASHBOARD, shapes={"template": OBJECT}),
    repository=lambda services: services.entities.dashboards,
)

GROUPS = EntityPaths(
    title="object group",
    name="group",
    add="/object/api/v1/group/add",
    edit="/object/api/v1/group/edit",
    delete="/object/api/v1/group/delete",
    get_item="/object/api/v1/group/getItem",
    get_list="/object/api/v1/group/getList",
    columns=ComponentColumns(entity=components.GROUP),
    repository=lambda services: services.entities.groups,
)

GROUP_MAPS = EntityPaths(
    title="object in a group",
    name="groupmap",
    add="/object/api/v1/groupmap/add",
    edit="/object/api/v1/groupmap/edit",
    delete="/object/api/v1/groupmap/delete",
    get_item="/object/api/v1/groupmap/getItem",
    get_list="/object/api/v1/groupmap/getList",
    columns=ComponentColumns(entity=components.GROUP_MAP),
    repository=lambda services: services.entities.group_maps,
)

FILES = EntityPaths(
    title="file record",
    name="file",
    add="/object/api/v1/file/add",
    edit="/object/api/v1/file/edit",
    delete="/object/api/v1/file/delete",
    get_item="/object/api/v1/file/getItem",
    get_list="/object/api/v1/file/getList",
    columns=ComponentColumns(entity=components.FILE, shapes={"file": ARRAY}),
    repository=lambda services: services.entities.files,
)

MANAGED = (OBJECTS, TERMINALS, CONFIGURATIONS, CONTROLS, MAPPINGS, DASHBOARDS, GROUPS, GROUP_MAPS, FILES)

PATHS = (*(path for each in MANAGED for path in each.paths()), *dashboard_paths(OBJECTS, DASHBOARDS))
