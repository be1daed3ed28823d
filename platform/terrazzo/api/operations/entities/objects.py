"""Objects, and the mapping tables, control tables and customers that they name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from terrazzo.api.kernel.conditions import ListRequest
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import EntityActions, Says
from terrazzo.api.operations.entities.terminals import SIGNED
from terrazzo.api.operations.entities.types import ByUid
from terrazzo.database.port import Row
from terrazzo.metadata.definitions.registry import CONTROL, CUSTOMER, MAPPING, OBJECT
from terrazzo.objects.flags import ObjectFlags


class MappingKey(ByUid):
    """Which record; section 1 "Mapping table" repeats ``action`` and ``actionid`` inside the result."""

    action: str = ""
    actionid: Any = ""


class MappingList(ListRequest):
    """A page; section 1 "Mapping table" repeats ``action`` and ``actionid`` inside the result."""

    action: str = ""
    actionid: Any = ""


async def _with_request(
    services: Services, request: MappingKey | MappingList, rows: Sequence[Row]
) -> list[Mapping[str, Any]]:
    return [{"action": request.action, "actionid": request.actionid} for _ in rows]


async def _with_flags(services: Services, request: Any, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    flags = await services.object_flags.of([row["id"] for row in rows])
    return [{name: int(value) for name, value in msgspec.structs.asdict(flags[row["id"]]).items()} for row in rows]


MAPPINGS = EntityActions(
    title="mapping table",
    name="mapping",
    create="create_mapping",
    update="update_mapping",
    delete="delete_mapping",
    get_item="get_mapping_item",
    get_list="get_mapping_list",
    entity=MAPPING,
    repository=lambda services: services.entities.mappings,
    required=SIGNED,
    required_to_update=SIGNED | {"name", "script"},
    keys=("uid",),
    is_paged=False,
    more={"action": str, "actionid": Any},
    extend=_with_request,
    has_version=True,
    item_request=MappingKey,
    list_request=MappingList,
)

CONTROLS = EntityActions(
    title="control table",
    name="control",
    create="create_control",
    update="update_control",
    delete="delete_control",
    get_item="get_control_item",
    get_list="get_control_list",
    entity=CONTROL,
    repository=lambda services: services.entities.controls,
    has_version=True,
)

CUSTOMERS = EntityActions(
    title="customer",
    name="customer",
    create="create_customer",
    update="update_customer",
    delete="delete_customer",
    get_item="get_customer_item",
    get_list="get_customer_list",
    entity=CUSTOMER,
    repository=lambda services: services.entities.customers,
    required_to_update=frozenset({"id", "name"}),
    keys=("uid",),
    says=Says.RECORD,
)

OBJECTS = EntityActions(
    title="object",
    name="object",
    create="create_object",
    update="update_object",
    delete="delete_object",
    get_item="get_object_item",
    get_list="get_object_list",
    entity=OBJECT,
    repository=lambda services: services.entities.objects,
    required=frozenset({"mapping_id", "terminal_list"}),
    keys=("uid", "id", "object_id"),
    more=dict.fromkeys(ObjectFlags.__struct_fields__, int),
    extend=_with_flags,
)

OPERATIONS = (
    *MAPPINGS.operations(),
    *CONTROLS.operations(),
    *CUSTOMERS.operations(),
    *OBJECTS.operations(),
)
