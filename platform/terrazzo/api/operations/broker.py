"""The broker itself, for operators: who is connected, who subscribes to what, and ending a connection."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import tzinfo
from typing import TypeVar

import msgspec

from terrazzo.api.kernel.fields import Flag, Key
from terrazzo.api.kernel.operation import Operation
from terrazzo.api.kernel.paging import Paged, PageRequest, page_offset, paged
from terrazzo.api.kernel.scope import find_terminal, sees
from terrazzo.api.kernel.services import Services
from terrazzo.audit.entry import AuditEntry
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import NotFound
from terrazzo.ports.bus import BrokerSubscription, ConnectedClient
from terrazzo.times import format_spaced

_Seen = TypeVar("_Seen", ConnectedClient, BrokerSubscription)


class BrokerStatusQuery(msgspec.Struct):
    """No fields."""


class BrokerStatus(msgspec.Struct):
    """Counters since the start; ``connections``, ``clients``, ``sessions`` and ``subscriptions`` are of now."""

    counters: dict[str, int]


class ClientList(PageRequest):
    """Connected clients; ``terminal_id`` restricts to one, ``slow`` 1 to those that are too slow: the worst come first.

    Slow is a client that messages were dropped for, and a subscription of a session in which some wait.
    """

    terminal_id: Key | None = None
    slow: Flag = 0


class ClientRecord(msgspec.Struct):
    """One live connection. ``messages_dropped``: messages to it at QoS 0 that it was too slow for."""

    client_id: str
    username: str
    protocol: str
    address: str
    port: int
    listener: str
    since: str
    last_seen: str
    keep_alive: int
    messages_in: int
    messages_out: int
    messages_dropped: int


class KickRequest(msgspec.Struct, kw_only=True):
    """The client id of the connection to end."""

    client_id: Key


class KickResult(msgspec.Struct):
    """The client that was disconnected."""

    client_id: str


async def handle_get_broker_status(services: Services, actor: Actor, request: BrokerStatusQuery) -> BrokerStatus:
    """The broker's counters, of all companies together."""
    return BrokerStatus(dict(services.broker.counters()))


async def handle_get_client_list(services: Services, actor: Actor, request: ClientList) -> Paged[ClientRecord]:
    """A page of the connected clients that the actor may see, by client id."""
    found = await _seen(services, actor, request.terminal_id, services.broker.clients())
    found.sort(key=lambda each: each.client_id)
    if request.slow:
        found = [each for each in found if each.messages_dropped]
        found.sort(key=lambda each: -each.messages_dropped)
    return _page(request, found, lambda each: _shown(each, services.zone))


async def handle_get_subscription_list(
    services: Services, actor: Actor, request: ClientList
) -> Paged[BrokerSubscription]:
    """A page of subscriptions by client id and filter, those of absent clients included."""
    found = await _seen(services, actor, request.terminal_id, services.broker.subscriptions())
    found.sort(key=lambda each: (each.client_id, each.filter))
    if request.slow:
        found = [each for each in found if each.queued]
        found.sort(key=lambda each: -each.queued)
    return _page(request, found, lambda each: each)


async def handle_kick_client(services: Services, actor: Actor, request: KickRequest) -> KickResult:
    """Ends a client's connection. It may come back at once; to keep it out, set ``is_available`` to 0."""
    try:
        uid = await find_terminal(services, actor, request.client_id)
    except NotFound:
        raise NotFound("client_id", request.client_id) from None
    await services.audit.note(_kick_entry(services, actor, uid))
    if not services.broker.kick(uid):
        raise NotFound("client_id", request.client_id)
    return KickResult(uid)


def _kick_entry(services: Services, actor: Actor, uid: str) -> AuditEntry:
    terminal = services.registry.terminal(uid)
    company, record_id = (None, None) if terminal is None else (terminal.company_id, terminal.id)
    return AuditEntry(actor=actor, company_id=company, action="kick", entity="terminal", record_id=record_id, uid=uid)


async def _seen(services: Services, actor: Actor, key: str | int | None, found: Iterable[_Seen]) -> list[_Seen]:
    """Connections or subscriptions of one terminal, or of all terminals of the actor's company."""
    if key is not None:
        uid = await find_terminal(services, actor, key)
        return [each for each in found if each.client_id == uid]
    if actor.is_super:
        return list(found)
    owners = ((each, services.registry.terminal(each.client_id)) for each in found)
    return [each for each, owner in owners if owner is not None and sees(actor, owner)]


_Shown = TypeVar("_Shown")


def _page(request: ClientList, found: list[_Seen], show: Callable[[_Seen], _Shown]) -> Paged[_Shown]:
    start = page_offset(request)
    return paged(request, [show(each) for each in found[start : start + request.page_size]], len(found))


def _shown(client: ConnectedClient, zone: tzinfo) -> ClientRecord:
    return ClientRecord(
        client_id=client.client_id,
        username=client.username,
        protocol=client.protocol,
        address=client.address,
        port=client.port,
        listener=client.listener,
        since=format_spaced(client.since_us, zone),
        last_seen=format_spaced(client.last_seen_us, zone),
        keep_alive=client.keep_alive_s,
        messages_in=client.messages_in,
        messages_out=client.messages_out,
        messages_dropped=client.messages_dropped,
    )


OPERATIONS = (
    Operation(
        name="get_broker_status",
        summary="Connections, sessions, subscriptions, messages, refusals and drops of the broker",
        request=BrokerStatusQuery,
        result=BrokerStatus,
        permission=Role.ADMIN,
        handler=handle_get_broker_status,
    ),
    Operation(
        name="get_client_list",
        summary="Live MQTT connections",
        request=ClientList,
        result=Paged[ClientRecord],
        permission=Role.VIEWER,
        handler=handle_get_client_list,
    ),
    Operation(
        name="get_subscription_list",
        summary="Subscriptions of connected and absent clients, with what waits for them",
        request=ClientList,
        result=Paged[BrokerSubscription],
        permission=Role.VIEWER,
        handler=handle_get_subscription_list,
    ),
    Operation(
        name="kick_client",
        summary="End a client's connection",
        request=KickRequest,
        result=KickResult,
        permission=Role.ADMIN,
        handler=handle_kick_client,
    ),
)
