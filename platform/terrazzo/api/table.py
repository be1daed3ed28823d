"""All operations."""

from __future__ import annotations

from terrazzo.api import broker, commands, grid, presence, rejects, session, terminals
from terrazzo.api.operation import Table

TABLE = Table(
    (
        *session.OPERATIONS,
        *terminals.OPERATIONS,
        *presence.OPERATIONS,
        *grid.OPERATIONS,
        *rejects.OPERATIONS,
        *commands.OPERATIONS,
        *broker.OPERATIONS,
    )
)
