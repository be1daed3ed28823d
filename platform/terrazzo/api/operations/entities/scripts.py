"""Projects, retainer, statistics, calculation and balance scripts, and dashboards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from terrazzo.api.kernel.envelope import Empty
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import Changed, EntityActions, Says
from terrazzo.api.operations.entities.types import given, key_type, take_key
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.metadata.definitions.registry import BALANCE, CALCULATE, DASHBOARD, PROJECT, RETAINER, STATISTICS
from terrazzo.times import format_iso


class Switch(msgspec.Struct, frozen=True):
    """The two actions that start and stop a kind of script."""

    actions: EntityActions
    start: str
    stop: str

    def operations(self) -> Iterable[Operation]:
        """The rows of the two actions."""
        actions = self.actions
        for name, summary, handler in (
            (self.start, f"Starts a {actions.title}", self.handle_start),
            (self.stop, f"Stops a {actions.title}", self.handle_stop),
        ):
            yield Operation(
                name=name,
                summary=summary,
                request=key_type(actions.name, actions.keys),
                result=Empty if actions.says is Says.NOTHING else Changed,
                permission=Role.ADMIN,
                handler=handler,
            )

    async def handle_start(self, services: Services, actor: Actor, request: msgspec.Struct) -> Changed | Empty:
        """Starts a script: sets its ``is_active``."""
        return await self._set_active(services, actor, request, True)

    async def handle_stop(self, services: Services, actor: Actor, request: msgspec.Struct) -> Changed | Empty:
        """Stops a script: clears its ``is_active``."""
        return await self._set_active(services, actor, request, False)

    async def _set_active(
        self, services: Services, actor: Actor, request: msgspec.Struct, is_active: bool
    ) -> Changed | Empty:
        key = take_key(given(request), self.actions.keys)
        row = await self.actions.repository(services).set_active(actor, key, is_active)
        return Empty() if self.actions.says is Says.NOTHING else Changed(row["uid"])


async def _with_objectlist(services: Services, request: Any, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    """Section 1 "Retainer script" spells it so in lists."""
    return [{"objectlist": row["object_list"]} for row in rows]


RETAINERS = EntityActions(
    title="retainer script",
    name="retainer",
    create="create_retainer",
    update="update_retainer",
    delete="delete_retainer",
    get_item="get_retainer_item",
    get_list="get_retainer_list",
    entity=RETAINER,
    repository=lambda services: services.entities.retainers,
    required_to_update=frozenset({"name", "object_list", "script"}),
    keys=("uid",),
    says=Says.NOTHING,
    format_time=format_iso,
    more={"objectlist": list[str]},
    extend=_with_objectlist,
)

STATISTICS_SCRIPTS = EntityActions(
    title="statistics script",
    name="statistics",
    create="create_statistics",
    update="update_statistics",
    delete="delete_statistics",
    get_item="get_statistics_item",
    get_list="get_statistics_script_list",  # get_statistics_list: the results, by section 1
    entity=STATISTICS,
    repository=lambda services: services.entities.statistics,
    format_time=format_iso,
)

CALCULATE_SCRIPTS = EntityActions(
    title="calculation script",
    name="calculate",
    create="create_calculate",
    update="update_calculate",
    delete="delete_calculate",
    get_item="get_calculate_item",
    get_list="get_calculate_script_list",  # get_calculate_list: the results, by section 1
    entity=CALCULATE,
    repository=lambda services: services.entities.calculates,
    format_time=format_iso,
)

BALANCES = EntityActions(
    title="balance script",
    name="balance",
    create="create_balance",
    update="update_balance",
    delete="delete_balance",
    get_item="get_balance_item",
    get_list="get_balance_list",
    entity=BALANCE,
    repository=lambda services: services.entities.balances,
    format_time=format_iso,
)

DASHBOARDS = EntityActions(
    title="dashboard",
    name="dashboard",
    create="create_dashboard",
    update="update_dashboard",
    delete="delete_dashboard",
    get_item="get_dashboard_item",
    get_list="get_dashboard_list",
    entity=DASHBOARD,
    repository=lambda services: services.entities.dashboards,
    has_version=True,
)

PROJECTS = EntityActions(
    title="project of the pusher",
    name="project",
    create="create_project",
    update="update_project",
    delete="delete_project",
    get_item="get_project_item",
    get_list="get_project_list",
    entity=PROJECT,
    repository=lambda services: services.entities.projects,
)

SWITCHES = (
    Switch(PROJECTS, start="start_project", stop="stop_project"),
    Switch(RETAINERS, start="start_retainer", stop="stop_retainer"),
    Switch(STATISTICS_SCRIPTS, start="start_statistics", stop="stop_statistics"),
    Switch(CALCULATE_SCRIPTS, start="start_calculate", stop="stop_calculate"),
    Switch(BALANCES, start="start_balance", stop="stop_balance"),
)

OPERATIONS = (
    *(operation for each in SWITCHES for operation in (*each.actions.operations(), *each.operations())),
    *DASHBOARDS.operations(),
)
