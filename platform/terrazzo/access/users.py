"""Logging in, and the first administrator."""

from __future__ import annotations

import asyncio
import getpass
import logging
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from terrazzo.access.tokens import Tokens, actor_of
from terrazzo.audit.entry import AuditEntry, about_user
from terrazzo.audit.log import AuditLog
from terrazzo.crypto.key_file import write_private
from terrazzo.crypto.passwords import hash_password, verify_password
from terrazzo.database.entity import COMPANY
from terrazzo.database.port import Conditions, Row
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.errors import NotAuthenticated, Throttled
from terrazzo.metadata.entities import Entities
from terrazzo.throttle import Throttle
from terrazzo.times import now_us

ADMIN = "admin"
PASSWORD_FILE = "admin-password"

_log = logging.getLogger(__name__)
_AT_ONCE = 2  # password checks: each costs 19 MiB and some 20 ms of a core
_WIDER = 10  # times the limit: failures of one name from everywhere, of one address with every name


def at_command_line() -> Actor:
    """The actor of commands that are typed on the machine itself: all rights, named in the audit log."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        name = f"user {os.getuid()}"
    return msgspec.structs.replace(SYSTEM, address=f"command line, {name}")


class UserLogin:
    """Turns a name and a password into a token, and has the audit log say so, or why not.

    Failures are limited for each user at each address; ten times as many for a user from all addresses together and
    for an address with all names, so that a stranger can't lock a user out cheaply nor try every name.
    """

    def __init__(
        self,
        entities: Entities,
        tokens: Tokens,
        audit: AuditLog,
        *,
        failures: int = 10,
        window_s: float = 300,
        clock: Callable[[], int] = now_us,
    ) -> None:
        self._entities = entities
        self._tokens = tokens
        self._audit = audit
        self._clock = clock
        self._near = Throttle(failures, window_s)
        self._wide = Throttle(failures * _WIDER, window_s)
        self._told = Throttle(1, window_s)  # who is throttled: told once a window, or guessing would fill the log
        self._checking = asyncio.Semaphore(_AT_ONCE)

    async def login(self, username: str, password: str, address: str) -> tuple[Row, str]:
        """The user's record and a new token.

        Raises:
            NotAuthenticated: wrong credentials, or the user or the company is deactivated.
            Throttled: too many failures.
        """
        async with self._checking:
            await self._check_failures(username, address)
            row = await self._entities.users.by_name(username)
            if not await verify_password(None if row is None else row["password_hash"], password) or row is None:
                self._count_failure(username, address)
                await self._refuse(username, address, row, "wrong credentials")
                raise NotAuthenticated("username or password is wrong")
        self._near.succeed(_near_key(username, address))
        if not row["is_active"] or not self._tokens.is_open(row[COMPANY]):
            await self._refuse(username, address, row, "deactivated")
            raise NotAuthenticated("username: the user or the company is deactivated")
        await self._audit.note(about_user(msgspec.structs.replace(actor_of(row), address=address), "login"))
        return self._entities.users.public(row), self._tokens.issue_for(row)

    async def _check_failures(self, username: str, address: str) -> None:
        now_s = self._clock() / 1_000_000
        waits = [self._wide.wait_s(key, now_s) for key in _wide_keys(username, address)]
        wait_s = max(self._near.wait_s(_near_key(username, address), now_s), *waits)
        if wait_s > 0:
            await self._tell_throttled(username, address, now_s)
            raise Throttled(f"username: too many failed logins, try again in {wait_s:.0f} s", wait_s)

    async def _tell_throttled(self, username: str, address: str, now_s: float) -> None:
        key = _near_key(username, address)
        if self._told.check(key, now_s):
            self._told.fail(key, now_s)
            await self._refuse(username, address, await self._entities.users.by_name(username), "too many failures")

    async def _refuse(self, username: str, address: str, row: Row | None, reason: str) -> None:
        """Notes a refused login; one under a name that nobody has is no company's business."""
        actor = Actor(user_id=0, username=username, company_id=0, role=Role.VIEWER) if row is None else actor_of(row)
        entry = AuditEntry(
            actor=msgspec.structs.replace(actor, address=address),
            company_id=actor.company_id or None,
            action="login_refused",
            entity="user",
            record_id=actor.user_id or None,
            uid=username,
            after={"reason": reason},
        )
        await self._audit.note(entry)

    def _count_failure(self, username: str, address: str) -> None:
        now_s = self._clock() / 1_000_000
        self._near.fail(_near_key(username, address), now_s)
        for key in _wide_keys(username, address):
            self._wide.fail(key, now_s)


def _near_key(username: str, address: str) -> str:
    return f"{username[:64]} at {address}"


def _wide_keys(username: str, address: str) -> tuple[str, str]:
    return f"user {username[:64]}", f"address {address}"


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
    if not (await entities.companies.page(SYSTEM, page_size=1)).total:
        await entities.companies.create(SYSTEM, {"name": "default", "description": "Made at the first start"})
    values = {"username": ADMIN, "role": "admin", "is_super": 1, "is_default": 1}
    await entities.users.create_hashed(SYSTEM, values, await hash_password(password))
    _log.info("made the first administrator %s", ADMIN)
    return FirstAdmin(ADMIN, password, file)
