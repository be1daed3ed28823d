"""Object management: objects, terminals, configurations, control and mapping tables, dashboards, groups, files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from terrazzo.api.kernel.services import Services
from terrazzo.api.paths.dashboards import dashboard_paths
from terrazzo.api.paths.entity_form import ARRAY, JOINED, OBJECT, Form
from terrazzo.api.paths.entity_paths import EntityPaths
from terrazzo.database.port import Row
from terrazzo.metadata.definitions import components
from terrazzo.metadata.definitions import registry as definitions
from terrazzo.objects.flags import ObjectFlags

_BASE = "object_base"


async def _with_flags(services: Services, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    flags = await services.object_flags.of([row["id"] for row in rows])
    return [{name: int(value) for name, value in msgspec.structs.asdict(flags[row["id"]]).items()} for row in rows]


OBJECTS = EntityPaths(
    name="object",
    title="object",
    base=_BASE,
    form=Form(
        entity=definitions.OBJECT,
        hidden=("customer_id", "object_list"),
        shapes={"terminal_list": JOINED, "addition": ARRAY, "template": OBJECT, "script": OBJECT},
    ),
    repository=lambda services: services.entities.objects,
    more=dict.fromkeys(ObjectFlags.__struct_fields__, int),
    extend=_with_flags,
)

TERMINALS = EntityPaths(
    name="terminal",
    title="terminal",
    base=_BASE,
    form=Form(entity=definitions.TERMINAL, names={"uid": "terminal_id"}),
    repository=lambda services: services.entities.terminals,
)

CONFIGURATIONS = EntityPaths(
    name="config",
    title="configuration",
    base=_BASE,
    form=Form(entity=definitions.CONFIGURATION, hidden=("terminal_script", "config_script")),
    repository=lambda services: services.entities.configurations,
)

CONTROLS = EntityPaths(
    name="control",
    title="control table",
    base=_BASE,
    form=Form(entity=definitions.CONTROL, shapes={"script": ARRAY}),
    repository=lambda services: services.entities.controls,
)

MAPPINGS = EntityPaths(
    name="mapping",
    title="mapping table",
    base=_BASE,
    form=Form(entity=definitions.MAPPING, hidden=("addition",), shapes={"script": ARRAY}),
    repository=lambda services: services.entities.mappings,
)

DASHBOARDS = EntityPaths(
    name="dashboard",
    title="dashboard",
    base=_BASE,
    form=Form(entity=definitions.DASHBOARD, shapes={"template": OBJECT}),
    repository=lambda services: services.entities.dashboards,
)

GROUPS = EntityPaths(
    name="group",
    title="object group",
    base=_BASE,
    form=Form(entity=components.GROUP),
    repository=lambda services: services.entities.groups,
)

GROUP_MAPS = EntityPaths(
    name="groupmap",
    title="object in a group",
    base=_BASE,
    form=Form(entity=components.GROUP_MAP),
    repository=lambda services: services.entities.group_maps,
)

FILES = EntityPaths(
    name="file",
    title="file record",
    base=_BASE,
    form=Form(entity=components.FILE, shapes={"file": ARRAY}),
    repository=lambda services: services.entities.files,
)

MANAGED = (OBJECTS, TERMINALS, CONFIGURATIONS, CONTROLS, MAPPINGS, DASHBOARDS, GROUPS, GROUP_MAPS, FILES)

PATHS = (*(path for each in MANAGED for path in each.paths()), *dashboard_paths(OBJECTS, DASHBOARDS))
