"""A terminal's connections over time, as bands."""

from __future__ import annotations

from typing import Literal

import msgspec

from terrazzo.api.kernel.fields import Key, Moment
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.scope import find_terminal
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter, NotFound
from terrazzo.reasons import say
from terrazzo.terminals.presence_log import KEPT_DAYS
from terrazzo.times import DAY_US, format_spaced


class PresenceRange(msgspec.Struct, kw_only=True):
    """Which terminal, and when; at most a year."""

    terminal_id: Key
    start_time: Moment
    end_time: Moment


class PresenceBand(msgspec.Struct):
    """A stretch of time; ``end`` null: it goes on. ``reason``: why the connection ended.

    ``state`` is online, offline, flapping (``changes`` of them, which are not kept one by one) or unknown (before
    anything was kept).
    """

    start: str
    end: str | None
    state: Literal["online", "offline", "flapping", "unknown"]
    reason: str
    changes: int


async def handle_get_presence_list(services: Services, actor: Actor, request: PresenceRange) -> list[PresenceBand]:
    """The bands of a range, in order and without gaps.

    Raises:
        BadParameter: the range is reversed, or longer than a year.
        NotFound: no such terminal.
    """
    start_us, end_us = request.start_time.time_us, request.end_time.time_us
    if start_us > end_us:
        raise BadParameter("start_time", say("is_after_end_time"))
    if end_us - start_us > KEPT_DAYS * DAY_US:
        raise BadParameter("end_time", say("too_many_days", days=KEPT_DAYS))
    uid = await find_terminal(services, actor, request.terminal_id)
    terminal = services.registry.terminal(uid)
    if terminal is None:
        raise NotFound("terminal_id", request.terminal_id)
    bands = await services.presence_log.bands(terminal.id, start_us, end_us)

    def text(time_us: int | None) -> str | None:
        return None if time_us is None else format_spaced(time_us, services.zone)

    return [
        PresenceBand(text(each.start_us) or "", text(each.end_us), each.state, each.reason, each.changes)  # type: ignore[arg-type]
        for each in bands
    ]


OPERATIONS = (
    Operation(
        name="get_presence_list",
        summary="When a terminal was connected, as bands, and why each connection ended",
        request=PresenceRange,
        result=list[PresenceBand],
        permission=Role.VIEWER,
        handler=handle_get_presence_list,
    ),
)
