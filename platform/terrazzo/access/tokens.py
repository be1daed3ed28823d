"""Access tokens: JWT, HS256, checked without I/O against what is known of their users."""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import msgspec
import sqlalchemy as sa

from terrazzo.audit.entry import about_user
from terrazzo.audit.log import write_entries
from terrazzo.crypto.key_file import KeyFile, load_key
from terrazzo.database.changes import ChangeWatcher, record_change
from terrazzo.database.database import Database
from terrazzo.database.entity import COMPANY
from terrazzo.database.one_of import one_of
from terrazzo.database.own_changes import MetadataChange
from terrazzo.database.port import Row
from terrazzo.database.tables.registry import REVOKED_TOKEN
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import NotAuthenticated
from terrazzo.listeners import Listeners
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.reasons import say
from terrazzo.times import now_us

_log = logging.getLogger(__name__)

KEY_FILE = "token-key"
KEY_BYTES = 32
KNOWN_TOKENS = 1_024  # whose signatures need no second look: 30 us each
MAX_TOKEN = 1_024  # characters; ours have about 288
_ISSUER = "terrazzo"
_JTI_BYTES = 54  # brings a token to the 288 characters that clients are told to expect
_CLAIMS = ["iss", "sub", "iat", "exp", "jti", "epoch"]
_RENEWED_AFTER = 1 / 8  # of a session's time since its last renewal
_OTHER_PROCESSES_US = 60_000_000  # within which others have heard of a revocation


class _Account(NamedTuple):
    actor: Actor
    epoch: int
    is_active: bool


_NOBODY = Actor(user_id=0, username="", company_id=0, role=Role.VIEWER)


class _Claims(msgspec.Struct):
    """What a token says; ``actor``: whose it was found to be, which holds as long as nothing is changed since."""

    user_id: int
    jti: str
    epoch: int
    expires_us: int
    issued_us: int
    began_us: int  # when the user logged in to the session; 0: a token that isn't renewed
    actor: Actor = _NOBODY
    version: int = -1  # of all that may end it, when that was found


class HeldToken:
    """A token as the connections hold that have shown it: good as long as they are open, unless it is ended."""

    __slots__ = ("__weakref__", "has_ended", "jti", "token", "user_id")

    def __init__(self, token: str, *, jti: str, user_id: int) -> None:
        self.token = token
        self.jti = jti
        self.user_id = user_id
        self.has_ended = False  # by a logout or a closed company; the user's record says the rest


