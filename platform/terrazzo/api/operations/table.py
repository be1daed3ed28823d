"""All operations."""

from __future__ import annotations

from terrazzo.api.kernel.operation import OperationTable
from terrazzo.api.operations import (
    audit,
    balance,
    broker,
    bulk,
    charts,
    commands,
    events,
    grid,
    labels,
    live,
    mapping_check,
    messages,
    mosaic,
    pusher,
    rejects,
    replay,
    session,
    statistics,
)
from terrazzo.api.operations import terminal_status as presence
from terrazzo.api.operations.entities import accounts, campaigns, objects, rules, scripts, terminals

TABLE = OperationTable(
    (
        *session.OPERATIONS,
        *accounts.OPERATIONS,
        *terminals.OPERATIONS,
        *objects.OPERATIONS,
        *mapping_check.OPERATIONS,
        *replay.OPERATIONS,
        *scripts.OPERATIONS,
        *statistics.OPERATIONS,
        *balance.OPERATIONS,
        *presence.OPERATIONS,
        *grid.OPERATIONS,
        *mosaic.OPERATIONS,
        *events.OPERATIONS,
        *labels.OPERATIONS,
        *charts.OPERATIONS,
        *live.OPERATIONS,
        *rejects.OPERATIONS,
        *commands.OPERATIONS,
        *pusher.OPERATIONS,
        *campaigns.OPERATIONS,
        *broker.OPERATIONS,
        *audit.OPERATIONS,
        *bulk.OPERATIONS,
        *rules.OPERATIONS,
        *messages.OPERATIONS,
    )
)
