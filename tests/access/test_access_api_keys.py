"""API keys: hashed at rest, with the lower of two roles, and ended with whoever they belong to."""

from __future__ import annotations

from typing import Any

import pytest
import sqlalchemy as sa
from access_stand import AccessStand

from terrazzo.access.api_keys import ApiKeys
from terrazzo.access.credentials import Credentials
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.changes import ChangeWatcher
from terrazzo.database.database import Database
from terrazzo.domain.actor import SYSTEM, Actor, Role
from terrazzo.domain.registry import Registry
from terrazzo.errors import BadParameter, NotAuthenticated, NotFound, NotPermitted, QuotaExceeded
from terrazzo.metadata.definitions.access import API_KEY
from terrazzo.metadata.entities import Entities
from terrazzo.metadata.repositories import api_keys as repository
from terrazzo.times import DAY_US

TABLE = API_KEY.table
pytestmark = pytest.mark.usefixtures("cheap")


@pytest.fixture
async def keys(stand: AccessStand) -> ApiKeys:
    return await open_keys(stand)


async def open_keys(stand: AccessStand) -> ApiKeys:
    users = stand.entities.users.changes
    return await ApiKeys.open(stand.entities.api_keys, stand.tokens, users=users, clock=stand.clock)


async def actor_of(stand: AccessStand, name: str, **values: Any) -> Actor:
    row = await stand.user(name, **values)
    found = stand.tokens.actor(row["id"])
    assert found is not None
    return found


async def made(keys: ApiKeys, actor: Actor, role: str = "viewer", days: int = 1, **values: Any) -> str:
    return (await keys.create(actor, {"name": "k", "role": role, **values}, days=days)).key


async def stored(stand: AccessStand, query: Any) -> list[Any]:
    async with stand.database.reading() as connection:
        return [*(await connection.execute(query)).scalars()]


async def test_a_key_is_its_users_with_the_lower_of_two_roles(stand: AccessStand, keys: ApiKeys) -> None:
    bo = await actor_of(stand, "bo", role="admin")
    key = await made(keys, bo, role="operator")
    assert key.startswith("tzk_")
    assert len(key) == 47
    found = keys.verify(key)
    assert (found.user_id, found.role, found.is_super, found.api_key) == (bo.user_id, Role.OPERATOR, False, key[:12])
    await stand.entities.users.update(SYSTEM, "bo", {"role": "viewer"})
    assert keys.verify(key).role is Role.VIEWER


async def test_no_key_has_more_rights_than_its_maker(stand: AccessStand, keys: ApiKeys) -> None:
    bo = await actor_of(stand, "bo", role="operator")
    with pytest.raises(NotPermitted, match="role: admin is above yours, operator"):
        await made(keys, bo, role="admin")
    with pytest.raises(NotPermitted, match="is_super: only a super user"):
        await made(keys, bo, role="operator", is_super=1)
    with pytest.raises(BadParameter, match="role: expected one of viewer, operator, admin"):
        await made(keys, bo, role="root")
    root = stand.tokens.actor(stand.tokens.user_id("admin") or 0)
    assert root is not None
    with pytest.raises(BadParameter, match="is_super: goes with the role admin"):
        await made(keys, root, role="viewer", is_super=1)
    assert not keys.verify(await made(keys, root, role="admin")).is_super, "unless it is asked for"
    assert keys.verify(await made(keys, root, role="admin", is_super=1)).is_super


async def test_a_key_makes_no_key(stand: AccessStand, keys: ApiKeys) -> None:
    bo = await actor_of(stand, "bo", role="admin")
    with pytest.raises(NotPermitted, match="an API key makes no other"):
        await made(keys, keys.verify(await made(keys, bo, role="admin")))


async def test_only_a_hash_is_at_rest(stand: AccessStand, keys: ApiKeys) -> None:
    bo = await actor_of(stand, "bo")
    row, key = await keys.create(bo, {"name": "k"}, days=1)
    assert "key_hash" not in row
    for path in stand.data.iterdir():
        assert key.encode() not in path.read_bytes(), path
        assert key[12:].encode() not in path.read_bytes(), path


async def test_keys_that_are_no_good_are_refused_and_told_why(stand: AccessStand, keys: ApiKeys) -> None:
    bo = await actor_of(stand, "bo")
    row, key = await keys.create(bo, {"name": "k"}, days=2)
    for guess in (key[:-1], key + "A", "tzk_", "tzk_\ud800", "tzk_" + "é" * 40, "tzk_" + "x" * 100_000):
        with pytest.raises(NotAuthenticated, match="unknown or was deleted"):
            keys.verify(guess)
    stand.clock.advance(2 * 86_400 - 1)
    keys.verify(key)
    stand.clock.advance(1)
    with pytest.raises(NotAuthenticated, match="expired"):
        keys.verify(key)
    stand.clock.advance(-10)
    await stand.entities.api_keys.delete(bo, row["uid"])
    with pytest.raises(NotAuthenticated, match="unknown or was deleted"):
        keys.verify(key)


