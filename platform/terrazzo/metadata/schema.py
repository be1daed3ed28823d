"""``TABLES``: all tables of the metadata database, those of entities and all others."""

from __future__ import annotations

from terrazzo.database.tables.access import PASSWORD_RESET, SECOND_FACTOR, WALL_LINK
from terrazzo.database.tables.analysis import ANALYSIS
from terrazzo.database.tables.configurations import TERMINAL_CONFIGURATION
from terrazzo.database.tables.events import EVENT_TABLES, HANDOVER
from terrazzo.database.tables.imports import UNFINISHED_IMPORT
from terrazzo.database.tables.messages import MESSAGES
from terrazzo.database.tables.presence import PRESENCE_DAY
from terrazzo.database.tables.registry import (
    AUDIT,
    CAMPAIGN_TERMINAL,
    CHANGE,
    COMMAND,
    FORMER_TERMINAL,
    OBJECT_TERMINAL,
    OUT_OF_SERVICE,
    RECORD_LOG,
    REVOKED_TOKEN,
    TERMINAL_TAG,
)
from terrazzo.database.tables.replays import REPLAY
from terrazzo.database.tables.usage import COMPANY_USAGE
from terrazzo.metadata.definitions.registry import ENTITIES

ALL_TABLES = (
    *(entity.table for entity in ENTITIES),
    OBJECT_TERMINAL,
    COMMAND,
    CAMPAIGN_TERMINAL,
    FORMER_TERMINAL,
    REVOKED_TOKEN,
    TERMINAL_TAG,
    OUT_OF_SERVICE,
    CHANGE,
    AUDIT,
    RECORD_LOG,
    *EVENT_TABLES,
    *ANALYSIS,
    *MESSAGES,
    REPLAY,
    COMPANY_USAGE,
    PASSWORD_RESET,
    SECOND_FACTOR,
    WALL_LINK,
    HANDOVER,
    TERMINAL_CONFIGURATION,
    PRESENCE_DAY,
    UNFINISHED_IMPORT,
)
