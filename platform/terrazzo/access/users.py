"""Logging in, and the first administrator."""

from __future__ import annotations

import getpass
import logging
import math
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from terrazzo.access.refusals import THROTTLED, RefusalLog
from terrazzo.access.second_factor import SecondFactors, WrongCode
from terrazzo.access.tokens import Tokens, actor_of
from terrazzo.audit.entry import about_user
from terrazzo.audit.log import AuditLog
from terrazzo.crypto.key_file import write_private
from terrazzo.crypto.passwords import check_password, hash_password, verify_password
from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import SYSTEM, Actor
from terrazzo.errors import BadParameter, NotAuthenticated, NotPermitted, SecondFactorNeeded, Throttled, Unavailable
from terrazzo.logins.limiter import Attempt, LoginLimiter
from terrazzo.logins.places import Principal
from terrazzo.logins.turns import CheckTurns
from terrazzo.metadata.entities import Entities
from terrazzo.reasons import say
from terrazzo.times import now_us

ADMIN = "admin"
PASSWORD_FILE = "admin-password"

_log = logging.getLogger(__name__)
_AT_ONCE = 2  # password checks: each costs 19 MiB and some 20 ms of a core


def at_command_line() -> Actor:
    """The actor of commands that are typed on the machine itself: all rights, named in the audit log."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"user {os.getuid()}"
    return msgspec.structs.replace(SYSTEM, address=f"command line, {name}")


class UserLogin:
    """Turns a name and a password into a token, and has the audit log say so, or why not.

    Args:
        refusals: notes what was refused.
        limiter: slows down whoever guesses.
        factors: check the codes of users who have a second factor.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        entities: Entities,
        tokens: Tokens,
        audit: AuditLog,
        *,
        refusals: RefusalLog,
        limiter: LoginLimiter,
        factors: SecondFactors,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = refusals.stats
        self._entities = entities
        self._tokens = tokens
        self._audit = audit
        self._refusals = refusals
        self._limiter = limiter
        self._factors = factors
        self._clock = clock
        self._turns = CheckTurns(_AT_ONCE)
        tokens.ended.listen(limiter.forget)
        tokens.ended.listen(factors.limiter.forget)

    async def login(self, username: str, password: str, address: str, *, code: str | None = None) -> tuple[Row, str]:
        """The user's record and a new token.

        Args:
            code: of the second factor, for users who have one.

        Raises:
            NotAuthenticated: wrong credentials, or the user or the company is deactivated.
            SecondFactorNeeded: they are right, and a second factor is needed.
            Throttled: too many failures, or too many logins from that address at the same time.
            Unavailable: too many logins at the same time.
        """
        attempt, row = await self._prove(username, password, address)
        if not row["has_second_factor"] and await self.needs_second_factor(row):
            self._limiter.excuse(attempt)
            raise SecondFactorNeeded(say("second_factor_to_enrol"), needed="enrol")
        if row["has_second_factor"]:
            if not code:
                self._limiter.excuse(attempt)
                raise SecondFactorNeeded(say("second_factor_required"), needed="code")
            await self.check_code(row, code, address)
        self._limiter.succeed(attempt)
        await self._audit.note(about_user(msgspec.structs.replace(actor_of(row), address=address), "login"))
        self.stats.accepted += 1
        return self._entities.users.public(row), self._tokens.issue_for(row)

    async def change_password(self, actor: Actor, old_password: str, password: str) -> str:
        """Gives the actor another password; a new token, all others have ended.

        Raises:
            BadParameter: the old one is wrong, or the new one can't be one.
            NotPermitted: an API key asks.
            Throttled: too many wrong ones.
        """
        if actor.api_key:
            raise NotPermitted(say("api_key_changes_no_password"))
        check_password(password)
        if password == old_password:
            raise BadParameter("password", say("is_the_old_one"))
        try:
            await self.prove(actor.username, old_password, actor.address)
        except NotAuthenticated:
            raise BadParameter("old_password", say("is_wrong")) from None
        await self._entities.users.set_own_password(actor, password)
        row = await self._entities.users.by_name(actor.username)
        if row is None:
            raise NotAuthenticated(say("user_deleted"))
        return self._tokens.issue_for(row)

    async def prove(self, username: str, password: str, address: str) -> Row:
        """The record of the user who has this password, internal columns included.

        Raises:
            NotAuthenticated, Throttled, Unavailable: as ``login`` does; no second factor is asked for.
        """
        attempt, row = await self._prove(username, password, address)
        self._limiter.succeed(attempt)
        return row

    async def needs_second_factor(self, row: Row) -> bool:
        """Whether the user's company asks its users for a second factor."""
        company = await self._entities.companies.item(SYSTEM, row[COMPANY])
        return bool(company["needs_second_factor"])

    async def check_code(self, row: Row, code: str, address: str) -> None:
        """Accepts a code of the user's second factor, once.

        Raises:
            NotAuthenticated: it is wrong, or was used before.
            Throttled: too many wrong ones.
        """
        try:
            await self._factors.check(row["id"], code)
        except WrongCode as error:
            self.stats.wrong_codes += 1
            await self._refusals.note(row["username"], address, actor_of(row), error.reason)
            raise

    async def _prove(self, username: str, password: str, address: str) -> tuple[Attempt, Row]:
        """The try, which is counted as failed so far, and the record of the user who has this password."""
        attempt, row, is_right = await self._check(username, password, address)
        user = None if row is None else actor_of(row)
        if row is None or user is None or not is_right:
            self.stats.wrong_credentials += 1
            await self._refusals.note(username, address, user, "wrong credentials")
            raise NotAuthenticated(say("wrong_user_or_password"))
        if not row["is_active"] or not self._tokens.is_open(row[COMPANY]):
            self.stats.deactivated += 1
            self._limiter.succeed(attempt)
            await self._refusals.note(username, address, user, "deactivated")
            raise NotAuthenticated(say("user_or_company_deactivated"))
        return attempt, row

    async def _check(self, username: str, password: str, address: str) -> tuple[Attempt, Row | None, bool]:
        """The try, the record of whoever it names, and whether the password is right; in turn by address."""
        principal = self._principal(username)
        await self._refuse_throttled(self._limiter.look(principal, address, self._now_s()), address)
        try:
            async with self._turns.turn(address, is_known=self._limiter.is_known(principal, address)):
                attempt = self._limiter.begin(principal, address, self._now_s())
                await self._refuse_throttled(attempt, address)
                return attempt, *await self._verify(attempt, password)
        finally:
            self.stats.busy = self._turns.refused

    async def _refuse_throttled(self, attempt: Attempt, address: str) -> None:
        """Raises ``Throttled`` where the try has to wait."""
        if not attempt.wait_s:
            return
        self.stats.throttled += 1
        user = self._tokens.actor(attempt.principal.record_id)
        await self._refusals.note(attempt.principal.name, address, user, THROTTLED)
        wait_s = math.ceil(attempt.wait_s)
        raise Throttled(say("too_many_failed_logins", wait_s=wait_s), attempt.wait_s)

    async def _verify(self, attempt: Attempt, password: str) -> tuple[Row | None, bool]:
        """The record of whoever the try names, and whether the password is right."""
        try:
            row = await self._entities.users.by_name(attempt.principal.name)
        except Unavailable:
            self._limiter.excuse(attempt)
            raise
        return row, await verify_password(None if row is None else row["password_hash"], password)

    def _now_s(self) -> float:
        return self._clock() / 1_000_000

    def _principal(self, username: str) -> Principal:
        user_id = self._tokens.user_id(username)
        if user_id is None:
            return Principal(username)
        return Principal(username, user_id, self._tokens.epoch_of(user_id) or 0)


