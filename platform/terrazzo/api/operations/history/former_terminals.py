"""Terminals that were deleted: what they reported is read under their ids."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, PageRequest, paged
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.times import format_spaced


class FormerTerminalList(PageRequest):
    """All of the company, or those that had one uid."""

    uid: Annotated[str, Meta(max_length=64)] | None = None


class FormerTerminalRecord(msgspec.Struct):
    """A deleted terminal. Grid queries, exports and reject lists take ``id`` as their ``terminal_id``.

    ``created`` is null where it isn't known, ``purged`` while what it reported is there.
    """

    id: int
    uid: str
    name: str
    type: str
    permission_company_id: str
    created: str | None
    deleted: str
    purged: str | None


async def handle_get_former_terminal_list(
    services: Services, actor: Actor, request: FormerTerminalList
) -> Paged[FormerTerminalRecord]:
    """The last deleted first."""
    found, total = await services.former_terminals.page(
        actor, uid=request.uid, page_index=request.page_index, page_size=request.page_size
    )

    def text(time_us: int | None) -> str | None:
        return None if time_us is None else format_spaced(time_us, services.zone)

    records = [
        FormerTerminalRecord(
            id=each.terminal_id or 0,
            uid=each.uid,
            name=each.name,
            type=each.type,
            permission_company_id=str(each.company_id),
            created=text(each.created),
            deleted=format_spaced(each.deleted, services.zone),
            purged=text(each.purged),
        )
        for each in found
    ]
    return paged(request, records, total)


OPERATIONS = (
    Operation(
        name="get_former_terminal_list",
        summary="Terminals that were deleted, whose records are read under their ids, the last deleted first",
        request=FormerTerminalList,
        result=Paged[FormerTerminalRecord],
        permission=Role.VIEWER,
        handler=handle_get_former_terminal_list,
    ),
)
