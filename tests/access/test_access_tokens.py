"""Tokens: whose they are, and everything that ends them."""

from __future__ import annotations

import jwt
import pytest
from access_stand import AccessStand

from terrazzo.access.tokens import KEY_FILE, Tokens, load_token_key
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.changes import ChangeWatcher
from terrazzo.database.database import Database
from terrazzo.domain.actor import SYSTEM, Role
from terrazzo.domain.registry import Registry
from terrazzo.errors import NotAuthenticated
from terrazzo.metadata.entities import Entities

pytestmark = pytest.mark.usefixtures("cheap")


async def test_token_says_whose_it_is(stand: AccessStand) -> None:
    row = await stand.user("bo", role="operator")
    token = await stand.token("bo")
    actor = stand.tokens.verify(token)
    assert (actor.user_id, actor.username, actor.role, actor.is_super) == (row["id"], "bo", Role.OPERATOR, False)
    assert actor.company_id == row["permission_company_id"]
    assert 280 <= len(token) <= 296
    assert jwt.get_unverified_header(token)["alg"] == "HS256"


async def test_token_follows_the_user_as_they_are_now(stand: AccessStand) -> None:
    row = await stand.user("bo", role="viewer")
    token = await stand.token("bo")
    await stand.entities.users.update(SYSTEM, row["id"], {"role": "admin"})
    assert stand.tokens.verify(token).role is Role.ADMIN


async def test_token_expires(stand: AccessStand) -> None:
    await stand.user("bo")
    token = await stand.token("bo")
    stand.clock.advance(2 * 3600 - 2)
    stand.tokens.verify(token)
    stand.clock.advance(2)
    with pytest.raises(NotAuthenticated, match="expired"):
        stand.tokens.verify(token)


async def test_logout_ends_one_token_for_good(stand: AccessStand) -> None:
    await stand.user("bo")
    ended, other = await stand.token("bo"), await stand.token("bo")
    await stand.tokens.revoke(ended)
    key = load_token_key(stand.data)
    restarted = await Tokens.open(stand.database, stand.entities, key=key, token_hours=2, clock=stand.clock)
    for tokens in (stand.tokens, restarted):
        with pytest.raises(NotAuthenticated, match="revoked"):
            tokens.verify(ended)
        with pytest.raises(NotAuthenticated, match="revoked"):
            await tokens.revoke(ended)
        assert tokens.verify(other).username == "bo"


@pytest.mark.parametrize("change", [{"password": "another password"}, {"is_active": 0}])
async def test_changed_password_and_deactivation_end_all_tokens(stand: AccessStand, change: dict[str, object]) -> None:
    row = await stand.user("bo")
    tokens = [await stand.token("bo") for _ in range(2)]
    await stand.entities.users.update(SYSTEM, row["id"], change)
    await stand.entities.users.update(SYSTEM, row["id"], {"is_active": 1})
    for token in tokens:
        with pytest.raises(NotAuthenticated, match="revoked"):
            stand.tokens.verify(token)


async def test_deleted_user_and_closed_company_end_tokens(stand: AccessStand) -> None:
    company = await stand.entities.companies.create(SYSTEM, {"name": "two"})
    row = await stand.user("bo", permission_company_id=company["id"])
    token = await stand.token("bo")
    await stand.entities.companies.update(SYSTEM, company["id"], {"is_available": 0})
    with pytest.raises(NotAuthenticated):
        stand.tokens.verify(token)
    with pytest.raises(NotAuthenticated, match="deactivated"):
        await stand.token("bo")
    await stand.entities.companies.update(SYSTEM, company["id"], {"is_available": 1})
    stand.tokens.verify(token)
    await stand.entities.users.delete(SYSTEM, row["id"])
    with pytest.raises(NotAuthenticated):
        stand.tokens.verify(token)


async def test_token_of_a_user_read_before_their_tokens_ended_is_worthless(stand: AccessStand) -> None:
    row = await stand.user("bo")
    read_before = await stand.entities.users.by_name("bo")
    assert read_before is not None
    await stand.entities.users.update(SYSTEM, row["id"], {"password": "another-password"})
    with pytest.raises(NotAuthenticated):
        stand.tokens.verify(stand.tokens.issue_for(read_before))


async def test_forged_tokens_are_refused(stand: AccessStand) -> None:
    await stand.user("bo")
    good = await stand.token("bo")
    claims = jwt.decode(good, options={"verify_signature": False})
    key = load_token_key(stand.data)
    header, payload, signature = good.split(".")
    forged = [
        "",
        "x",
        "a.b.c",
        "é" * 40,
        "\ud800",
        good + "A" * 2000,
        f"{header}.{payload}.",
        f"{header}.{payload[:-2]}AA.{signature}",
        jwt.encode(claims, "another key that is long enough, too", algorithm="HS256"),
        jwt.encode(claims, None, algorithm="none"),
        jwt.encode(claims, key * 2, algorithm="HS512"),
        jwt.encode({**claims, "iss": "someone"}, key, algorithm="HS256"),
        jwt.encode({**claims, "sub": "nobody"}, key, algorithm="HS256"),
        jwt.encode({**claims, "sub": "999"}, key, algorithm="HS256"),
        jwt.encode({**claims, "epoch": "x"}, key, algorithm="HS256"),
        *(jwt.encode({k: v for k, v in claims.items() if k != name}, key, algorithm="HS256") for name in claims),
    ]
    for token in forged:
        with pytest.raises(NotAuthenticated):
            stand.tokens.verify(token)
    stand.tokens.verify(good)


async def test_other_process_hears_of_revocations_and_users(stand: AccessStand) -> None:
    row = await stand.user("bo")
    database = await Database.open("", data_dir=stand.data)
    entities = Entities.open(database, Registry(), Secrets.open(stand.data))
    key = load_token_key(stand.data)
    other = await Tokens.open(database, entities, key=key, token_hours=2, clock=stand.clock)
    watcher = ChangeWatcher(database)
    await watcher.start()
    entities.follow(watcher)
    other.follow(watcher)
    first, second = await stand.token("bo"), await stand.token("bo")
    await stand.tokens.revoke(first)
    await watcher.poll()
    with pytest.raises(NotAuthenticated):
        other.verify(first)
    other.verify(second)
    await stand.entities.users.update(SYSTEM, row["id"], {"is_active": 0})
    await watcher.poll()
    with pytest.raises(NotAuthenticated):
        other.verify(second)
    await database.close()


async def test_key_is_private_and_kept(stand: AccessStand) -> None:
    path = stand.data / KEY_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert load_token_key(stand.data) == load_token_key(stand.data)
    assert load_token_key(stand.data, key="k" * 32) == b"k" * 32
    with pytest.raises(ValueError, match="at least 32"):
        load_token_key(stand.data, key="short")
    path.write_text("damaged")
    with pytest.raises(ValueError, match=r"token-key: expected 64 hexadecimal digits"):
        load_token_key(stand.data)
