"""Fills the in-memory ``Registry`` from the database, and keeps it equal to it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from sys import intern
from typing import Any

import msgspec

from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Row
from terrazzo.domain.certificates.authority import ClientAuthority, parse_authority
from terrazzo.domain.claims.claim_key import ClaimKey
from terrazzo.domain.payloads.form import PayloadForm, parse_payload_form
from terrazzo.domain.registry import Registry
from terrazzo.domain.terminal import Terminal
from terrazzo.metadata.definitions.registry import (
    CLAIM_KEY,
    CONFIGURATION,
    ENTITIES,
    OBJECT,
    TERMINAL,
    TERMINAL_AUTHORITY,
)
from terrazzo.metadata.definitions.registry import COMPANY as COMPANIES
from terrazzo.metadata.repositories.repository import EntityRepository, RowChange

_AT_ONCE = 100  # terminals of a company that is opened or closed, or of a configuration
_OF_TERMINALS = (
    *("uid", "name", COMPANY, "type", "mode", "username", "pin", "access", "topic", "is_route", "session_expiry"),
    *("keep_alive", "encryption", "dixie", "rsa_privatekey", "is_available", "config_id", "activated", "series"),
)
_COLUMNS = {
    "company_id": COMPANY,
    "session_expiry_s": "session_expiry",
    "keep_alive_s": "keep_alive",
    "activated_us": "activated",
}
"""The columns that have another name than what a ``Terminal`` has of them."""
_OF_OBJECTS = (COMPANY, "terminal_list")

_log = logging.getLogger(__name__)


async def load_registry(database: Database, secrets: Secrets) -> Registry:
    """A registry with all terminals and the ``terminal_list`` of all objects.

    Raises:
        SecretUnreadable: the secrets were sealed with another key.
    """
    registry = Registry()
    companies, configurations, terminals, objects, claim_keys, authorities = (
        EntityRepository(entity, database=database, secrets=secrets, entities=ENTITIES)
        for entity in (COMPANIES, CONFIGURATION, TERMINAL, OBJECT, CLAIM_KEY, TERMINAL_AUTHORITY)
    )
    async for row in configurations.every():
        if (form := form_of(row)) is not None:
            registry.forms[row["id"]] = form
    async for row in companies.every():
        registry.set_company(row["id"], is_available=bool(row["is_available"]))
    async for columns in terminals.every_column(_OF_TERMINALS):
        registry.load_terminals(_terminals(registry, columns))
    async for ids, company_ids, lists in objects.every_column(_OF_OBJECTS):
        registry.load_objects(ids, company_ids, [tuple(map(intern, each or ())) for each in lists])
    async for row in claim_keys.every():
        registry.claim_keys.put(claim_key_of(row))
    async for row in authorities.every():
        if row["is_available"]:
            registry.authorities.put(authority_of(row))
    return registry


def authority_of(row: Row) -> ClientAuthority:
    """Converts a row of the table ``terminal_authority`` into the ``ClientAuthority`` that logins use."""
    return ClientAuthority(row["id"], row[COMPANY], parse_authority(row["certificate"]))


def claim_key_of(row: Row) -> ClaimKey:
    """Converts a row of the table ``claim_key`` into the ``ClaimKey`` that logins use."""
    names = ("id", "uid", "key_hash", "uses", "used", "prefix", "config_id", "type", "mode", "access", "topic")
    return ClaimKey(
        company_id=row[COMPANY],
        expires_us=row["expires"],
        is_available=bool(row["is_available"]),
        **{name: row[name] for name in names},
    )


def form_of(row: Row) -> PayloadForm | None:
    """How a configuration says that payloads are read; None: as objects of points, also where it can't be read."""
    try:
        return parse_payload_form(row["payload"] or {})
    except ValueError as error:
        _log.warning("configuration %s: payload is not used: %s", row["uid"], error)
        return None


def terminal_of(row: Row, registry: Registry) -> Terminal:
    """Converts a row of the table ``terminal`` into the ``Terminal`` that broker and ingest use."""
    return _terminals(registry, [[row["id"]], *([row[name]] for name in _OF_TERMINALS)])[0]


