"""Whether a terminal is connected, what its connection did, and why it was refused."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.fields import Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.scope import find_terminal
from terrazzo.api.kernel.services import Services
from terrazzo.configurations.comparison import Difference
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.refusals.entry import RefusalEntry, RefusalRecord, refusal_record
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import NotPermitted
from terrazzo.reasons import say
from terrazzo.times import format_spaced
from terrazzo_broker.peer_address import share_of

_MOST_AT_ADDRESS = 20


class TerminalStatusQuery(msgspec.Struct, kw_only=True):
    """Which terminal."""

    terminal_id: Key


class ConfigurationStatus(msgspec.Struct):
    """How far a terminal is with the configuration that is delivered to it, since when, and what it reports otherwise.

    ``version``: SHA-256 of the canonical JSON that it ought to have; ``reported``: its last report on g/<uid>/p.
    """

    version: str
    state: Literal["pending", "sent", "confirmed", "differs", "refused"]
    since: str
    reported: str | None
    difference: list[Difference]


class TerminalStatus(msgspec.Struct):
    """The present connection, or the last one; times are null where there was none.

    ``refusals``: why it was refused or ended, at most 20, the last one first. ``address_refusals``: what failed before
    it was known who is there (TLS, PROXY headers, WebSocket) at the addresses that it comes from.
    """

    terminal_id: str
    online: bool
    since: str | None
    address: str
    protocol: str
    messages: int
    last_seen: str | None
    last_telemetry: str | None
    disconnect_reason: str
    refusals: list[RefusalRecord]
    address_refusals: list[RefusalRecord]
    configuration: ConfigurationStatus | None  # null: its configuration isn't delivered


class AddressRefusalsQuery(msgspec.Struct, kw_only=True):
    """Which address; in IPv6 its /64 counts."""

    address: Annotated[str, Meta(min_length=1, max_length=64)]


class AddressRefusals(msgspec.Struct):
    """What was refused at an address before it was known who is there (TLS, PROXY headers, WebSocket), and under client
    ids that nobody has; at most 20, the last one first."""

    address: str
    refusals: list[RefusalRecord]


async def handle_get_terminal_status(services: Services, actor: Actor, request: TerminalStatusQuery) -> TerminalStatus:
    """What the broker knows of a terminal's connection, and what the journal of refusals does."""
    uid = await find_terminal(services, actor, request.terminal_id)
    presence, terminal = services.bus.presence(uid), services.registry.terminal(uid)

    def text(time_us: int | None) -> str | None:
        return None if time_us is None else format_spaced(time_us, services.zone)

    def records(entries: list[RefusalEntry]) -> list[RefusalRecord]:
        return [refusal_record(each, services.zone) for each in entries]

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
        refusals=[] if terminal is None else records(services.refusals.of_terminal(terminal.id)),
        address_refusals=[] if terminal is None else records(_at_addresses(services, terminal, presence.address)),
        configuration=_configuration(services, uid),
    )


async def handle_get_address_refusals(
    services: Services, actor: Actor, request: AddressRefusalsQuery
) -> AddressRefusals:
    """For super users: whoever it was may be of any company."""
    if not actor.is_super:
        raise NotPermitted(say("address_for_super_users"))
    entries = services.refusals.at_addresses([request.address])
    shown = [refusal_record(each, services.zone) for each in entries]
    return AddressRefusals(address=share_of(request.address), refusals=shown)


def _configuration(services: Services, uid: str) -> ConfigurationStatus | None:
    status = services.configurations.status(uid)
    if status is None:
        return None
    return ConfigurationStatus(
        version=status.version,
        state=status.state.value,
        since=format_spaced(status.since_us, services.zone),
        reported=None if status.reported_us is None else format_spaced(status.reported_us, services.zone),
        difference=list(status.difference),
    )


def _at_addresses(services: Services, terminal: Terminal, address: str) -> list[RefusalEntry]:
    """What failed where the terminal is, was last, or has logged in from before."""
    known = services.lockouts.terminal_places(terminal.id)
    return services.refusals.at_addresses((address, *known))[:_MOST_AT_ADDRESS]


OPERATIONS = (
    Operation(
        name="get_terminal_status",
        summary="Whether a terminal is connected, since when, from where, when it was last heard; why it was refused",
        request=TerminalStatusQuery,
        result=TerminalStatus,
        permission=Role.VIEWER,
        handler=handle_get_terminal_status,
    ),
    Operation(
        name="get_address_refusals",
        summary="What was refused at an address, whoever it was; for super users",
        request=AddressRefusalsQuery,
        result=AddressRefusals,
        permission=Role.ADMIN,
        handler=handle_get_address_refusals,
    ),
)