async def test_keys_end_with_their_user_and_company(stand: AccessStand, keys: ApiKeys) -> None:
    company = await stand.entities.companies.create(SYSTEM, {"name": "two"})
    bo = await actor_of(stand, "bo", permission_company_id=company["id"])
    key = await made(keys, bo)
    for entity, record, column in (
        (stand.entities.users, "bo", "is_active"),
        (stand.entities.companies, company["id"], "is_available"),
    ):
        await entity.update(SYSTEM, record, {column: 0})
        with pytest.raises(NotAuthenticated, match="user or company is deactivated"):
            keys.verify(key)
        await entity.update(SYSTEM, record, {column: 1})
        keys.verify(key)
    await stand.entities.users.delete(SYSTEM, "bo")
    with pytest.raises(NotAuthenticated, match="unknown or was deleted"):
        keys.verify(key)
    assert await stored(stand, sa.select(TABLE.c.id)) == []
    used = sa.text("SELECT records FROM company_usage WHERE kind = 'api_key' AND company_id > 0")
    assert await stored(stand, used) == [0]


async def test_users_see_their_own_and_administrators_their_companys(stand: AccessStand, keys: ApiKeys) -> None:
    bo, al = await actor_of(stand, "bo"), await actor_of(stand, "al", role="admin")
    company = await stand.entities.companies.create(SYSTEM, {"name": "two"})
    cy = await actor_of(stand, "cy", role="admin", permission_company_id=company["id"])
    row, _ = await keys.create(bo, {"name": "bo's"}, days=1)
    await keys.create(al, {"name": "al's"}, days=1)
    repository = stand.entities.api_keys
    seen = {each.username: {row["name"] for row in (await repository.page(each)).rows} for each in (bo, al, cy)}
    assert seen == {"bo": {"bo's"}, "al": {"bo's", "al's"}, "cy": set()}
    for stranger in (cy, await actor_of(stand, "di")):
        with pytest.raises(NotFound):
            await repository.delete(stranger, row["uid"])
        with pytest.raises(NotFound):
            await repository.item(stranger, row["uid"])
    await repository.delete(al, row["uid"])


async def test_a_user_and_a_company_have_so_many(
    stand: AccessStand, keys: ApiKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "MOST_OF_USER", 2)
    stand.entities.api_keys.of_company = 3
    bo, al = await actor_of(stand, "bo"), await actor_of(stand, "al")
    for _ in range(2):
        await made(keys, bo)
    with pytest.raises(QuotaExceeded, match="may have 2 \\(for each user\\)"):
        await made(keys, bo)
    await made(keys, al)
    with pytest.raises(QuotaExceeded, match=r"may have 3 \(limits\.company_api_keys\)"):
        await made(keys, al)


async def test_when_a_key_was_used_is_written_in_batches(stand: AccessStand, keys: ApiKeys) -> None:
    bo = await actor_of(stand, "bo")
    row, key = await keys.create(bo, {"name": "k"}, days=1)
    assert keys.last_used_us(row) is None
    for _ in range(3):
        stand.clock.advance(1)
        keys.verify(key)
    used = stand.clock()
    last_used = sa.select(TABLE.c.last_used)
    assert await stored(stand, last_used) == [None]
    assert keys.last_used_us(row) == used
    await keys.flush()
    await keys.flush()
    assert await stored(stand, last_used) == [used]
    await stand.entities.api_keys.note_uses({row["id"]: used - 1})
    assert await stored(stand, last_used) == [used], "another process, later"
    [listed] = (await stand.entities.api_keys.page(bo)).rows
    assert keys.last_used_us(listed) == used


async def test_keys_are_there_after_a_restart_and_in_other_processes(stand: AccessStand, keys: ApiKeys) -> None:
    bo = await actor_of(stand, "bo")
    first = await made(keys, bo)
    (await open_keys(stand)).verify(first)
    database = await Database.open("", data_dir=stand.data)
    try:
        watcher = ChangeWatcher(database)
        await watcher.start()
        entities = Entities.open(database, Registry(), Secrets.open(stand.data))
        entities.follow(watcher)
        elsewhere = await ApiKeys.open(entities.api_keys, stand.tokens, users=entities.users.changes, clock=stand.clock)
        row, second = await keys.create(bo, {"name": "k"}, days=1)
        await watcher.poll()
        elsewhere.verify(second)
        await stand.entities.api_keys.delete(bo, row["uid"])
        await watcher.poll()
        with pytest.raises(NotAuthenticated):
            elsewhere.verify(second)
        elsewhere.verify(first)
        await stand.entities.users.delete(SYSTEM, bo.user_id)
        await watcher.poll()
        with pytest.raises(NotAuthenticated):
            elsewhere.verify(first)
    finally:
        await database.close()


async def test_tokens_and_keys_are_told_apart(stand: AccessStand, keys: ApiKeys) -> None:
    bo = await actor_of(stand, "bo")
    credentials = Credentials(stand.tokens, keys)
    token, key = await stand.token("bo"), await made(keys, bo)
    for each in (token, key):
        held = credentials.hold(each)
        assert credentials.verify(each).user_id == credentials.verify_held(held).user_id == bo.user_id
    held = credentials.hold(key)
    with pytest.raises(BadParameter, match="Authorization: is an API key, which delete_api_key ends"):
        await credentials.revoke(key)
    await credentials.revoke(token)
    stand.clock.advance(DAY_US / 1_000_000)
    with pytest.raises(NotAuthenticated, match="expired"):
        credentials.verify_held(held)
