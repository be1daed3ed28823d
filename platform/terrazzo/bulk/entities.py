"""The entities that can be imported and exported: their names, repositories and extra columns."""

from __future__ import annotations

from typing import cast

import msgspec

from terrazzo.database.entity import Entity
from terrazzo.metadata.definitions.registry import CONFIGURATION, CONTROL, CUSTOMER, MAPPING, OBJECT, TERMINAL
from terrazzo.metadata.repositories.repository import EntityRepository


class BulkEntity(msgspec.Struct, frozen=True, kw_only=True):
    """An entity that can be imported and exported."""

    name: str  # in paths, actions and on the command line
    title: str
    entity: Entity
    kept_in: str  # the repository's name
    ignored: tuple[str, ...] = ()  # columns that rows show and no table has

    def repository(self, entities: object) -> EntityRepository:
        """Its repository among all (``Entities``); imports need more of it than the protocol ``Repository`` has."""
        return cast(EntityRepository, getattr(entities, self.kept_in))


BULK_ENTITIES = (
    BulkEntity(
        name="terminal_configs", title="terminal configurations", entity=CONFIGURATION, kept_in="configurations"
    ),
    BulkEntity(
        name="terminals",
        title="terminals",
        entity=TERMINAL,
        kept_in="terminals",
        ignored=("terminal_object_map", "online", "last_seen", "out_of_service"),
    ),
    BulkEntity(name="mappings", title="mapping tables", entity=MAPPING, kept_in="mappings"),
    BulkEntity(name="controls", title="control tables", entity=CONTROL, kept_in="controls"),
    BulkEntity(name="customers", title="customers", entity=CUSTOMER, kept_in="customers"),
    BulkEntity(name="objects", title="objects", entity=OBJECT, kept_in="objects"),
)
"""Entities that others refer to come first."""