class Tokens:
    """Issues, checks and revokes tokens. ``open`` makes one.

    Attributes:
        ended: listeners are told the id of a user all of whose tokens have ended, or who was deleted.
        instance: the same for all processes that take the same tokens; no secret.
        version: rises with all that may make a good token a bad one, but for its time.
    """

    def __init__(
        self,
        database: Database,
        entities: Entities,
        *,
        key: bytes,
        lifetime_s: float,
        session_s: float,
        clock: Callable[[], int],
    ) -> None:
        self._database = database
        self._key = key
        self._lifetime_us = int(lifetime_s * 1_000_000)
        self._session_us = int(session_s * 1_000_000)
        self.instance = hashlib.sha256(b"terrazzo instance" + key).hexdigest()[:8]
        self._clock = clock
        self.version = 0
        self._accounts: dict[int, _Account] = {}
        self._ids: dict[str, int] = {}  # by user name
        self.ended: Listeners[int] = Listeners("ended tokens")
        self._closed_companies: set[int] = set()
        self._revoked: dict[str, int] = {}  # jti -> when it would have expired
        self._held: WeakValueDictionary[str, HeldToken] = WeakValueDictionary()  # by token, while in use
        self._read = lru_cache(KNOWN_TOKENS)(self._read_signed)  # a token's claims never change

    @classmethod
    async def open(
        cls,
        database: Database,
        entities: Entities,
        *,
        key: bytes,
        token_hours: float,
        session_days: float = 30.0,
        clock: Callable[[], int] = now_us,
    ) -> Tokens:
        """Loads the users and the revocations, and follows changes of users and companies.

        Args:
            key: see ``load_token_key``.
            session_days: after which a session ends, though its tokens are renewed.
        """
        lifetime_s, session_s = token_hours * 3_600, session_days * 86_400
        tokens = cls(database, entities, key=key, lifetime_s=lifetime_s, session_s=session_s, clock=clock)
        entities.users.changes.listen(tokens.on_user)
        entities.companies.changes.listen(tokens.on_company)
        async for row in entities.companies.every():
            tokens.on_company(RowChange(row["id"], row["uid"], row))
        async for row in entities.users.every():
            tokens.on_user(RowChange(row["id"], row["username"], row))
        async with database.reading() as connection:
            for jti, expires_us in await connection.execute(sa.select(REVOKED_TOKEN)):
                tokens._revoked[jti] = expires_us
        return tokens

    def use_key(self, key: bytes) -> None:
        """Signs and checks with another key from now on: all tokens so far are dead."""
        self._key = key
        self.version += 1
        self._read.cache_clear()

    def follow(self, changes: ChangeWatcher) -> None:
        """Hears of tokens that other processes revoke."""
        changes.on(REVOKED_TOKEN.name, self._on_revoked)

    def issue_for(self, row: Row) -> str:
        """A new token for the user as this record (``UserRepository.by_name``) had it.

        The token is worthless when the user's tokens were ended after the record was read.
        """
        known = self._accounts.get(row["id"])
        if known is None or known.epoch < row["token_epoch"]:  # another process changed the user a moment ago
            self.on_user(RowChange(row["id"], row["username"], row))
        return self._issue(row["id"], row["token_epoch"])

    def _issue(self, user_id: int, epoch: int, *, jti: str = "", began_us: int = 0) -> str:
        now_us = self._clock()
        expires_us = now_us + self._lifetime_us
        if began_us:
            expires_us = min(expires_us, began_us + self._session_us)
        claims = {
            "iss": _ISSUER,
            "sub": str(user_id),
            "epoch": epoch,
            "iat": now_us // 1_000_000,
            "exp": expires_us // 1_000_000,
            "jti": jti or secrets.token_urlsafe(_JTI_BYTES),
        }
        if began_us:
            claims["auth_time"] = began_us // 1_000_000
        import jwt  # loaded when the platform is ready, see ``load_jwt``

        return jwt.encode(claims, self._key, algorithm="HS256")

    def session(self, token: str) -> str:
        """A session that begins with a token which was just issued: its own first token, which can be renewed.

        All tokens of a session end with any of them. Raises as ``verify`` does.
        """
        self.verify(token)
        claims = self._read(token)
        return self._issue(claims.user_id, claims.epoch, jti=claims.jti, began_us=claims.issued_us)

    def renewed(self, token: str) -> str | None:
        """The next token of a good session; None where it is too early, too late, or the token is of no session.

        Raises as ``verify`` does.
        """
        self.verify(token)
        claims, now = self._read(token), self._clock()
        if not claims.began_us or now < claims.issued_us + self._lifetime_us * _RENEWED_AFTER:
            return None
        if claims.expires_us >= claims.began_us + self._session_us:
            return None
        return self._issue(claims.user_id, claims.epoch, jti=claims.jti, began_us=claims.began_us)

    def verify(self, token: str) -> Actor:
        """Whose the token is, as the user is now. No I/O.

        Raises:
            NotAuthenticated: malformed, forged, expired or revoked, or the user is gone or deactivated.
        """
        claims = self._read(token)
        if claims.expires_us <= self._clock():
            raise NotAuthenticated(say("token_expired"))
        return claims.actor if claims.version == self.version else self._actor(claims)

    def hold(self, token: str) -> HeldToken:
        """Checks a token for a connection that stays (section 1 "Authentication", 5); raises as ``verify`` does."""
        self.verify(token)
        claims = self._read(token)
        held = self._held.get(token)
        if held is None:
            held = self._held[token] = HeldToken(token, jti=claims.jti, user_id=claims.user_id)
        return held

    def verify_held(self, held: HeldToken) -> Actor:
        """Whose the token is, as the user is now, though it may have expired since. No I/O.

        Raises:
            NotAuthenticated: it was revoked, or the user is gone or deactivated, or was given another password.
        """
        if held.has_ended:
            raise NotAuthenticated(say("token_revoked"))
        return self._actor(self._read(held.token))

    def _actor(self, claims: _Claims) -> Actor:
        account = self._accounts.get(claims.user_id)
        revoked = account is None or account.epoch != claims.epoch or claims.jti in self._revoked
        if revoked or account is None or not account.is_active or account.actor.company_id in self._closed_companies:
            raise NotAuthenticated(say("token_revoked"))
        claims.actor, claims.version = account.actor, self.version
        return account.actor

    async def revoke(self, token: str, *, held: HeldToken | None = None, address: str = "") -> None:
        """Ends one token, as somebody at ``address`` asks; raises as ``verify`` does.

        Args:
            held: the token as the connection holds it that asks, which may end it though it has expired.
        """
        found = self.verify(token) if held is None else self.verify_held(held)
        actor = msgspec.structs.replace(found, address=address)
        claims, now = self._read(token), self._clock()
        expires_us = claims.expires_us
        if claims.began_us:  # later tokens of the session end with it
            expires_us = now + self._lifetime_us + _OTHER_PROCESSES_US
        row = {"jti": claims.jti, "expires_us": expires_us}
        change = MetadataChange(REVOKED_TOKEN.name, 0, claims.jti)
        with self._database.own.told_at_once() as own:
            own.append(change)
            async with self._database.writing() as connection:
                await connection.execute(REVOKED_TOKEN.delete().where(REVOKED_TOKEN.c.expires_us < now))
                await connection.execute(REVOKED_TOKEN.delete().where(REVOKED_TOKEN.c.jti == claims.jti))
                await connection.execute(REVOKED_TOKEN.insert().values(row))
                await record_change(connection, change)
                await write_entries(connection, [about_user(actor, "logout")], now)
            self._revoke(claims.jti, expires_us)

    def on_user(self, changed: RowChange) -> None:
        """A user was created, changed or deleted."""
        self.version += 1
        before, row = self._accounts.pop(changed.record_id, None), changed.row
        if before is not None and self._ids.get(before.actor.username) == changed.record_id:
            del self._ids[before.actor.username]
        if row is not None:
            self._accounts[changed.record_id] = _Account(actor_of(row), row["token_epoch"], bool(row["is_active"]))
            self._ids[row["username"]] = changed.record_id
        if before is not None and (row is None or row["token_epoch"] != before.epoch):
            self.ended.tell(changed.record_id)

    def user_id(self, username: str) -> int | None:
        """The id of the user with this name, None where nobody has it; from memory."""
        return self._ids.get(username)

    def actor(self, user_id: int) -> Actor | None:
        """The user with this id as it is now, from memory."""
        account = self._accounts.get(user_id)
        return None if account is None else account.actor

    def epoch_of(self, user_id: int) -> int | None:
        """Which of a user's passwords is in force: it rises when tokens end; None where there is no such user."""
        account = self._accounts.get(user_id)
        return None if account is None else account.epoch

    def active(self, user_id: int) -> Actor | None:
        """The user with this id as it is now; None where it is gone or deactivated, or its company is."""
        account = self._accounts.get(user_id)
        if account is None or not account.is_active or account.actor.company_id in self._closed_companies:
            return None
        return account.actor

    def on_company(self, changed: RowChange) -> None:
        """A company was created, changed or deleted."""
        self.version += 1
        if changed.row is None or changed.row["is_available"]:
            self._closed_companies.discard(changed.record_id)
        else:
            self._closed_companies.add(changed.record_id)
            self._end_held_of(changed.record_id)

    def is_open(self, company_id: int) -> bool:
        """Whether a company's users may log in."""
        return company_id not in self._closed_companies

    def _end_held_of(self, company_id: int) -> None:
        """Ends for good what the users of a closed company hold: it may be open again when they next ask."""
        for held in list(self._held.values()):
            account = self._accounts.get(held.user_id)
            if account is not None and account.actor.company_id == company_id:
                self._end_held(held.jti)

    def _end_held(self, jti: str) -> None:
        self.version += 1
        for held in list(self._held.values()):
            if held.jti == jti:
                self._held.pop(held.token, None)
                held.has_ended = True

    async def _on_revoked(self, changes: Sequence[MetadataChange]) -> None:
        for change in changes:  # the rows of those that have expired may be gone already
            self._end_held(change.uid)
        query = sa.select(REVOKED_TOKEN).where(one_of(REVOKED_TOKEN.c.jti, [change.uid for change in changes]))
        async with self._database.reading() as connection:
            for jti, expires_us in await connection.execute(query):
                self._revoke(jti, expires_us)

    def _revoke(self, jti: str, expires_us: int) -> None:
        now = self._clock()
        self.version += 1
        self._revoked = {each: until for each, until in self._revoked.items() if until >= now}
        self._revoked[jti] = expires_us
        self._end_held(jti)

    def _read_signed(self, token: str) -> _Claims:
        import jwt

        options: Any = {"require": _CLAIMS, "verify_exp": False, "verify_iat": False}
        try:
            if len(token) > MAX_TOKEN:
                raise jwt.InvalidTokenError("too long")
            claims = jwt.decode(token, self._key, algorithms=["HS256"], issuer=_ISSUER, options=options)
            return _Claims(
                int(claims["sub"]),
                claims["jti"],
                int(claims["epoch"]),
                int(claims["exp"]) * 1_000_000,
                int(claims["iat"]) * 1_000_000,
                int(claims.get("auth_time", 0)) * 1_000_000,
            )
        except (jwt.PyJWTError, ValueError, TypeError):
            raise NotAuthenticated(say("token_foreign")) from None


