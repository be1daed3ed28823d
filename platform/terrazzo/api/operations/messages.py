"""The journal of messages: what was sent to whom, and what came of it."""

from __future__ import annotations

from datetime import tzinfo
from typing import Any

import msgspec

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.services import Services
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.record import record_of
from terrazzo.messenger.masking import shown_url
from terrazzo.messenger.message import MessageState
from terrazzo.times import format_spaced


class MessageRecord(msgspec.Struct):
    """A message and what came of it; times are null for what has not happened."""

    id: int
    uid: str
    project_id: int  # 0: a rule's webhook
    object_id: str | None
    rule_id: int | None
    channel: str
    recipients: list[str]
    pending: list[str]  # those that it has still to be sent to
    content: dict[str, Any]
    request: Any  # of the last attempt, secrets masked
    response: Any
    state: MessageState
    svc_code: str
    svc_msg: str
    reason: str
    attempts: int
    created: str
    next: str | None  # the next attempt
    ended: str | None
    created_by: int  # 0: the platform
    is_available: int


async def handle_get_message_list(services: Services, actor: Actor, request: ListRequest) -> Paged[MessageRecord]:
    """Newest first unless ordered otherwise."""
    rows = await services.messenger.journal.page(
        actor,
        page_index=request.page_index,
        page_size=request.page_size,
        conditions=conditions_of(request),
        order_by=request.order_by.by,
    )
    return paged(request, [_present(row, services.zone) for row in rows.rows], rows.total)


def _present(row: Row, zone: tzinfo) -> MessageRecord:
    is_waiting = row["state"] == MessageState.QUEUED.value
    told = {
        "request": _without_url(row["request"]),
        "pending": row["pending"] or [] if is_waiting else [],
        "object_id": None if row["object_id"] is None else str(row["object_id"]),
        "state": MessageState(row["state"]),
        "created": format_spaced(row["created"], zone),
        "next": format_spaced(row["next_us"], zone) if is_waiting else None,
        "ended": None if row["ended_us"] is None else format_spaced(row["ended_us"], zone),
    }
    return record_of(MessageRecord, row, told)


def _without_url(request: Any) -> Any:
    """A request as it is journaled now: an older version kept the path of its URL, which may be a secret."""
    if not isinstance(request, dict) or not isinstance(request.get("url"), str):
        return request
    return {**request, "url": shown_url(request["url"])}


OPERATIONS = (
    Operation(
        name="get_message_list",
        summary="A page of the messages that were sent or wait to be, newest first",
        request=ListRequest,
        result=Paged[MessageRecord],
        permission=Role.OPERATOR,
        handler=handle_get_message_list,
    ),
)
