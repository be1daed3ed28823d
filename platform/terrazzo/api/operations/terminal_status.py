"""Whether a terminal is connected, and what its connection did."""

from __future__ import annotations

import msgspec

from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.scope import find_terminal
from terrazzo.api.kernel.services import Services
from terrazzo.domain.actor import Actor, Role
from terrazzo.times import format_spaced


class TerminalStatusQuery(msgspec.Struct, kw_only=True):
    """Which terminal."""

    terminal_id: Key


class TerminalStatus(msgspec.Struct):
    """The present connection, or the last one; times are null where there was none."""

    terminal_id: str
    online: bool
    since: str | None
    address: str
    protocol: str
    messages: int
    last_seen: str | None
    last_telemetry: str | None
    disconnect_reason: str


async def handle_get_terminal_status(services: Services, actor: Actor, request: TerminalStatusQuery) -> TerminalStatus:
    """What the broker knows of a terminal's connection."""
    uid = await find_terminal(services, actor, request.terminal_id)
    presence = services.bus.presence(uid)

    def text(time_us: int | None) -> str | None:
        return None if time_us is None else format_spaced(time_us, services.zone)

    return TerminalStatus(
        terminal_id=uid,
        online=presence.online,
        since=text(presence.since_us),
        address=presence.address,
        protocol=presence.protocol,
        messages=presence.messages,
        last_seen=text(presence.last_seen_us),
        last_telemetry=text(presence.last_telemetry_us),
        disconnect_reason=presence.disconnect_reason,
    )


OPERATIONS = (
    Operation(
        name="get_terminal_status",
        summary="Whether a terminal is connected, since when, from where, and when it was last heard",
        request=TerminalStatusQuery,
        result=TerminalStatus,
        permission=Role.VIEWER,
        handler=handle_get_terminal_status,
    ),
)
