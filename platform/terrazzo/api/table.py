"""All operations."""

from __future__ import annotations

from terrazzo.api import (
    accounts,
    audit,
    balance,
    broker,
    campaigns,
    charts,
    commands,
    events,
    grid,
    labels,
    live,
    mapping_check,
    messages,
    mosaic,
    objects,
    presence,
    pusher,
    rejects,
    replay,
    rules,
    scripts,
    session,
    statistics,
    terminals,
)
from terrazzo.api.operation import Table
from terrazzo.bulk import operations as bulk

TABLE = Table(
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
