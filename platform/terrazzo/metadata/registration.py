"""Registers terminals of which only the uid is known: everything else has a default, the pin is made up."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

from terrazzo.database.entity import COMPANY
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.claims.claim_key import ClaimKey
from terrazzo.domain.terminal import Terminal
from terrazzo.errors import BadParameter, NotFound, NotPermitted
from terrazzo.metadata.repositories.claim_keys import ClaimKeyRepository
from terrazzo.metadata.repositories.repository import EntityRepository
from terrazzo.metadata.repositories.terminals import TerminalRepository
from terrazzo.reasons import say

DEFAULT_CONFIGURATION = "default"
PIN_CHARS = 16  # of 31 characters each: 79 bits
_PIN_CHARACTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # none that is taken for another when it is typed from paper
_USERNAME_CHARS = 32


def new_pin() -> str:
    """A random pin."""
    return "".join(secrets.choice(_PIN_CHARACTERS) for _ in range(PIN_CHARS))


class TerminalRegistration:
    """Creates terminals with what is given, and defaults for the rest."""

    def __init__(
        self,
        terminals: TerminalRepository,
        configurations: EntityRepository,
        companies: EntityRepository,
        claim_keys: ClaimKeyRepository,
    ) -> None:
        self._claim_keys = claim_keys
        self._terminals = terminals
        self._configurations = configurations
        self._companies = companies
        self._turn = asyncio.Lock()  # two at once would both make a default configuration

    async def register(self, actor: Actor, values: Mapping[str, Any]) -> Row:
        """Stores a new terminal; returns its row, with the pin in the clear.

        Args:
            values: the columns that are given; ``uid`` is one of them.

        Raises:
            BadParameter, Conflict, NotPermitted: as at creation.
        """
        given = {name: value for name, value in values.items() if value not in (None, "")}
        return await self._terminals.create(actor, await self.complete(actor, given))

    async def complete(self, actor: Actor, given: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of a new terminal: those given, and defaults; the company's default configuration is there then.

        Raises:
            BadParameter, NotPermitted: a company that there isn't, or another one's.
        """
        uid = str(given["uid"])
        defaults = {
            "name": uid,
            "username": uid[:_USERNAME_CHARS].strip(),
            "type": "Other",
            "mode": "pwd",
            "pin": new_pin(),
        }
        made = defaults | dict(given)
        if "config_id" not in made:
            made["config_id"] = await self.default_configuration(actor, given.get(COMPANY))
        return made

    async def create_claimed(self, key: ClaimKey, terminal: Terminal, address: str) -> None:
        """Stores a terminal that has come in by a claim key, and counts the use; the key is the actor.

        Raises:
            Conflict: the uid is taken, or the key has been used up, disabled or deleted meanwhile.
        """
        company = key.company_id
        actor = Actor(user_id=0, username=f"claim key {key.uid}", company_id=company, role=Role.ADMIN, address=address)
        names = ("uid", "name", "type", "mode", "username", "pin", "access", "topic", "config_id")
        values = {name: getattr(terminal, name) for name in names}
        await self._terminals.create_claimed(actor, values, key.id)
        await self._claim_keys.refresh([MetadataChange("claim_key", key.id, key.uid)])

    async def default_configuration(self, actor: Actor, company: int | str | None) -> int:
        """The id of the configuration that is called so, the oldest one; made where there is none."""
        company_id = await self._company(actor, company)
        named = Conditions(all_of=[("name", "=", DEFAULT_CONFIGURATION), (COMPANY, "=", company_id)])
        async with self._turn:
            found = await self._configurations.page(actor, page_size=1, conditions=named)
            if found.rows:
                return int(found.rows[0]["id"])
            values = {"name": DEFAULT_CONFIGURATION, COMPANY: company_id}
            return int((await self._configurations.create(actor, values))["id"])

    async def _company(self, actor: Actor, given: int | str | None) -> int:
        if given is None or (not actor.is_super and str(given) == str(actor.company_id)):
            return actor.company_id
        if not actor.is_super:
            raise NotPermitted(say("company_of_others", field=COMPANY))
        try:
            return int((await self._companies.item(actor, given))["id"])
        except NotFound:
            raise BadParameter(COMPANY, say("no_company", company=f"{given!r}")) from None
