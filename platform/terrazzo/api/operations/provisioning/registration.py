"""Terminals that come in: registering one by its uid, and the client ids that tried and are no terminal's."""

from __future__ import annotations

from datetime import tzinfo

import msgspec
from msgspec import UNSET, UnsetType

from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, PageRequest, page_offset, paged
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.types import given, struct_of, written_columns
from terrazzo.database.entity import COMPANY
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.refusals.reasons import REASONS
from terrazzo.metadata.definitions.registry import TERMINAL
from terrazzo.terminals.unknown import UnknownTerminal
from terrazzo.times import format_spaced

_NAME = "register_terminal"

RegisterTerminal = struct_of(
    _NAME,
    "A new terminal; what isn't given has a default.",
    [*written_columns(TERMINAL, {"uid"}), (COMPANY, Key | None | UnsetType, UNSET)],
)


class RegisteredTerminal(msgspec.Struct):
    """What the terminal logs in with. ``config_id`` is the uid of its configuration."""

    id: int
    uid: str
    username: str
    pin: str
    mode: str
    config_id: str


class UnknownTerminalList(PageRequest):
    """Client ids that tried to log in and are no terminal's."""


class UnknownTerminalRecord(msgspec.Struct):
    """Tries of a client id from one address since the platform's start, or with one company's claim key or certificate.

    ``permission_company_id``: whose claim key or certificate the tries carried; empty: none. ``reason``, ``text`` and
    ``advice`` are about the last one.
    """

    uid: str
    address: str
    count: int
    first_time: str
    last_time: str
    permission_company_id: str
    reason: str
    text: str
    advice: str


async def handle_register_terminal(services: Services, actor: Actor, request: msgspec.Struct) -> RegisteredTerminal:
    """Adds a terminal to the actor's company, with a pin that is made up unless it is given."""
    row = await services.registration.register(actor, given(request))
    names = ("id", "uid", "username", "pin", "mode")
    return RegisteredTerminal(**{name: row[name] for name in names}, config_id=row["config_uid"])


async def handle_get_unknown_terminal_list(
    services: Services, actor: Actor, request: UnknownTerminalList
) -> Paged[UnknownTerminalRecord]:
    """All for super users, for others what carried their company's claim key or certificate; the latest first."""
    found, start = services.unknown_terminals.found(actor), page_offset(request)
    page = [_shown(each, services.zone) for each in found[start : start + request.page_size]]
    return paged(request, page, len(found))


def _shown(each: UnknownTerminal, zone: tzinfo) -> UnknownTerminalRecord:
    reason = REASONS[each.reason]
    return UnknownTerminalRecord(
        uid=each.uid,
        address=each.address,
        count=each.tries,
        first_time=format_spaced(each.first_us, zone),
        last_time=format_spaced(each.last_us, zone),
        permission_company_id=str(each.company_id) if each.company_id else "",
        reason=reason.name,
        text=f"{reason.text}: {each.detail}" if each.detail else reason.text,
        advice=reason.advice,
    )


OPERATIONS = (
    Operation(
        name=_NAME,
        summary="Creates a terminal of which only the uid is known: the rest has defaults, the pin is in the answer",
        request=RegisterTerminal,
        result=RegisteredTerminal,
        permission=Role.ADMIN,
        handler=handle_register_terminal,
    ),
    Operation(
        name="get_unknown_terminal_list",
        summary="Client ids that tried to log in and are not registered",
        request=UnknownTerminalList,
        result=Paged[UnknownTerminalRecord],
        permission=Role.ADMIN,
        handler=handle_get_unknown_terminal_list,
    ),
)