class FirstAdmin(NamedTuple):
    """The credentials made at the first start, to be shown once."""

    username: str
    password: str
    file: Path | None  # where a random password is kept


async def ensure_admin(entities: Entities, *, data_dir: Path, password: str = "") -> FirstAdmin | None:
    """Makes company 1 and a super user ``admin`` where there is no super user yet; None when there was one.

    Args:
        password: the admin's; empty for a random one that is kept in ``<data>/admin-password`` with mode 0600.
    """
    supers = Conditions(all_of=[("is_super", "=", 1)])
    if (await entities.users.page(SYSTEM, page_size=1, conditions=supers)).total:
        return None
    file = None
    if not password:
        file = data_dir / PASSWORD_FILE
        write_private(file, secrets.token_urlsafe(12) + "\n")
        password = file.read_text().strip()  # what a start that broke off left behind stands
    else:
        (data_dir / PASSWORD_FILE).unlink(missing_ok=True)  # of such a start, and not the password
    if not (await entities.companies.page(SYSTEM, page_size=1)).total:
        await entities.companies.create(SYSTEM, {"name": "default", "description": "Made at the first start"})
    values = {"username": ADMIN, "role": "admin", "is_super": 1, "is_default": 1}
    await entities.users.create_hashed(SYSTEM, values, await hash_password(password))
    _log.info("made the first administrator %s", ADMIN)
    return FirstAdmin(ADMIN, password, file)
