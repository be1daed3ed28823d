"""Changes of many terminals at once: enabling, disabling, another configuration, tags, deletion."""

from __future__ import annotations

import msgspec
from msgspec import UNSET, UnsetType

from terrazzo.api.kernel.fields import Flag, Key, KeyList, Names
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.types import given
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter


class TerminalsUpdate(msgspec.Struct, kw_only=True):
    """What to give to all of the terminals ``uids``, up to 1,000; what is not given stays as it is."""

    uids: Names
    is_available: Flag | UnsetType | None = UNSET
    config_id: Key | UnsetType | None = UNSET
    tags: KeyList | UnsetType | None = UNSET


class TerminalsDeletion(msgspec.Struct, kw_only=True):
    """The terminals to delete, up to 1,000."""

    uids: Names


class TerminalsChanged(msgspec.Struct):
    """How many were changed, and how many were so already. ``batch`` is in the audit log with each."""

    batch: str
    changed: int
    unchanged: int


async def handle_update_terminals(services: Services, actor: Actor, request: TerminalsUpdate) -> TerminalsChanged:
    """All or none; terminals that have the values already are left alone."""
    values = given(request)
    uids = _checked(values.pop("uids"))
    if not values:
        raise BadParameter("uids", "nothing to change: give is_available, config_id or tags")
    return TerminalsChanged(*await services.terminal_batches.update(actor, uids, values))


async def handle_delete_terminals(services: Services, actor: Actor, request: TerminalsDeletion) -> TerminalsChanged:
    """All or none."""
    return TerminalsChanged(*await services.terminal_batches.delete(actor, _checked(request.uids)))


def _checked(uids: Names) -> tuple[str, ...]:
    if not uids.names:
        raise BadParameter("uids", "names no terminal")
    return uids.names


OPERATIONS = (
    Operation(
        name="update_terminals",
        summary="Enables, disables, tags many terminals or gives them another configuration, all or none",
        request=TerminalsUpdate,
        result=TerminalsChanged,
        permission=Role.ADMIN,
        handler=handle_update_terminals,
    ),
    Operation(
        name="delete_terminals",
        summary="Deletes many terminals, all or none",
        request=TerminalsDeletion,
        result=TerminalsChanged,
        permission=Role.ADMIN,
        handler=handle_delete_terminals,
    ),
)
