"""Terminals and their configurations."""

from __future__ import annotations

import msgspec

from terrazzo.api.entities import EntityActions
from terrazzo.api.fields import Names
from terrazzo.api.paging import PageRequest
from terrazzo.metadata.definitions import CONFIGURATION, TERMINAL
from terrazzo.metadata.port import EVERYTHING, Conditions

_SIGNED = frozenset({"created_by", "last_modified_by", "is_available"})


class TerminalList(PageRequest):
    """``uids`` restricts to those terminals."""

    uids: Names = msgspec.field(default_factory=Names)


def _among(request: TerminalList) -> Conditions:
    return Conditions(within=[("uid", request.uids.names)]) if request.uids.names else EVERYTHING


TERMINALS = EntityActions(
    name="terminal",
    title="terminal",
    entity=TERMINAL,
    repository=lambda services: services.entities.terminals,
    required=_SIGNED | {"access"},
    constants={"terminal_object_map": None},
    list_request=TerminalList,
    conditions=_among,
)

CONFIGURATIONS = EntityActions(
    name="terminal_config",
    title="terminal configuration",
    entity=CONFIGURATION,
    repository=lambda services: services.entities.configurations,
    required=_SIGNED,
)

OPERATIONS = (*TERMINALS.operations(), *CONFIGURATIONS.operations())
