"""Logging in, being throttled, and the first administrator."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest
from access_stand import AccessStand

from terrazzo.access import users
from terrazzo.access.users import PASSWORD_FILE, ensure_admin
from terrazzo.crypto import passwords
from terrazzo.crypto.secrets import Secrets
from terrazzo.database.database import Database
from terrazzo.domain.actor import SYSTEM
from terrazzo.domain.registry import Registry
from terrazzo.errors import BadParameter, NotAuthenticated, Throttled, Unavailable
from terrazzo.logins.places import KnownPlaces, Principal
from terrazzo.metadata.entities import Entities
from waiting import until

HOME, AWAY = "10.0.0.1", "10.0.0.2"
pytestmark = pytest.mark.usefixtures("cheap")


async def fail(stand: AccessStand, username: str, address: str = HOME) -> None:
    with pytest.raises(NotAuthenticated, match="username or password is wrong"):
        await stand.login.login(username, "not the password", address)


async def test_login_answers_the_users_record_and_a_token(stand: AccessStand) -> None:
    created = await stand.user("bo", email="bo@example.org")
    row, token = await stand.login.login("bo", "good password", HOME)
    assert row == created
    assert stand.tokens.verify(token).user_id == created["id"]


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


async def throttled_s(stand: AccessStand, username: str, address: str) -> float:
    with pytest.raises(Throttled) as refused:
        await stand.login.login(username, "good password", address)
    return refused.value.retry_after_s


async def test_one_address_cannot_try_every_name_fast(stand: AccessStand) -> None:
    await stand.user("bo")
    for number in range(30):
        await fail(stand, f"guess-{number}")
    wait_s = await throttled_s(stand, "bo", HOME)
    assert wait_s == pytest.approx(2), "a window has room for 30"
    await stand.login.login("bo", "good password", AWAY)
    stand.clock.advance(wait_s)
    await stand.login.login("bo", "good password", HOME)


async def test_many_addresses_cannot_try_one_name_fast(stand: AccessStand) -> None:
    await stand.user("bo")
    for number in range(30):
        await fail(stand, "bo", f"10.1.0.{number}")
    wait_s = await throttled_s(stand, "bo", "10.2.0.1")
    assert wait_s == pytest.approx(2)
    stand.clock.advance(wait_s)
    await stand.login.login("bo", "good password", "10.2.0.1")


async def test_strangers_everywhere_do_not_keep_users_from_where_they_log_in(stand: AccessStand) -> None:
    await stand.user("bo")
    await stand.login.login("bo", "good password", HOME)
    for number in range(100):
        with contextlib.suppress(NotAuthenticated, Throttled):
            await stand.login.login("bo", "not the password", f"10.1.0.{number % 10}")
    assert await throttled_s(stand, "bo", "10.2.0.1") > 0
    await stand.login.login("bo", "good password", HOME)


async def test_neighbours_behind_an_address_do_not_keep_users_out(stand: AccessStand) -> None:
    await stand.user("bo")
    await stand.user("new here")
    await stand.login.login("bo", "good password", HOME)
    for number in range(100):
        with contextlib.suppress(NotAuthenticated, Throttled):
            await stand.login.login(f"guess-{number}", "not the password", HOME)
    await stand.login.login("bo", "good password", HOME)
    stand.clock.advance(await throttled_s(stand, "new here", HOME))
    await stand.login.login("new here", "good password", HOME)


async def test_all_addresses_of_a_customer_in_ipv6_are_one(stand: AccessStand) -> None:
    await stand.user("bo")
    for number in range(3):
        await fail(stand, "bo", f"2001:db8:1:2::{number}")
    assert await throttled_s(stand, "bo", "2001:db8:1:2:ffff::1") == pytest.approx(60)
    await stand.login.login("bo", "good password", "2001:db8:1:3::1")


async def test_a_known_address_has_a_count_of_its_own(stand: AccessStand) -> None:
    await stand.user("bo")
    await stand.login.login("bo", "good password", HOME)
    for _ in range(3):
        await fail(stand, "bo", HOME)
    assert await throttled_s(stand, "bo", HOME) == pytest.approx(60)


async def test_another_password_and_deletion_forget_where_a_user_comes_from(stand: AccessStand) -> None:
    path = stand.data / "user-places"
    stand.login = stand.new_login(places=KnownPlaces(path))
    bo, al = await stand.user("bo"), await stand.user("al")
    for name in ("bo", "al"):
        await stand.login.login(name, "good password", HOME)
    await stand.entities.users.update(SYSTEM, bo["id"], {"password": "another one"})
    await stand.entities.users.delete(SYSTEM, al["id"])
    for number in range(30):
        await fail(stand, "bo", f"10.1.0.{number}")
    assert await throttled_s(stand, "bo", HOME) > 0, "slowed like any stranger"
    again = KnownPlaces(path, epoch_of=lambda _id: 0)
    assert not any(again.has(Principal(name, row["id"]), HOME) for name, row in (("bo", bo), ("al", al)))


async def test_known_addresses_survive_a_restart(stand: AccessStand) -> None:
    path = stand.data / "user-places"
    stand.login = stand.new_login(places=KnownPlaces(path))
    await stand.user("bo")
    await stand.login.login("bo", "good password", HOME)
    stand.login = stand.new_login(places=KnownPlaces(path, epoch_of=stand.tokens.epoch_of))
    for number in range(30):
        await fail(stand, "bo", f"10.1.0.{number}")
    assert await throttled_s(stand, "bo", AWAY) > 0
    await stand.login.login("bo", "good password", HOME)


async def test_a_database_that_is_away_counts_as_no_failure(
    stand: AccessStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stand.user("bo")

    async def away(_name: str) -> None:
        raise Unavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(stand.entities.users, "by_name", away)
        for _ in range(5):
            with pytest.raises(Unavailable):
                await stand.login.login("bo", "good password", HOME)
    await stand.login.login("bo", "good password", HOME)


async def test_attempts_at_the_same_time_count_too(stand: AccessStand) -> None:
    await stand.user("bo")
    attempts = (stand.login.login("bo", "not the password", HOME) for _ in range(20))
    results = await asyncio.gather(*attempts, return_exceptions=True)
    assert sum(isinstance(result, NotAuthenticated) for result in results) <= 4
    assert sum(isinstance(result, Throttled) for result in results) >= 16


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


async def test_a_flood_from_one_address_makes_no_other_wait(
    stand: AccessStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An honest login is checked at once, beside the one of the flood that is under way."""
    await stand.user("bo")
    checked: list[str] = []
    verify = users.verify_password

    async def noted(stored: str | None, password: str) -> bool:
        checked.append(password)
        return await verify(stored, password)

    monkeypatch.setattr(users, "verify_password", noted)
    flood = [asyncio.create_task(stand.login.login(f"guess-{number}", "flood", AWAY)) for number in range(200)]
    await until(lambda: len(checked) >= 3, "the flood is under way")
    before = len(checked)
    await stand.login.login("bo", "good password", HOME)
    assert checked.index("good password") - before <= 2
    results = await asyncio.gather(*flood, return_exceptions=True)
    assert sum("wait already" in str(result) for result in results) >= 150
    assert stand.login.stats.busy >= 150


async def test_what_is_throttled_waits_for_no_turn_and_asks_no_database(
    stand: AccessStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stand.user("bo")
    for _ in range(4):
        with contextlib.suppress(NotAuthenticated, Throttled):
            await stand.login.login("bo", "not the password", HOME)
    asked: list[str] = []
    monkeypatch.setattr(stand.entities.users, "by_name", asked.append)
    for _ in range(20):
        assert await throttled_s(stand, "bo", HOME) > 0
    assert asked == []
