"""The repository of users: hashes passwords, guards super users, and ends tokens on a new password or deactivation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from terrazzo.async_engine import AsyncConnection
from terrazzo.crypto.passwords import NO_PASSWORD, check_password, hash_password
from terrazzo.database.port import Row
from terrazzo.database.tables.access import PASSWORD_RESET, SECOND_FACTOR
from terrazzo.domain.actor import Actor
from terrazzo.errors import BadParameter, Conflict, NotPermitted
from terrazzo.metadata.definitions.registry import USER
from terrazzo.metadata.lookup import storable
from terrazzo.metadata.repositories.api_keys import remove_keys_of
from terrazzo.metadata.repositories.repository import Draft, EntityRepository
from terrazzo.reasons import say


class UserRepository(EntityRepository):
    """The users. ``password`` can be written and never read; a new one, or deactivation, ends the user's tokens."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(USER, **parts)

    async def create(self, actor: Actor, values: Mapping[str, Any]) -> Row:
        """Stores a new user; ``password`` is required and stored as a hash."""
        rest, internal = await _take_password(values, required=True)
        return await self._create(actor, rest, internal)

    async def create_hashed(self, actor: Actor, values: Mapping[str, Any], password_hash: str) -> Row:
        """Stores a new user with the hash of a password that was made before."""
        return await self._create(actor, values, {"password_hash": password_hash})

    async def update(self, actor: Actor, key: int | str, values: Mapping[str, Any], version: str | None = None) -> Row:
        """Changes the given columns; of passwords only other users'.

        Raises:
            NotPermitted: the password would be the actor's own, or an API key gives it.
        """
        if values.get("password") is not None:
            await self._refuse_password(actor, key)
        rest, internal = await _take_password(values, required=False)
        return await self._update(actor, key, rest, internal, version)

    async def set_own_password(self, actor: Actor, password: str) -> Row:
        """Gives the actor another password, once it is proven that this may be."""
        _, internal = await _take_password({"password": password}, required=True)
        return await self._update(actor, actor.user_id, {}, internal)

    async def _refuse_password(self, actor: Actor, key: int | str) -> None:
        if actor.api_key:
            raise NotPermitted(say("api_key_changes_no_password"))
        if actor.user_id and (await self.item(actor, key))["id"] == actor.user_id:
            raise NotPermitted(say("own_password"))

    async def set_second_factor(self, actor: Actor, key: int | str, *, has: bool) -> Row:
        """Notes that a user has a second factor now, or takes it away; the user's tokens end."""
        return await self._update(actor, key, {}, {"has_second_factor": int(has)})

    async def create_by_sso(self, actor: Actor, values: Mapping[str, Any], sso_hash: str) -> Row:
        """Stores a new user who logs in by single sign-on alone, and whom the provider knows by this hash."""
        return await self._create(actor, values, {"password_hash": NO_PASSWORD, "sso_hash": sso_hash})

    async def link_subject(self, actor: Actor, key: int | str, sso_hash: str) -> Row:
        """Notes by which hash the provider of single sign-on knows a user from now on."""
        return await self._update(actor, key, {}, {"sso_hash": sso_hash})

    async def by_subject(self, sso_hash: str) -> Row | None:
        """The user whom the provider knows by this hash, internal columns included; None where there is none."""
        async with self._database.reading() as connection:
            found = await connection.execute(self._rows.where(self.table.c.sso_hash == sso_hash))
            row = found.mappings().first()
        return None if row is None else self._codec.decode(row)

    async def by_name(self, username: str) -> Row | None:
        """The user of any company with this name, password hash and token epoch included; None where there is none."""
        async with self._database.reading() as connection:
            found = await connection.execute(self._rows.where(self.table.c.username == storable(username)))
            row = found.mappings().first()
        return None if row is None else self._codec.decode(row)

    async def _guard(self, connection: AsyncConnection, actor: Actor, draft: Draft, before: Row | None) -> None:
        if not actor.is_super and (draft.get("is_super") or (before is not None and before["is_super"])):
            raise NotPermitted(say("super_user_by_super_user"))
        if before is None:
            return
        if draft.get("has_second_factor") == 0 and not before["has_second_factor"]:
            raise BadParameter("uid", say("user_without_second_factor", user=before["username"]))
        if not draft and before["id"] == actor.user_id:
            raise Conflict(say("nobody_deletes_themselves", user=before["username"]))
        if before["is_super"] and (not draft or draft.get("is_super") == 0 or draft.get("is_active") == 0):
            await self._check_other_super(connection, before)
        if draft.keys() & {"password_hash", "has_second_factor"} or draft.get("is_active") == 0:
            draft["token_epoch"] = before["token_epoch"] + 1

    async def _removed(self, connection: AsyncConnection, row: Row) -> None:
        await remove_keys_of(connection, row["id"], self._quotas)
        for table in (SECOND_FACTOR, PASSWORD_RESET):
            await connection.execute(table.delete().where(table.c.user_id == row["id"]))

    async def _written(self, connection: AsyncConnection, record_id: int, draft: Draft) -> None:
        if draft.get("has_second_factor") == 0:
            await connection.execute(SECOND_FACTOR.delete().where(SECOND_FACTOR.c.user_id == record_id))

    async def _check_other_super(self, connection: AsyncConnection, row: Row) -> None:
        table = self.table
        others = sa.select(table.c.id).where(table.c.is_super == 1, table.c.is_active == 1, table.c.id != row["id"])
        if (await connection.execute(others.limit(1))).first() is None:
            raise Conflict(say("last_super_user", user=row["username"]))


async def _take_password(values: Mapping[str, Any], *, required: bool) -> tuple[dict[str, Any], Draft]:
    """Splits a caller's values into those without the password, and the draft with its hash."""
    rest = dict(values)
    password = rest.pop("password", None)
    if password is None and not required:
        return rest, {}
    if not isinstance(password, str):
        raise BadParameter("password", say("is_required") if password is None else say("expected_text"))
    check_password(password)
    return rest, {"password_hash": await hash_password(password)}
