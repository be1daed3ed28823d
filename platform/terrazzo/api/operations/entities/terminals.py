"""Terminals and their configurations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from terrazzo.api.kernel.conditions import ListRequest, conditions_of
from terrazzo.api.kernel.fields import Flag, Moment, Names
from terrazzo.api.kernel.services import Services
from terrazzo.api.operations.entities.actions import EntityActions
from terrazzo.database.pages import OrderBy
from terrazzo.database.port import Conditions, Row, Rows
from terrazzo.domain.actor import Actor
from terrazzo.domain.terminal import OutOfService
from terrazzo.metadata.definitions.registry import CONFIGURATION, TERMINAL
from terrazzo.metadata.repositories.terminals import Configured
from terrazzo.terminals.search import TerminalQuery
from terrazzo.times import format_spaced

SIGNED = frozenset({"created_by", "last_modified_by", "is_available"})
_CONFIGURED = SIGNED | {"name"}
_DESCRIBED = _CONFIGURED | {"type", "config_id", "mode", "username", "pin", "access"}


class TerminalFilter(ListRequest):
    """Terminals that have all of the ``tags``, are connected (``online`` 1) or not (0), and were last seen between two
    times, both inclusive; one that was never seen counts as seen before everything.

    ``configuration``: of those whose configuration is delivered the ones that report what is wanted (``agrees``),
    something else (``differs``), or nothing so far (``unreported``). ``refused_after``: refused at this time or later
    (``get_terminal_status`` says why). ``out_of_service``: those that are (1) or are not (0). ``silent_since``: those
    that are connected and reported last before this time. ``site``: those that are or were connected last from this
    address, as the floods of ``get_attention`` name it (IPv6: its /64); with ``refused_after`` that were refused last
    there. ``order_by`` may name ``online``, ``last_seen`` and ``last_refused``, too.
    """

    tags: Names = msgspec.field(default_factory=Names)
    online: Flag | None = None
    seen_after: Moment | None = None
    seen_before: Moment | None = None
    refused_after: Moment | None = None
    out_of_service: Flag | None = None
    silent_since: Moment | None = None
    site: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    configuration: Configured | None = None

    def query(self, conditions: Conditions, order_by: OrderBy) -> TerminalQuery:
        """The same for the search, with conditions and an order that name columns."""
        return TerminalQuery(
            conditions=conditions,
            tags=[tag.strip() for name in self.tags.names for tag in name.split(",")] if self.tags.names else (),
            online=None if self.online is None else bool(self.online),
            seen_after_us=None if self.seen_after is None else self.seen_after.time_us,
            seen_before_us=None if self.seen_before is None else self.seen_before.time_us,
            refused_after_us=None if self.refused_after is None else self.refused_after.time_us,
            out_of_service=None if self.out_of_service is None else bool(self.out_of_service),
            silent_since_us=None if self.silent_since is None else self.silent_since.time_us,
            site=self.site,
            configured=self.configuration,
            order_by=order_by,
        )


class TerminalList(TerminalFilter):
    """A page of the terminals; ``uids`` restricts to those."""

    uids: Names = msgspec.field(default_factory=Names)


async def page_of_terminals(
    services: Services, actor: Actor, request: TerminalFilter, conditions: Conditions, order_by: OrderBy
) -> Rows:
    """The rows of a page of terminals."""
    query = request.query(conditions, order_by)
    return await services.terminal_search.page(actor, query, page_index=request.page_index, page_size=request.page_size)


async def _page_among(services: Services, actor: Actor, request: TerminalList) -> Rows:
    conditions, names = conditions_of(request), request.uids.names
    if names:
        conditions = conditions._replace(within=[*conditions.within, ("uid", names)])
    query = request.query(conditions, request.order_by.by)
    return await services.terminal_search.page(actor, query, page_index=request.page_index, page_size=request.page_size)


class OutOfServiceRecord(msgspec.Struct):
    """Since and until when a terminal is out of service, why, and the name of the user who said so."""

    since: str
    until: str
    reason: str
    by: str


PRESENCE: Mapping[str, Any] = {"online": Flag, "last_seen": str, "out_of_service": OutOfServiceRecord | None}
"""What a record says of the terminal's connection, with the types; ``out_of_service``: null while it is in service."""


def presence_of(services: Services, row: Row) -> dict[str, Any]:
    """Whether a terminal is connected, and when it was last seen; empty: never."""
    uid = row["uid"]
    online, seen_us = services.bus.seen(uid)
    last_seen = "" if seen_us is None else format_spaced(seen_us, services.zone)
    out = services.registry.out_of_service.get(uid)
    return {
        "online": int(online),
        "last_seen": last_seen,
        "out_of_service": None if out is None else _out_of_service(services, out),
    }


def _out_of_service(services: Services, found: OutOfService) -> OutOfServiceRecord:
    since, until = (format_spaced(each, services.zone) for each in (found.since_us, found.until_us))
    return OutOfServiceRecord(since, until, found.reason, found.username)


def _with_presence(services: Services, row: Row) -> Mapping[str, Any]:
    """``terminal_object_map``: section 1 "Terminal": null in every example."""
    return {"terminal_object_map": None, **presence_of(services, row)}


TERMINALS = EntityActions(
    title="terminal",
    name="terminal",
    create="create_terminal",
    update="update_terminal",
    delete="delete_terminal",
    get_item="get_terminal_item",
    get_list="get_terminal_list",
    entity=TERMINAL,
    repository=lambda services: services.entities.terminals,
    required=SIGNED | {"access"},
    required_to_update=_DESCRIBED,
    keys=("uid",),
    is_paged=False,
    more={"terminal_object_map": None, **PRESENCE},
    extend_one=_with_presence,
    list_request=TerminalList,
    read_page=_page_among,
)

CONFIGURATIONS = EntityActions(
    title="terminal configuration",
    name="terminal_config",
    create="create_terminal_config",
    update="update_terminal_config",
    delete="delete_terminal_config",
    get_item="get_terminal_config_item",
    get_list="get_terminal_config_list",
    entity=CONFIGURATION,
    repository=lambda services: services.entities.configurations,
    required=SIGNED,
    required_to_update=_CONFIGURED,
    keys=("uid",),
    is_paged=False,
)

OPERATIONS = (*TERMINALS.operations(), *CONFIGURATIONS.operations())
