"""All operations."""

from __future__ import annotations

from terrazzo.api import (
    accounts,
    audit,
    broker,
    commands,
    grid,
    objects,
    presence,
    rejects,
    scripts,
    session,
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
        *scripts.OPERATIONS,
        *presence.OPERATIONS,
        *grid.OPERATIONS,
        *rejects.OPERATIONS,
        *commands.OPERATIONS,
        *broker.OPERATIONS,
        *audit.OPERATIONS,
        *bulk.OPERATIONS,
    )
)
