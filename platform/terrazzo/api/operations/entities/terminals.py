"""Terminals and their configurations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.fields import Names
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import EntityActions
from terrazzo.database.port import Conditions, Row
from terrazzo.metadata.definitions.registry import CONFIGURATION, TERMINAL

SIGNED = frozenset({"created_by", "last_modified_by", "is_available"})
_CONFIGURED = SIGNED | {"name"}
_DESCRIBED = _CONFIGURED | {"type", "config_id", "mode", "username", "pin", "access"}


class TerminalList(ListRequest):
    """``uids`` restricts to those terminals."""

    uids: Names = msgspec.field(default_factory=Names)


def _among(request: TerminalList) -> Conditions:
    conditions = conditions_of(request)
    names = request.uids.names
    return conditions._replace(within=[*conditions.within, ("uid", names)]) if names else conditions


async def _with_map(services: Services, request: Any, rows: Sequence[Row]) -> list[Mapping[str, Any]]:
    """Section 1 "Terminal": null in every example."""
    return [{"terminal_object_map": None} for _ in rows]


TERMINALS = EntityActions(
    title="terminal",
    name="terminal",
    create="create_terminal",
    update="update_terminal",
    delete="delete_terminal",
    get_item="get_terminal_item",
    get_list="get_terminal_list",
    entity=TERMINAL,
    repository=lambda services: services.entities.terminals,
    required=SIGNED | {"access"},
    required_to_update=_DESCRIBED,
    keys=("uid",),
    is_paged=False,
    more={"terminal_object_map": None},
    extend=_with_map,
    list_request=TerminalList,
    conditions=_among,
)

CONFIGURATIONS = EntityActions(
    title="terminal configuration",
    name="terminal_config",
    create="create_terminal_config",
    update="update_terminal_config",
    delete="delete_terminal_config",
    get_item="get_terminal_config_item",
    get_list="get_terminal_config_list",
    entity=CONFIGURATION,
    repository=lambda services: services.entities.configurations,
    required=SIGNED,
    required_to_update=_CONFIGURED,
    keys=("uid",),
    is_paged=False,
)

OPERATIONS = (*TERMINALS.operations(), *CONFIGURATIONS.operations())
