"""The table of the gateway's actions, in the order of the documents."""

from __future__ import annotations

from terrazzo.api.kernel.operation import OperationTable
from terrazzo.api.operations import (
    attention,
    audit,
    balance,
    broker,
    bulk,
    commands,
    events,
    labels,
    live,
    lockouts,
    mapping_check,
    messages,
    pusher,
    replay,
    search,
    session,
    statistics,
    terminal_changes,
    terminal_status,
)
from terrazzo.api.operations.entities import (
    accounts,
    campaigns,
    event_definitions,
    objects,
    rules,
    scripts,
    terminals,
    variable_definitions,
)
from terrazzo.api.operations.event_handling import batches, handovers
from terrazzo.api.operations.history import (
    charts,
    former_terminals,
    grid,
    mapped_messages,
    mosaic,
    object_log,
    presence,
    rejects,
    rule_commands,
)
from terrazzo.api.operations.machine import retained, status
from terrazzo.api.operations.provisioning import claim_keys, registration, terminal_authorities
from terrazzo.api.operations.sign_in import api_keys, own_session, passwords, second_factor, single_sign_on, wall_links
from terrazzo.api.operations.terminal_care import out_of_service, traces

TABLE = OperationTable(
    (
        *session.OPERATIONS,
        *own_session.OPERATIONS,
        *passwords.OPERATIONS,
        *second_factor.OPERATIONS,
        *single_sign_on.OPERATIONS,
        *accounts.OPERATIONS,
        *api_keys.OPERATIONS,
        *terminals.OPERATIONS,
        *registration.OPERATIONS,
        *claim_keys.OPERATIONS,
        *terminal_authorities.OPERATIONS,
        *terminal_changes.OPERATIONS,
        *objects.OPERATIONS,
        *event_definitions.OPERATIONS,
        *variable_definitions.OPERATIONS,
        *mapping_check.OPERATIONS,
        *replay.OPERATIONS,
        *scripts.OPERATIONS,
        *wall_links.OPERATIONS,
        *statistics.OPERATIONS,
        *balance.OPERATIONS,
        *attention.OPERATIONS,
        *search.OPERATIONS,
        *terminal_status.OPERATIONS,
        *presence.OPERATIONS,
        *former_terminals.OPERATIONS,
        *grid.OPERATIONS,
        *mapped_messages.OPERATIONS,
        *mosaic.OPERATIONS,
        *events.OPERATIONS,
        *batches.OPERATIONS,
        *handovers.OPERATIONS,
        *out_of_service.OPERATIONS,
        *traces.OPERATIONS,
        *labels.OPERATIONS,
        *object_log.OPERATIONS,
        *charts.OPERATIONS,
        *live.OPERATIONS,
        *rejects.OPERATIONS,
        *commands.OPERATIONS,
        *pusher.OPERATIONS,
        *campaigns.OPERATIONS,
        *broker.OPERATIONS,
        *retained.OPERATIONS,
        *status.OPERATIONS,
        *audit.OPERATIONS,
        *lockouts.OPERATIONS,
        *bulk.OPERATIONS,
        *rules.OPERATIONS,
        *messages.OPERATIONS,
        *rule_commands.OPERATIONS,
    )
)
