"""Projects, retainer, statistics, calculation and balance scripts, and dashboards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import Changed, EntityActions, Says
from terrazzo.api.operations.entities.types import given, key_type, take_key
from terrazzo.api.operations.session import Empty
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.metadata.definitions.registry import BALANCE, CALCULATE, DASHBOARD, PROJECT, RETAINER, STATISTICS
from terrazzo.times import format_iso


@dataclass(frozen=True, slots=True)
class Switch:
    """``start_`` and ``stop_`` of a kind of script."""

    actions: EntityActions

    def operations(self) -> Iterable[Operation]:
        """Its rows in the table."""
        actions = self.actions
        for verb, words, handler in (
            ("start", "Starts a", self.handle_start),
            ("stop", "Stops a", self.handle_stop),
        ):
            yield Operation(
                name=f"{verb}_{actions.name}",
                summary=f"{words} {actions.title}",
                request=key_type(actions.name, actions.keys),
                result=Empty if actions.says is Says.NOTHING else Changed,
                permission=Role.ADMIN,
                handler=handler,
            )

    async def handle_start(self, services: Services, actor: Actor, request: msgspec.Struct) -> Changed | Empty:
        """Sets ``is_active``."""
        return await self._set_active(services, actor, request, True)

    async def handle_stop(self, services: Services, actor: Actor, request: msgspec.Struct) -> Changed | Empty:
        """Clears ``is_active``."""
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
    name="retainer",
    title="retainer script",
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
    name="statistics",
    title="statistics script",
    entity=STATISTICS,
    repository=lambda services: services.entities.statistics,
    format_time=format_iso,
    names={"list": "get_statistics_script_list"},  # get_statistics_list: the results, by section 1
)

CALCULATE_SCRIPTS = EntityActions(
    name="calculate",
    title="calculation script",
    entity=CALCULATE,
    repository=lambda services: services.entities.calculates,
    format_time=format_iso,
    names={"list": "get_calculate_script_list"},  # get_calculate_list: the results, by section 1
)

BALANCES = EntityActions(
    name="balance",
    title="balance script",
    entity=BALANCE,
    repository=lambda services: services.entities.balances,
    format_time=format_iso,
)

DASHBOARDS = EntityActions(
    name="dashboard",
    title="dashboard",
    entity=DASHBOARD,
    repository=lambda services: services.entities.dashboards,
)

PROJECTS = EntityActions(
    name="project",
    title="project of the pusher",
    entity=PROJECT,
    repository=lambda services: services.entities.projects,
)

SWITCHED = (PROJECTS, RETAINERS, STATISTICS_SCRIPTS, CALCULATE_SCRIPTS, BALANCES)

OPERATIONS = (
    *(operation for actions in SWITCHED for operation in (*actions.operations(), *Switch(actions).operations())),
    *DASHBOARDS.operations(),
)