def _terminals(registry: Registry, columns: Sequence[Sequence[Any]]) -> list[Terminal]:
    """The terminals of these columns: ``id`` and ``_OF_TERMINALS``.

    Texts that many have, and the uid that objects name, are there once in memory.
    """
    of = dict(zip(("id", *_OF_TERMINALS), columns, strict=True))
    for name in ("uid", "type", "mode", "access", "topic"):
        of[name] = list(map(intern, of[name]))
    for name in ("is_route", "encryption", "dixie", "is_available"):
        of[name] = list(map(bool, of[name]))
    of["username"] = [uid if name == uid else name for uid, name in zip(of["uid"], of["username"], strict=True)]
    of["series"] = [name or "" for name in of["series"]]
    of["company_is_available"] = list(map(registry.is_company_available, of[COMPANY]))
    of["form"] = list(map(registry.forms.get, of["config_id"]))
    return list(map(Terminal, *(of[_COLUMNS.get(name, name)] for name in Terminal.__struct_fields__)))


class RegistryFeed:
    """Puts announced changes into a registry; its listeners hear only of real ones."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry

    def on_terminal(self, changed: RowChange) -> None:
        """A terminal was created, changed or deleted."""
        before = self._registry.terminal(changed.uid)
        if changed.row is None:
            if before is not None and before.id == changed.record_id:  # not a new one with the same uid
                self._registry.drop_terminal(changed.uid)
            return
        after = terminal_of(changed.row, self._registry)
        # The first login is no change of the terminal: it must not end the connection that made it.
        if before is None or msgspec.structs.replace(before, activated_us=after.activated_us) != after:
            self._registry.put_terminal(after)

    def on_company(self, changed: RowChange) -> None:
        """A company was created, changed or deleted: its terminals follow, some at each turn of the loop."""
        is_available = changed.row is None or bool(changed.row["is_available"])
        if is_available != self._registry.is_company_available(changed.record_id):
            self._registry.set_company(changed.record_id, is_available=is_available)
            terminals = self._registry.terminals()
            self._follow([each.uid for each in terminals if each.company_id == changed.record_id])

    def _follow(self, uids: list[str]) -> None:
        for uid in uids[:_AT_ONCE]:
            terminal = self._registry.terminal(uid)
            if terminal is not None:
                is_available = self._registry.is_company_available(terminal.company_id)  # by now
                if is_available != terminal.company_is_available:
                    self._registry.put_terminal(msgspec.structs.replace(terminal, company_is_available=is_available))
        if len(uids) > _AT_ONCE:
            asyncio.get_running_loop().call_soon(self._follow, uids[_AT_ONCE:])

    def on_configuration(self, changed: RowChange) -> None:
        """A configuration was created, changed or deleted: its terminals follow where it says how to read payloads."""
        forms, config_id = self._registry.forms, changed.record_id
        form = None if changed.row is None else form_of(changed.row)
        if forms.get(config_id) == form:
            return
        if form is None:
            del forms[config_id]
        else:
            forms[config_id] = form
        self._follow_form([each.uid for each in self._registry.terminals() if each.config_id == config_id])

    def _follow_form(self, uids: list[str]) -> None:
        for uid in uids[:_AT_ONCE]:
            terminal = self._registry.terminal(uid)
            form = None if terminal is None else self._registry.forms.get(terminal.config_id or 0)  # by now
            if terminal is not None and terminal.form != form:
                self._registry.put_terminal(msgspec.structs.replace(terminal, form=form))
        if len(uids) > _AT_ONCE:
            asyncio.get_running_loop().call_soon(self._follow_form, uids[_AT_ONCE:])

    def on_claim_key(self, changed: RowChange) -> None:
        """A claim key was created, used or deleted."""
        if changed.row is None:
            self._registry.claim_keys.drop(changed.record_id)
        else:
            self._registry.claim_keys.put(claim_key_of(changed.row))

    def on_authority(self, changed: RowChange) -> None:
        """An authority of terminals was created or deleted."""
        if changed.row is None or not changed.row["is_available"]:
            self._registry.authorities.drop(changed.record_id)
        else:
            self._registry.authorities.put(authority_of(changed.row))

    def on_object(self, changed: RowChange) -> None:
        """An object was created, changed or deleted."""
        if changed.row is None:
            self._registry.drop_object(changed.record_id)
        else:
            uids = map(intern, changed.row["terminal_list"] or ())
            self._registry.put_object(changed.record_id, uids, company_id=changed.row[COMPANY])
