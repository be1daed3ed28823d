"""All component paths: the rows that HTTP serves beside the gateway (section 2)."""

from __future__ import annotations

from terrazzo.api.kernel.operation import OperationTable
from terrazzo.api.operations import files, pusher
from terrazzo.api.paths import events, grid, management, messenger, mosaic, offline, service, statistics

PATHS = OperationTable(
    (
        *grid.PATHS,
        *mosaic.PATHS,
        *events.PATHS,
        *service.PATHS,
        *offline.PATHS,
        *management.PATHS,
        files.DISCARD,
        *statistics.PATHS,
        pusher.PUBLISH,
        *messenger.PATHS,
    )
)
