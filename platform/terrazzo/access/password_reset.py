"""Passwords that are reset by mail: a code that is good once, for a short time, and stored as a hash.

Whoever asks for a code is told the same at once, whether or not there is such a user: what is done about it is done
afterwards, by a task of its own. Mails are sent and not journaled, so that nobody reads codes in the journal.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
import secrets
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import msgspec
import sqlalchemy as sa

from terrazzo.access.tokens import Tokens
from terrazzo.async_engine import AsyncConnection
from terrazzo.audit.entry import about_user
from terrazzo.audit.log import AuditLog
from terrazzo.crypto.passwords import check_password
from terrazzo.database.database import Database
from terrazzo.database.port import Row
from terrazzo.database.tables.access import PASSWORD_RESET
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, OperationError, Throttled, Unavailable
from terrazzo.logins.address_rate import AddressRate
from terrazzo.metadata.entities import Entities
from terrazzo.reasons import say
from terrazzo.sparse_log import SparseLog
from terrazzo.times import DAY_US, now_us

MOST_WAITING = 100  # requests that are not worked off yet
OF_USER = 3  # codes within an hour
OF_ADDRESS = 20  # requests within an hour, and as many tries of codes

_HOUR_S = 3_600.0
_CODE_BYTES = 32
_KEPT_US = DAY_US  # a code after its time, so that whoever shows it is told why it is no good
_log = SparseLog(logging.getLogger(__name__))


class ResetMail(NamedTuple):
    """A mail to one user."""

    to: str
    subject: str
    text: str


SendMail = Callable[[ResetMail], Awaitable[str]]
"""Hands a mail to the server; why it could not, empty where it could. Never raises for the server's failures."""


class ResetSettings(NamedTuple):
    """``minutes``: how long a code is good. ``url``: the page that takes it behind ``#``; empty: the code alone."""

    minutes: int = 30
    url: str = ""


class ResetStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    requested: int = 0
    sent: int = 0
    failed: int = 0  # the mail server didn't take it
    left: int = 0  # no such user, no address, deactivated, of single sign-on, or too many for one user
    reset: int = 0
    refused: int = 0  # codes


class _Request(NamedTuple):
    username: str
    address: str


