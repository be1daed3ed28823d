"""Changes of many terminals at once: enabling, disabling, another configuration, tags, deletion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from terrazzo.api.kernel.conditions import conditions_of
from terrazzo.api.kernel.fields import Flag, Key, KeyList, Names
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.terminals import TerminalFilter
from terrazzo.api.operations.entities.types import given
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter, Conflict
from terrazzo.reasons import say

MOST_FOUND = 10_000


class TerminalsChosen(msgspec.Struct, kw_only=True):
    """The terminals ``uids``, up to 1,000, or those that ``filter`` finds as ``get_terminal_list`` does, up to 10,000.

    With ``dry_run`` 1 nothing is done, and ``found`` says how many they are. A filter needs ``expected``, how many that
    was: where it finds another number by then nothing is done.
    """

    uids: Names = msgspec.field(default_factory=Names)
    filter: TerminalFilter | None = None
    expected: Annotated[int, Meta(ge=1, le=MOST_FOUND)] | None = None
    dry_run: Flag = 0


class TerminalsUpdate(TerminalsChosen, kw_only=True):
    """What to give to many terminals; what is not given stays as it is."""

    is_available: Flag | UnsetType | None = UNSET
    config_id: Key | UnsetType | None = UNSET
    tags: KeyList | UnsetType | None = UNSET


class TerminalsDeletion(TerminalsChosen, kw_only=True):
    """The terminals to delete."""


class TerminalsChanged(msgspec.Struct):
    """How many were changed, and how many were so already. ``batch`` is in the audit log with each.

    ``found``: how many there are to change, in a dry run, where nothing is changed.
    """

    batch: str
    changed: int
    unchanged: int
    found: int


async def handle_update_terminals(services: Services, actor: Actor, request: TerminalsUpdate) -> TerminalsChanged:
    """All or none of those that are named; terminals that have the values already are left alone."""
    chosen = ("uids", "filter", "expected", "dry_run")
    values = {name: value for name, value in given(request).items() if name not in chosen}
    if not values:
        raise BadParameter("uids", say("no_terminal_change"))
    uids = await _chosen(services, actor, request)
    if request.dry_run:
        return TerminalsChanged("", 0, 0, len(uids))
    batch = await services.terminal_batches.update(actor, uids, values, are_found=request.filter is not None)
    return TerminalsChanged(*batch, len(uids))


async def handle_delete_terminals(services: Services, actor: Actor, request: TerminalsDeletion) -> TerminalsChanged:
    """All or none of those that are named."""
    uids = await _chosen(services, actor, request)
    if request.dry_run:
        return TerminalsChanged("", 0, 0, len(uids))
    batch = await services.terminal_batches.delete(actor, uids, are_found=request.filter is not None)
    return TerminalsChanged(*batch, len(uids))


async def _chosen(services: Services, actor: Actor, request: TerminalsChosen) -> Sequence[str]:
    """The uids of the terminals that are named, each once, or that the filter finds.

    Raises:
        BadParameter: both or neither are given, a condition makes no sense, or too many are found.
        Conflict: the filter doesn't find as many as are expected.
    """
    names = tuple(dict.fromkeys(request.uids.names))
    if request.filter is None:
        if not names:
            raise BadParameter("uids", say("names_no_terminal"))
        return names
    if names:
        raise BadParameter("uids", say("give_uids_or_filter"))
    found = await services.terminal_search.uids(actor, request.filter.query(conditions_of(request.filter), None))
    if len(found) > MOST_FOUND:
        raise BadParameter("filter", say("finds_too_many_terminals", found=len(found), most=MOST_FOUND))
    if not request.dry_run and request.expected is None:
        raise BadParameter("expected", say("required_with_filter"))
    if not request.dry_run and request.expected != len(found):
        raise Conflict(say("filter_finds_others", found=len(found), expected=request.expected))
    return found


OPERATIONS = (
    Operation(
        name="update_terminals",
        summary="Enables, disables, tags many terminals or gives them another configuration, by uid or filter",
        request=TerminalsUpdate,
        result=TerminalsChanged,
        permission=Role.ADMIN,
        handler=handle_update_terminals,
    ),
    Operation(
        name="delete_terminals",
        summary="Deletes many terminals: those that are named, or that a filter finds",
        request=TerminalsDeletion,
        result=TerminalsChanged,
        permission=Role.ADMIN,
        handler=handle_delete_terminals,
    ),
)
