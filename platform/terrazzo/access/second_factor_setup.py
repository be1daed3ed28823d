"""Users turn their second factor on and off. Each step asks for the password, as a login does: no token is needed.

Whoever has to have a second factor and has none gets no token, and can enrol all the same.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from terrazzo.access.second_factor import Enrolment, SecondFactors
from terrazzo.access.tokens import Tokens, actor_of
from terrazzo.access.users import UserLogin
from terrazzo.audit.entry import about_user
from terrazzo.audit.log import AuditLog
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, NotAuthenticated, NotPermitted
from terrazzo.metadata.repositories.users import UserRepository
from terrazzo.reasons import say


class Confirmed(NamedTuple):
    """Codes that stand in for the app, each once, and a token: all others have ended."""

    recovery_codes: list[str]
    token: str


class SecondFactorSetup:
    """What users do about their second factor, and administrators about that of somebody who has lost it."""

    def __init__(
        self, login: UserLogin, factors: SecondFactors, users: UserRepository, tokens: Tokens, audit: AuditLog
    ) -> None:
        self._login = login
        self._factors = factors
        self._users = users
        self._tokens = tokens
        self._audit = audit

    async def enrol(self, username: str, password: str, address: str) -> Enrolment:
        """Makes a secret for an authenticator app; ``confirm`` puts it in force.

        Raises:
            NotAuthenticated, Throttled, Unavailable: as a login does.
            BadParameter: the user has a second factor already.
        """
        row = await self._login.prove(username, password, address)
        if row["has_second_factor"]:
            raise BadParameter("username", say("has_second_factor"))
        return await self._factors.enrol(row["id"], row["username"])

    async def confirm(self, username: str, password: str, code: str, address: str) -> Confirmed:
        """Puts the secret in force, if the app shows its codes; raises as ``enrol`` does, and for a wrong code."""
        row = await self._login.prove(username, password, address)
        if row["has_second_factor"]:
            raise BadParameter("username", say("has_second_factor"))
        recovery = await self._factors.confirm(row["id"], code)
        await self._users.set_second_factor(_at(row, address), row["id"], has=True)
        after = await self._users.by_name(row["username"])
        if after is None:
            raise NotAuthenticated(say("user_deleted"))
        await self._audit.note(about_user(_at(row, address), "login"))
        return Confirmed(recovery, self._tokens.issue_for(after))

    async def renew_recovery(self, username: str, password: str, code: str, address: str) -> list[str]:
        """New recovery codes in place of those there are; raises as a login does."""
        row = await self._proven(username, password, code, address)
        await self._audit.note(about_user(_at(row, address), "renew_recovery_codes"))
        return await self._factors.renew_recovery(row["id"])

    async def disable(self, username: str, password: str, code: str, address: str) -> None:
        """Takes one's own second factor away; all tokens end.

        Raises:
            NotAuthenticated, Throttled, Unavailable: as a login does.
            NotPermitted: the company asks for one.
        """
        row = await self._proven(username, password, code, address)
        if await self._login.needs_second_factor(row):
            raise NotPermitted(say("company_asks_second_factor"))
        await self._users.set_second_factor(_at(row, address), row["id"], has=False)

    async def remove(self, actor: Actor, key: int | str) -> Row:
        """Takes the second factor of somebody away who has lost it; all of the user's tokens end.

        Raises:
            NotFound: there is no such user in the actor's company.
            NotPermitted: of a super user, and the actor is none; or the actor's own.
        """
        if actor.user_id and (await self._users.item(actor, key))["id"] == actor.user_id:
            raise NotPermitted(say("own_second_factor"))
        return await self._users.set_second_factor(actor, key, has=False)

    async def _proven(self, username: str, password: str, code: str, address: str) -> Row:
        row = await self._login.prove(username, password, address)
        if not row["has_second_factor"]:
            raise BadParameter("username", say("has_no_second_factor"))
        await self._login.check_code(row, code, address)
        return row


def _at(row: Row, address: str) -> Actor:
    return msgspec.structs.replace(actor_of(row), address=address)