class PasswordResets:
    """Makes codes, mails them, and takes them for a new password.

    Args:
        send: None: no mail is configured, and everybody is told so.
        clock: UTC microseconds.
    """

    def __init__(
        self,
        database: Database,
        entities: Entities,
        tokens: Tokens,
        audit: AuditLog,
        *,
        send: SendMail | None,
        settings: ResetSettings = ResetSettings(),  # noqa: B008 - a tuple
        clock: Callable[[], int] = now_us,
    ) -> None:
        self.stats = ResetStats()
        self._database = database
        self._users = entities.users
        self._tokens = tokens
        self._audit = audit
        self._send = send
        self._settings = settings
        self._clock = clock
        self._waiting: asyncio.Queue[_Request] = asyncio.Queue(MOST_WAITING)
        self._requests = AddressRate(OF_ADDRESS, _HOUR_S)
        self._tries = AddressRate(OF_ADDRESS, _HOUR_S)
        self._refused_log = SparseLog(logging.getLogger(__name__))

    @property
    def is_configured(self) -> bool:
        """Whether there is somebody who sends the mails."""
        return self._send is not None

    def request(self, username: str, address: str) -> None:
        """Has a code mailed to the user of this name, if there is one; nothing tells whether.

        Raises:
            BadParameter: no mail is configured.
            Throttled: that address has asked too often.
            Unavailable: too many requests wait.
        """
        if self._send is None:
            raise BadParameter("action", say("no_mail_for_reset"))
        self._check_rate(self._requests, address, "requests for a new password")
        try:
            self._waiting.put_nowait(_Request(username, address))
        except asyncio.QueueFull:
            raise Unavailable(say("too_many_resets")) from None
        self.stats.requested += 1

    async def work(self) -> None:
        """Works requests off, one after the other, until it is cancelled."""
        while True:
            request = await self._waiting.get()
            try:
                await self._answer(request)
            except OperationError as error:  # of the database: the user asks again
                self.stats.failed += 1
                _log.warning("a request for a new password was lost: %s", error)

    async def reset(self, code: str, password: str, address: str) -> Row:
        """Gives the user to whom the code was mailed another password; all of the user's tokens end.

        Raises:
            BadParameter: the code is no good, and why; or the password.
            Throttled: too many tries from that address.
        """
        self._check_rate(self._tries, address, "tries")
        check_password(password)
        now = self._clock()
        try:
            async with self._database.writing() as connection:
                user = msgspec.structs.replace(await self._redeem(connection, code, now), address=address)
        except BadParameter as error:
            self.stats.refused += 1
            self._refused_log.warning("a code for a new password from %s was refused: %s", address, error)
            raise
        await self._audit.note(about_user(user, "reset_password"))
        row = await self._users.set_own_password(user, password)
        self.stats.reset += 1
        return row

    async def _redeem(self, connection: AsyncConnection, code: str, now: int) -> Actor:
        """Marks a code as used; whose it is."""
        columns = PASSWORD_RESET.c
        query = sa.select(PASSWORD_RESET).where(columns.code_hash == _hash_of(code))
        found = (await connection.execute(query)).first()
        if found is None:
            raise BadParameter("code", say("reset_code_unknown"))
        user = self._tokens.active(found.user_id)
        if found.used_us is not None:
            raise BadParameter("code", say("code_used_ask_again"))
        if found.expires_us <= now:
            raise BadParameter("code", say("reset_code_expired"))
        if user is None:
            raise BadParameter("code", say("reset_user_deactivated"))
        if self._tokens.epoch_of(found.user_id) != found.epoch:
            raise BadParameter("code", say("reset_before_password_change"))
        unused = (columns.id == found.id, columns.used_us.is_(None))
        if not (await connection.execute(PASSWORD_RESET.update().where(*unused).values(used_us=now))).rowcount:
            raise BadParameter("code", say("code_used_ask_again"))
        return user

    async def _answer(self, request: _Request) -> None:
        user_id = self._tokens.user_id(request.username)
        user = None if user_id is None else self._tokens.active(user_id)
        row = None if user is None else await self._users.by_name(request.username)
        if user is None or row is None or not row["email"] or row["by_sso"]:
            self.stats.left += 1
            return
        code = await self._new_code(user.user_id, row["token_epoch"])
        if code is None:
            self.stats.left += 1
            _log.warning("%s has been sent %d codes for a new password within an hour", user.username, OF_USER)
            return
        await self._audit.note(about_user(msgspec.structs.replace(user, address=request.address), "mail_reset_code"))
        why_not = "" if self._send is None else await self._send(self._mail(row, code, request.address))
        if why_not:
            self.stats.failed += 1
            _log.warning("a code for a new password of %s could not be mailed: %s", user.username, why_not)
        else:
            self.stats.sent += 1

    async def _new_code(self, user_id: int, epoch: int) -> str | None:
        """A new code of a user; None where there were ``OF_USER`` within the hour."""
        columns, now, code = PASSWORD_RESET.c, self._clock(), secrets.token_urlsafe(_CODE_BYTES)
        recent = (columns.user_id == user_id, columns.created_us > now - int(_HOUR_S * 1_000_000))
        values = {
            "user_id": user_id,
            "code_hash": _hash_of(code),
            "epoch": epoch,
            "created_us": now,
            "expires_us": now + self._settings.minutes * 60_000_000,
        }
        async with self._database.writing() as connection:
            await connection.execute(PASSWORD_RESET.delete().where(columns.expires_us < now - _KEPT_US))
            if (await connection.execute(sa.select(sa.func.count()).where(*recent))).scalar_one() >= OF_USER:
                return None
            await connection.execute(PASSWORD_RESET.insert().values(**values))
        return code

    def _mail(self, row: Row, code: str, address: str) -> ResetMail:
        where = f"\n\nor open {self._settings.url}#{code}" if self._settings.url else ""
        text = (
            f"Somebody at {address} asks for a new password of {row['username']}.\n\n"
            f"The code is\n\n{code}{where}\n\n"
            f"It is good once, for {self._settings.minutes} minutes. If it wasn't you, there is nothing to do: your "
            "password is as it was.\n"
        )
        return ResetMail(row["email"], "A new password", text)

    def _check_rate(self, rate: AddressRate, address: str, what: str) -> None:
        wait_s = rate.take(address, self._clock() / 1_000_000)
        if wait_s:
            raise Throttled(say("too_many_from_address", what=what, wait_s=math.ceil(wait_s)), wait_s)


def _hash_of(code: str) -> str:
    return hashlib.sha256(code.encode("utf-8", "surrogatepass")).hexdigest()
