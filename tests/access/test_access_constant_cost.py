"""Whoever tries names learns nothing from the time an answer takes: each attempt costs one hash of the same kind."""

from __future__ import annotations

import statistics
import time
from typing import Any

import argon2
import pytest
from access_stand import AccessStand

from terrazzo.access.users import SYSTEM, UserLogin
from terrazzo.crypto import passwords
from terrazzo.errors import NotAuthenticated

HOME = "10.0.0.1"
ATTEMPTS = 15


@pytest.fixture
async def login(stand: AccessStand) -> UserLogin:
    """Users of every kind, and nobody is throttled."""
    company = await stand.entities.companies.create(SYSTEM, {"name": "closed"})
    await stand.user("known")
    await stand.user("deactivated", is_active=0)
    await stand.entities.users.create_by_sso(SYSTEM, {"username": "by single sign-on"}, "0" * 64)
    await stand.entities.users.set_second_factor(SYSTEM, (await stand.user("with a factor"))["id"], has=True)
    await stand.user("of a closed company", permission_company_id=company["id"])
    await stand.entities.companies.update(SYSTEM, company["id"], {"is_available": 0})
    return stand.new_login(failures=0)


NAMES = [
    "known",
    "by single sign-on",
    "with a factor",
    "deactivated",
    "of a closed company",
    "unknown",
    "",
    "\0",
    "x" * 1_000,
]


async def test_every_refusal_costs_one_verification_of_the_same_parameters(
    login: UserLogin, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs: list[argon2.Parameters] = []
    verify = passwords._hasher.verify

    class Counting:
        def verify(self, stored: str, password: bytes) -> Any:
            costs.append(argon2.extract_parameters(stored))
            return verify(stored, password)

    monkeypatch.setattr(passwords, "_hasher", Counting())
    for name in NAMES:
        costs.clear()
        with pytest.raises(NotAuthenticated, match=r"^username or password is wrong$"):
            await login.login(name, "not the password", HOME)
        assert len(costs) == 1, name
        [cost] = costs
        assert (cost.type, cost.time_cost, cost.memory_cost, cost.parallelism) == (argon2.Type.ID, 2, 19 * 1024, 1)
        assert (cost.hash_len, cost.salt_len) == (32, 16)


async def test_nobodys_hash_has_the_parameters_of_new_ones() -> None:
    hasher = argon2.PasswordHasher(time_cost=2, memory_cost=19 * 1024, parallelism=1)
    assert not hasher.check_needs_rehash(passwords.NOBODY)
    assert not hasher.check_needs_rehash(await passwords.hash_password("x"))


async def test_unknown_users_take_as_long_as_known_ones(login: UserLogin) -> None:
    """By processor time of all threads, interleaved, so that a busy machine slows both alike; medians."""
    times: dict[str, list[float]] = {"known": [], "unknown": []}
    for _ in range(ATTEMPTS):
        for name, taken in times.items():
            began = time.process_time()
            with pytest.raises(NotAuthenticated):
                await login.login(name, "not the password", HOME)
            taken.append(time.process_time() - began)
    known, unknown = (statistics.median(taken) for taken in times.values())
    assert 0.5 < unknown / known < 2, "a lookup without a hash takes a tenth"


async def test_a_long_password_costs_no_more_than_the_longest_that_may_be(login: UserLogin) -> None:
    assert len(passwords._encode("x" * 1_000_000)) == passwords.MAX_CHARACTERS + 1
    with pytest.raises(NotAuthenticated):
        await login.login("known", "good password" + "x" * 1_000_000, HOME)
