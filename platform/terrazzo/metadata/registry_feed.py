"""Fills the in-memory ``Registry`` from the database, and keeps it equal to it."""

from __future__ import annotations

import msgspec

from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Row
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.metadata.definitions.registry import ENTITIES, OBJECT, TERMINAL
from terrazzo.metadata.repositories.repository import Changed, EntityRepository


async def load_registry(database: Database, secrets: Secrets) -> Registry:
    """A registry with all terminals and the ``terminal_list`` of all objects.

    Raises:
        SecretUnreadable: the secrets were sealed with another key.
    """
    registry = Registry()
    terminals, objects = (
        EntityRepository(entity, database=database, secrets=secrets, entities=ENTITIES) for entity in (TERMINAL, OBJECT)
    )
    async for row in terminals.every():
        registry.put_terminal(terminal_of(row))
    async for row in objects.every():
        registry.put_object(row["id"], row["terminal_list"] or (), company_id=row[COMPANY])
    return registry


def terminal_of(row: Row) -> Terminal:
    """Converts a row of the table ``terminal`` into the ``Terminal`` that broker and ingest use."""
    return Terminal(
        id=row["id"],
        uid=row["uid"],
        name=row["name"],
        company_id=row[COMPANY],
        type=row["type"],
        mode=row["mode"],
        username=row["username"],
        pin=row["pin"],
        access=row["access"],
        topic=row["topic"],
        is_route=bool(row["is_route"]),
        session_expiry_s=row["session_expiry"],
        keep_alive_s=row["keep_alive"],
        encryption=bool(row["encryption"]),
        dixie=bool(row["dixie"]),
        rsa_privatekey=row["rsa_privatekey"],
        is_available=bool(row["is_available"]),
        config_id=row["config_id"],
        activated_us=row["activated"],
    )


class RegistryFeed:
    """Puts announced changes into a registry; its listeners hear only of real ones."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def on_terminal(self, changed: Changed) -> None:
        """A terminal was created, changed or deleted."""
        before = self._registry.terminal(changed.uid)
        if changed.row is None:
            if before is not None and before.id == changed.record_id:  # not a new one with the same uid
                self._registry.drop_terminal(changed.uid)
            return
        after = terminal_of(changed.row)
        # The first login is no change of the terminal: it must not end the connection that made it.
        if before is None or msgspec.structs.replace(before, activated_us=after.activated_us) != after:
            self._registry.put_terminal(after)

    def on_object(self, changed: Changed) -> None:
        """An object was created, changed or deleted."""
        if changed.row is None:
            self._registry.drop_object(changed.record_id)
        else:
            uids = changed.row["terminal_list"] or ()
            self._registry.put_object(changed.record_id, uids, company_id=changed.row[COMPANY])