def load_jwt() -> None:
    """Loads the library that signs tokens, which takes 30 ms: for a thread, once logins are possible."""
    import jwt  # noqa: F401


def load_token_key(data_dir: Path, *, key: str = "") -> bytes:
    """The signing key: ``key`` (at least 32 characters) or ``<data>/token-key``, made the first time with mode 0600.

    Raises:
        ValueError: the key is too short, or the file is not one of ours.
    """
    if not key:
        return load_key(data_dir / KEY_FILE, size=KEY_BYTES)
    if len(key.encode()) < KEY_BYTES:
        raise ValueError(say("fewer_characters", least=KEY_BYTES))
    return key.encode()


class TokenKey:
    """The signing key of a platform that runs; ``terrazzo keys rotate`` may replace its file."""

    def __init__(self, data_dir: Path, key: str = "") -> None:
        self._data_dir = data_dir
        self._key = key
        self._file = KeyFile(data_dir / KEY_FILE)

    def load(self) -> bytes:
        """See ``load_token_key``."""
        key = load_token_key(self._data_dir, key=self._key)
        self._file.has_changed()
        return key

    def follow(self, tokens: Tokens) -> None:
        """Has the tokens use the key of the file if it was replaced; one that can't be used changes nothing."""
        if self._key or not self._file.has_changed():
            return
        try:
            tokens.use_key(load_token_key(self._data_dir))
        except (OSError, ValueError) as error:
            _log.error("%s: the key of tokens stays as it was: %s", KEY_FILE, error)
        else:
            _log.warning("%s was replaced: all users have to log in again", KEY_FILE)


def actor_of(row: Row) -> Actor:
    """The actor that a user's record describes."""
    return Actor(
        user_id=row["id"],
        username=row["username"],
        company_id=row[COMPANY],
        role=Role[row["role"].upper()],
        is_super=bool(row["is_super"]),
    )
