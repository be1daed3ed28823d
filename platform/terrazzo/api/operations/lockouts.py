"""Failed logins, who is kept waiting for them, and letting them in again."""

from __future__ import annotations

from datetime import tzinfo

import msgspec

from terrazzo.access.lockouts import FailedLogins
from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, PageRequest, page_offset, paged
from terrazzo.api.kernel.services import Services
from terrazzo.audit.entry import AuditEntry
from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.times import format_spaced


class LoginFailureList(PageRequest):
    """Failed logins of users and terminals within ``limits.login_window_s``."""


class LoginFailureRecord(msgspec.Struct):
    """Failures of a user (``uid`` is the name) or terminal at one address, of IPv6 its /64.

    ``until``: until when nobody gets in under this name there. An empty ``address`` is all addresses together: until
    then tries from where it has never logged in are let through one each few seconds.
    """

    kind: str
    uid: str
    permission_company_id: str
    address: str
    failures: int
    first_time: str
    last_time: str
    until: str | None


class Unlock(msgspec.Struct, kw_only=True):
    """The user or terminal to let in again: its failures are forgotten, at all addresses."""

    uid: Key


class Unlocked(msgspec.Struct):
    """The user or terminal whose failures were forgotten."""

    uid: str


async def handle_get_login_failure_list(
    services: Services, actor: Actor, request: LoginFailureList
) -> Paged[LoginFailureRecord]:
    """Failures of the company's users and terminals, the latest first."""
    found, start = services.lockouts.failures(actor), page_offset(request)
    page = [_shown(each, services.zone) for each in found[start : start + request.page_size]]
    return paged(request, page, len(found))


async def handle_unlock_user(services: Services, actor: Actor, request: Unlock) -> Unlocked:
    """Forgets a user's failed logins."""
    row = await services.entities.users.item(actor, request.uid)
    await services.audit.note(_entry(actor, "user", row, row["username"]))
    services.lockouts.unlock_user(row["id"])
    return Unlocked(row["username"])


async def handle_unlock_terminal(services: Services, actor: Actor, request: Unlock) -> Unlocked:
    """Forgets a terminal's failed logins."""
    row = await services.entities.terminals.item(actor, request.uid)
    await services.audit.note(_entry(actor, "terminal", row, row["uid"]))
    services.lockouts.unlock_terminal(row["id"])
    return Unlocked(row["uid"])


def _entry(actor: Actor, entity: str, row: Row, uid: str) -> AuditEntry:
    return AuditEntry(
        actor=actor, company_id=int(row[COMPANY]), action="unlock", entity=entity, record_id=row["id"], uid=uid
    )


def _shown(each: FailedLogins, zone: tzinfo) -> LoginFailureRecord:
    first, last, until = (
        None if at is None else format_spaced(int(at * 1_000_000), zone)
        for at in (each.failures.first_s, each.failures.last_s, each.failures.until_s)
    )
    return LoginFailureRecord(
        kind=each.kind,
        uid=each.uid,
        permission_company_id=str(each.company_id),
        address=each.failures.share,
        failures=each.failures.failures,
        first_time=first or "",
        last_time=last or "",
        until=until,
    )


OPERATIONS = (
    Operation(
        name="get_login_failure_list",
        summary="Failed logins of users and terminals, and until when they are kept waiting",
        request=LoginFailureList,
        result=Paged[LoginFailureRecord],
        permission=Role.ADMIN,
        handler=handle_get_login_failure_list,
    ),
    Operation(
        name="unlock_user",
        summary="Lets a user log in again who failed too often",
        request=Unlock,
        result=Unlocked,
        permission=Role.ADMIN,
        handler=handle_unlock_user,
    ),
    Operation(
        name="unlock_terminal",
        summary="Lets a terminal log in again that failed too often",
        request=Unlock,
        result=Unlocked,
        permission=Role.ADMIN,
        handler=handle_unlock_terminal,
    ),
)
