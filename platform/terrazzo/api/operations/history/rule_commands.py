"""The commands that rules gave, were refused to give, and have still to give."""

from __future__ import annotations

from datetime import tzinfo
from typing import Literal

import msgspec

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.services import Services
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.record import record_of
from terrazzo.times import format_spaced


class RuleCommandRecord(msgspec.Struct):
    """A command of a rule and what came of it; times are null for what has not happened.

    ``cause_id``: the object that it happened on, null where there was none. ``reason``: why it was refused. What became
    of one that was sent is in ``get_command_list``.
    """

    id: int
    rule_id: int
    object_id: str
    cause_id: str | None
    command: str
    value: str
    state: Literal["waiting", "sent", "refused"]
    reason: str
    created: str
    expires: str
    sent: str | None
    refused: str | None


async def handle_get_rule_command_list(
    services: Services, actor: Actor, request: ListRequest
) -> Paged[RuleCommandRecord]:
    """Newest first unless ordered otherwise."""
    rows = await services.rule_commands.page(
        actor,
        page_index=request.page_index,
        page_size=request.page_size,
        conditions=conditions_of(request),
        order_by=request.order_by.by,
    )
    return paged(request, [_present(row, services.zone) for row in rows.rows], rows.total)


def _present(row: Row, zone: tzinfo) -> RuleCommandRecord:
    def text(time_us: int | None) -> str | None:
        return None if time_us is None else format_spaced(time_us, zone)

    told = {
        "object_id": str(row["object_id"]),
        "cause_id": str(row["cause_id"]) if row["cause_id"] else None,
        "created": text(row["noted_us"]),
        "expires": text(row["expires_us"]),
        "sent": text(row["sent_us"]),
        "refused": text(row["refused_us"]),
    }
    return record_of(RuleCommandRecord, row, told)


OPERATIONS = (
    Operation(
        name="get_rule_command_list",
        summary="A page of the commands that rules gave, were refused to give or have still to give, newest first",
        request=ListRequest,
        result=Paged[RuleCommandRecord],
        permission=Role.OPERATOR,
        handler=handle_get_rule_command_list,
    ),
)
