"""Logging in, being throttled, and the first administrator."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from access_stand import AccessStand
from argon2 import PasswordHasher

from terrazzo.access.users import PASSWORD_FILE, UserLogin, ensure_admin
from terrazzo.audit.log import AuditLog
from terrazzo.crypto import passwords
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.registry import Registry
from terrazzo.errors import BadParameter, NotAuthenticated, Throttled
from terrazzo.metadata.entities import Entities

HOME, AWAY = "10.0.0.1", "10.0.0.2"


async def fail(stand: AccessStand, username: str, address: str = HOME) -> None:
    with pytest.raises(NotAuthenticated, match="username or password is wrong"):
        await stand.login.login(username, "not the password", address)


async def test_login_answers_the_users_record_and_a_token(stand: AccessStand) -> None:
    created = await stand.user("bo", email="bo@example.org")
    row, token = await stand.login.login("bo", "good password", HOME)
    assert row == created
    assert (await stand.tokens.verify(token)).user_id == created["id"]


@pytest.mark.parametrize("username", ["nobody", "", "a\0b", "\ud800", "x" * 100_000])
async def test_unknown_user_is_refused_like_a_wrong_password(stand: AccessStand, username: str) -> None:
    await fail(stand, username)


@pytest.mark.parametrize("password", ["", "\ud800", "good password" * 10_000, "good passwor", "good password "])
async def test_odd_passwords_are_just_wrong(stand: AccessStand, password: str) -> None:
    await stand.user("bo")
    with pytest.raises(NotAuthenticated):
        await stand.login.login("bo", password, HOME)


async def test_deactivated_user_learns_so_only_with_the_password(stand: AccessStand) -> None:
    row = await stand.user("bo")
    await stand.entities.users.update(SYSTEM, row["id"], {"is_active": 0})
    await fail(stand, "bo")
    with pytest.raises(NotAuthenticated, match="deactivated"):
        await stand.login.login("bo", "good password", HOME)


async def test_too_many_failures_throttle_the_user_at_that_address(stand: AccessStand) -> None:
    await stand.user("bo")
    await stand.user("al")
    for _ in range(3):
        await fail(stand, "bo")
    with pytest.raises(Throttled, match="try again in 60 s") as refused:
        await stand.login.login("bo", "good password", HOME)
    assert refused.value.retry_after_s == pytest.approx(60)
    await stand.login.login("bo", "good password", AWAY)
    await stand.login.login("al", "good password", HOME)
    stand.clock.advance(60)
    await stand.login.login("bo", "good password", HOME)


async def test_success_forgets_the_failures(stand: AccessStand) -> None:
    await stand.user("bo")
    for _ in range(4):
        await fail(stand, "bo")
        await fail(stand, "bo")
        await stand.login.login("bo", "good password", HOME)


async def test_one_address_cannot_try_every_name(stand: AccessStand) -> None:
    await stand.user("bo")
    for number in range(30):
        await fail(stand, f"guess-{number}")
    with pytest.raises(Throttled):
        await stand.login.login("bo", "good password", HOME)
    await stand.login.login("bo", "good password", AWAY)


async def test_many_addresses_cannot_try_one_name_for_ever(stand: AccessStand) -> None:
    await stand.user("bo")
    for number in range(30):
        await fail(stand, "bo", f"10.1.0.{number}")
    with pytest.raises(Throttled):
        await stand.login.login("bo", "not the password", "10.2.0.1")


async def test_attempts_at_the_same_time_count_too(stand: AccessStand) -> None:
    await stand.user("bo")
    attempts = (stand.login.login("bo", "not the password", HOME) for _ in range(20))
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sum(isinstance(result, NotAuthenticated) for result in results) <= 4
    assert sum(isinstance(result, Throttled) for result in results) >= 16


async def test_unknown_user_takes_as_long_as_a_known_one(stand: AccessStand) -> None:
    await stand.user("bo")
    login = UserLogin(stand.entities, stand.tokens, AuditLog(stand.database), failures=0)

    async def fastest(name: str) -> float:
        times = []
        for _ in range(5):
            start = time.perf_counter()
            with pytest.raises(NotAuthenticated):
                await login.login(name, "not the password", HOME)
            times.append(time.perf_counter() - start)
        return min(times)

    known, unknown = await fastest("bo"), await fastest("nobody")
    assert 0.4 < unknown / known < 2.5
    hasher = PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
    assert not hasher.check_needs_rehash(passwords.NOBODY)
    assert not hasher.check_needs_rehash(await passwords.hash_password("x"))


async def test_passwords_have_a_length(stand: AccessStand) -> None:
    for password in ("seven77", "x" * 257):
        with pytest.raises(BadParameter, match="password: expected 8 to 256 characters"):
            await stand.user("bo", password=password)
    with pytest.raises(BadParameter, match="password: is required"):
        await stand.entities.users.create(SYSTEM, {"username": "bo"})


async def make(folder: Path) -> tuple[Database, Entities]:
    database = await Database.open("", data_dir=folder)
    return database, Entities.open(database, Registry(), Secrets.open(folder))


async def test_first_start_makes_an_administrator_once(tmp_path: Path) -> None:
    database, entities = await make(tmp_path)
    first = await ensure_admin(entities, data_dir=tmp_path)
    assert first is not None
    assert first.file == tmp_path / PASSWORD_FILE
    assert first.file.read_text().strip() == first.password
    assert first.file.stat().st_mode & 0o777 == 0o600
    assert await ensure_admin(entities, data_dir=tmp_path) is None
    admin = await entities.users.item(SYSTEM, "admin")
    assert (admin["role"], admin["is_super"], admin["is_default"], admin["permission_company_id"]) == ("admin", 1, 1, 1)
    await database.close()


async def test_password_of_a_broken_off_first_start_is_taken_up(tmp_path: Path) -> None:
    database, entities = await make(tmp_path)
    (tmp_path / PASSWORD_FILE).write_text("left behind\n")
    first = await ensure_admin(entities, data_dir=tmp_path)
    assert first is not None
    assert first.password == "left behind"
    await database.close()


async def test_configured_password_is_not_written_anywhere(tmp_path: Path) -> None:
    database, entities = await make(tmp_path)
    first = await ensure_admin(entities, data_dir=tmp_path, password="pw")
    assert first is not None
    assert (first.password, first.file) == ("pw", None)
    assert not (tmp_path / PASSWORD_FILE).exists()
    row = await entities.users.by_name("admin")
    assert row is not None
    assert await passwords.verify_password(row["password_hash"], "pw")
    await database.close()
