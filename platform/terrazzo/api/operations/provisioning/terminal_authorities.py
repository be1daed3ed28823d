"""Authorities that vouch for a company's terminals, which log in by client certificate."""

from __future__ import annotations

from terrazzo.api.operations.entities.actions import EntityActions
from terrazzo.domain.actor import Role
from terrazzo.metadata.definitions.registry import TERMINAL_AUTHORITY

_ACTIONS = EntityActions(
    title="terminal authority",
    name="terminal_authority",
    create="create_terminal_authority",
    update="update_terminal_authority",
    delete="delete_terminal_authority",
    get_item="get_terminal_authority_item",
    get_list="get_terminal_authority_list",
    entity=TERMINAL_AUTHORITY,
    repository=lambda services: services.entities.authorities,
    readers=Role.ADMIN,
)

OPERATIONS = tuple(
    each for each in _ACTIONS.operations() if each.name in (_ACTIONS.create, _ACTIONS.get_list, _ACTIONS.delete)
)
