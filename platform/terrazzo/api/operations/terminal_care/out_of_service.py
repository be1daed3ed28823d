"""Terminals out of service until a time, with a reason: nothing about them alarms meanwhile."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import Moment, Names
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.services import Services
from terrazzo.database.field import check_storable
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter
from terrazzo.reasons import say, told_by
from terrazzo.times import DAY_US, now_us

MOST_DAYS = 366
MINUTE_US = 60_000_000


class PutIntoService(msgspec.Struct, kw_only=True):
    """Which terminals, up to 1,000."""

    uids: Names


class PutOutOfService(PutIntoService, kw_only=True):
    """Which terminals, up to 1,000, ``until`` when or for how many ``minutes``, and why."""

    until: Moment | None = None
    minutes: Annotated[int, Meta(ge=1, le=MOST_DAYS * 1_440, description="instead of a time")] | None = None
    reason: Annotated[str, Meta(min_length=1, max_length=255, description="why, for whoever looks")]


class ServiceChanged(msgspec.Struct):
    """How many terminals it was about: into service, those that were out of it."""

    terminals: int


async def handle_put_out_of_service(services: Services, actor: Actor, request: PutOutOfService) -> ServiceChanged:
    """Puts all of the terminals out of service, or none; those that are so already get the new time and reason.

    Raises:
        BadParameter: the time is not ahead, or further than a year; no terminal is named.
        NotFound: one of them is not the actor's.
    """
    until_us = _until_us(request)
    try:
        check_storable(request.reason)
    except ValueError as error:
        raise BadParameter("reason", told_by(error)) from None
    uids = _named(request)
    return ServiceChanged(await services.out_of_service.put(actor, uids, until_us=until_us, reason=request.reason))


async def handle_put_into_service(services: Services, actor: Actor, request: PutIntoService) -> ServiceChanged:
    """Puts terminals back into service, before their time is over."""
    return ServiceChanged(await services.out_of_service.end(actor, _named(request)))


def _until_us(request: PutOutOfService) -> int:
    now = now_us()
    if request.minutes is not None:
        if request.until is not None:
            raise BadParameter("until", say("give_until_or_minutes"))
        return now + request.minutes * MINUTE_US
    if request.until is None or not now < request.until.time_us <= now + MOST_DAYS * DAY_US:
        raise BadParameter("until", say("expected_time_ahead", days=MOST_DAYS))
    return request.until.time_us


def _named(request: PutIntoService) -> tuple[str, ...]:
    names = request.uids.names
    if not names:
        raise BadParameter("uids", say("names_no_terminal"))
    return names


OPERATIONS = (
    Operation(
        name="put_out_of_service",
        summary="Puts terminals out of service until a time, with a reason: nothing about them alarms meanwhile",
        request=PutOutOfService,
        result=ServiceChanged,
        permission=Role.OPERATOR,
        handler=handle_put_out_of_service,
    ),
    Operation(
        name="put_into_service",
        summary="Puts terminals back into service, before their time is over",
        request=PutIntoService,
        result=ServiceChanged,
        permission=Role.OPERATOR,
        handler=handle_put_into_service,
    ),
)
