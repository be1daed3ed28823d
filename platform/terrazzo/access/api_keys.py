"""API keys: made once and shown once, checked without I/O against the hashes of all keys."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from terrazzo.access.tokens import Tokens
from terrazzo.database.port import Row
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter, NotAuthenticated, NotPermitted
from terrazzo.listeners import Listeners
from terrazzo.metadata.repositories.api_keys import ApiKeyRepository
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.reasons import say
from terrazzo.times import DAY_US, now_us

MARK = "tzk_"  # what every key begins with, so that people and scanners of leaked secrets know one
FLUSH_S = 60.0
_KEY_BYTES = 32
_SHOWN = len(MARK) + 8  # characters that stay visible


class _ApiKey(NamedTuple):
    record_id: int
    user_id: int
    role: Role
    is_super: bool
    expires_us: int
    prefix: str


class NewApiKey(NamedTuple):
    """A key's record, and the key itself, which nobody can read again."""

    row: Row
    key: str


def is_api_key(credential: str) -> bool:
    """Whether what was shown in place of a token is meant as an API key."""
    return credential.startswith(MARK)


class ApiKeyStats(msgspec.Struct):
    """Counters for ``/metrics``."""

    refused: int = 0  # shown and no good


class ApiKeys:
    """Makes and checks API keys. ``open`` makes one.

    All keys' hashes are in memory, as users are: a company has at most ``limits.company_api_keys``, and guessing costs
    a hash and never a query.
    """

    def __init__(self, repository: ApiKeyRepository, tokens: Tokens, *, clock: Callable[[], int]) -> None:
        self._repository = repository
        self._tokens = tokens
        self._clock = clock
        self._keys: dict[bytes, _ApiKey] = {}  # by hash
        self._hashes: dict[int, bytes] = {}  # by id
        self._used: dict[int, int] = {}  # when, by id; not written yet
        self.stats = ApiKeyStats()

    @classmethod
    async def open(
        cls,
        repository: ApiKeyRepository,
        tokens: Tokens,
        *,
        users: Listeners[RowChange],
        clock: Callable[[], int] = now_us,
    ) -> ApiKeys:
        """Loads the keys, and follows their changes and those of ``users``."""
        keys = cls(repository, tokens, clock=clock)
        repository.changes.listen(keys.on_key)
        users.listen(keys.on_user)
        async for row in repository.every():
            keys.on_key(RowChange(row["id"], row["uid"], row))
        return keys

    def verify(self, key: str) -> Actor:
        """Whose the key is, with the lower of its role and the user's present one. No I/O.

        Raises:
            NotAuthenticated: nobody's, expired, deleted, or of a user who is gone or deactivated.
        """
        found, now = self._keys.get(_hash_of(key)), self._clock()
        if found is None:
            raise self._refusal(say("api_key_unknown"))
        if found.expires_us <= now:
            raise self._refusal(say("api_key_expired"))
        user = self._tokens.active(found.user_id)
        if user is None:
            raise self._refusal(say("api_key_user_deactivated"))
        self._used[found.record_id] = now
        return msgspec.structs.replace(
            user, role=min(found.role, user.role), is_super=found.is_super and user.is_super, api_key=found.prefix
        )

    def _refusal(self, reason: str) -> NotAuthenticated:
        self.stats.refused += 1
        return NotAuthenticated(reason)

    async def create(self, actor: Actor, values: Mapping[str, Any], *, days: int) -> NewApiKey:
        """Makes a key of the actor's that is good for ``days``.

        Raises:
            NotPermitted: it would have more rights than the actor, or the actor is a key itself.
            BadParameter: names the column.
            QuotaExceeded: the user or the company has as many as they may.
        """
        if actor.api_key:
            raise NotPermitted(say("api_key_makes_no_key"))
        if values.get("is_super"):
            if not actor.is_super:
                raise NotPermitted(say("super_key_by_super_user"))
            if values.get("role") != "admin":
                raise BadParameter("is_super", say("goes_with_role_admin"))
        role = values.get("role")
        if role in _ROLES and not actor.may(_ROLES[role]):
            raise NotPermitted(say("role_above_yours", role=role, yours=actor.role.name.lower()))
        key = MARK + secrets.token_urlsafe(_KEY_BYTES)
        internal = {
            "key_hash": _hash_of(key).hex(),
            "prefix": key[:_SHOWN],
            "expires": self._clock() + days * DAY_US,
        }
        return NewApiKey(await self._repository.create_hashed(actor, values, internal), key)

    def last_used_us(self, row: Row) -> int | None:
        """When a key was used last, also where that isn't written yet; UTC microseconds."""
        return self._used.get(row["id"], row["last_used"])

    async def flush(self) -> None:
        """Writes when keys were used.

        Raises:
            Unavailable: the database doesn't answer; the next call writes it.
        """
        used = dict(self._used)
        if not used:
            return
        await self._repository.note_uses(used)
        self._used = {each: at for each, at in self._used.items() if used.get(each) != at}

    def on_key(self, changed: RowChange) -> None:
        """A key was created or deleted."""
        before, row = self._hashes.pop(changed.record_id, None), changed.row
        if before is not None:
            del self._keys[before]
        if row is None:
            self._used.pop(changed.record_id, None)
            return
        key_hash = bytes.fromhex(row["key_hash"])
        self._hashes[changed.record_id] = key_hash
        self._keys[key_hash] = _ApiKey(
            record_id=changed.record_id,
            user_id=row["user_id"],
            role=_ROLES[row["role"]],
            is_super=bool(row["is_super"]),
            expires_us=row["expires"],
            prefix=row["prefix"],
        )

    def on_user(self, changed: RowChange) -> None:
        """A user was changed or deleted; a deleted one's keys are gone from the database too."""
        if changed.row is None:
            for key in [each for each in self._keys.values() if each.user_id == changed.record_id]:
                self.on_key(RowChange(key.record_id, "", None))


_ROLES = {role.name.lower(): role for role in Role}


def _hash_of(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
