"""The audit log: who changed or commanded what."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.fields import Key, Moment
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, paged
from terrazzo.api.kernel.services import Services
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.record import record_of
from terrazzo.errors import BadParameter
from terrazzo.reasons import say
from terrazzo.times import format_spaced

_Name = Annotated[str, Meta(max_length=96)]


class AuditList(ListRequest):
    """What one user did, or what became of one kind of record or one record; both ends of the time are inclusive.

    ``uid`` is a record's uid, or as a number its id; ``batch`` is what was done at once.
    """

    username: _Name | None = None
    entity: _Name | None = None
    uid: Key | None = None
    batch: _Name | None = None
    start_time: Moment | None = None
    end_time: Moment | None = None


class AuditRecord(msgspec.Struct):
    """``before`` and ``after`` hold the fields that changed; a secret reads ``******``.

    ``action`` is create, update, delete, command, login, login_refused, logout, end_tokens, kick, rotate or unlock.
    What was done at once has the same ``batch``. ``user_id`` 0 is the platform itself, or a login under a name that
    nobody has.
    """

    id: int
    time: str
    permission_company_id: str | None
    user_id: int
    username: str
    address: str
    action: str
    entity: str
    record_id: int | None
    uid: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    batch: str | None


async def handle_get_audit_list(services: Services, actor: Actor, request: AuditList) -> Paged[AuditRecord]:
    """Entries of the company, newest first."""
    rows = await services.audit.page(
        actor,
        page_index=request.page_index,
        page_size=request.page_size,
        conditions=_conditions(request),
        order_by=request.order_by.by,
    )
    return paged(request, [_present(services, row) for row in rows.rows], rows.total)


def _conditions(request: AuditList) -> Conditions:
    start, end = request.start_time, request.end_time
    if start and end and start.time_us > end.time_us:
        raise BadParameter("start_time", say("is_after_end_time"))
    key = "record_id" if isinstance(request.uid, int) else "uid"
    given = [
        ("username", "=", request.username),
        ("entity", "=", request.entity),
        (key, "=", request.uid),
        ("batch", "=", request.batch),
        ("time", ">=", start and start.time_us),
        ("time", "<=", end and end.time_us),
    ]
    all_of, any_of, within = conditions_of(request)
    return Conditions([*all_of, *(each for each in given if each[2] is not None)], any_of, within)


def _present(services: Services, row: Row) -> AuditRecord:
    company = None if row["company_id"] is None else str(row["company_id"])
    time = format_spaced(row["time"], services.zone)
    return record_of(AuditRecord, row, {"time": time, "permission_company_id": company})


OPERATIONS = (
    Operation(
        name="get_audit_list",
        summary="Who changed or commanded what, when and from where, newest first",
        request=AuditList,
        result=Paged[AuditRecord],
        permission=Role.ADMIN,
        handler=handle_get_audit_list,
    ),
)
