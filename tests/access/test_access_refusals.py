"""Refused logins don't fill the audit log: the first ones have an entry each, the others are counted."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from access_stand import AccessStand

from terrazzo.access import refusals
from terrazzo.access.refusals import OF_STRANGERS, THROTTLED, TOLD, Bounds, RefusalLog
from terrazzo.access.tokens import actor_of
from terrazzo.audit.log import AuditLog
from terrazzo.domain.actor import SYSTEM, Actor
from terrazzo.errors import NotAuthenticated, Throttled, Unavailable

HOME = "10.0.0.1"
pytestmark = pytest.mark.usefixtures("cheap")


@pytest.fixture
def log(stand: AccessStand) -> RefusalLog:
    return RefusalLog(AuditLog(stand.database, clock=stand.clock), clock=stand.clock)


async def told(stand: AccessStand) -> list[dict[str, Any]]:
    """The entries of refused logins, oldest first."""
    rows = await AuditLog(stand.database).page(SYSTEM, page_size=100_000)
    return [row for row in reversed(rows.rows) if row["action"] == "login_refused"]


async def user_of(stand: AccessStand, name: str) -> Actor:
    row = await stand.entities.users.by_name(name)
    assert row is not None
    return actor_of(row)


async def test_a_thousand_refused_logins_under_fresh_names_from_one_address(stand: AccessStand) -> None:
    for number in range(1_000):
        with contextlib.suppress(NotAuthenticated, Throttled):
            await stand.login.login(f"guess-{number}", "not the password", HOME)
    await stand.refusals.flush()
    rows = await told(stand)
    assert len(rows) <= TOLD + 1 + 2, "each of the first, the first that was throttled, and a count of both kinds"
    counts = {row["after"]["reason"]: row["after"]["count"] for row in rows if "count" in row["after"]}
    assert sum(counts.values()) + TOLD + 1 == 1_000
    assert stand.refusals.stats.counted == sum(counts.values())


async def test_many_addresses_have_a_bound_together(stand: AccessStand, log: RefusalLog) -> None:
    for number in range(3_000):
        await log.note(f"guess-{number}", f"10.{number // 256}.{number % 256}.1", None, "wrong credentials")
    await log.flush()
    rows = await told(stand)
    assert len(rows) <= OF_STRANGERS.told + OF_STRANGERS.kinds + 1
    assert {row["company_id"] for row in rows} == {None}
    assert sum(row["after"].get("count", 1) for row in rows) == 3_000
    [rest] = [row for row in rows if not row["address"]]
    assert rest["after"]["count"] > 2_000


async def test_a_count_says_of_whom_and_when(stand: AccessStand, log: RefusalLog) -> None:
    for number in range(TOLD + 3):
        await log.note(f"guess-{number}", "2001:db8::1", None, "wrong credentials")
        stand.clock.advance(1)
    await log.note("\ud800\0" + "x" * 1_000, "2001:db8::2", None, "wrong credentials")
    await log.flush()
    *single, count = await told(stand)
    assert [row["username"] for row in single] == [f"guess-{number}" for number in range(TOLD)]
    assert (count["username"], count["address"], count["after"]["count"]) == ("", "2001:db8::/64", 4)
    assert count["after"]["names"] == ["?\0" + "x" * 62, *(f"guess-{TOLD + number}" for number in range(3))]
    assert count["after"]["since"] < count["after"]["until"]


async def test_a_user_and_its_company_hear_of_it(stand: AccessStand, log: RefusalLog) -> None:
    company = await stand.entities.companies.create(SYSTEM, {"name": "theirs"})
    await stand.user("bo", permission_company_id=company["id"])
    bo = await user_of(stand, "bo")
    for _ in range(TOLD + 5):
        await log.note("bo", HOME, bo, "wrong credentials")
        await log.note("bo", HOME, bo, THROTTLED)
    await log.flush()
    rows = await told(stand)
    assert {(row["company_id"], row["username"], row["record_id"]) for row in rows} == {
        (company["id"], "bo", bo.user_id)
    }
    assert len(rows) == TOLD + 1 + 2
    assert [row["after"]["count"] for row in rows[-2:]] == [5, TOLD + 4]


async def test_users_have_a_bound_too(stand: AccessStand, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refusals, "OF_USERS", Bounds(told=30, kinds=20))
    log = RefusalLog(AuditLog(stand.database), clock=stand.clock)
    await stand.user("bo")
    bo = await user_of(stand, "bo")
    for number in range(1_000):
        await log.note("bo", f"10.0.{number // 256}.{number % 256}", bo, "wrong credentials")
    await log.flush()
    assert len(await told(stand)) <= 30 + 20 + 1


async def test_each_window_tells_anew(stand: AccessStand, log: RefusalLog) -> None:
    for _ in range(2):
        await log.note("nobody", HOME, None, "wrong credentials")
        await log.flush()
    assert [row["username"] for row in await told(stand)] == ["nobody", "nobody"]


async def test_counts_that_can_not_be_written_are_kept(
    stand: AccessStand, log: RefusalLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(TOLD + 5):
        await log.note("nobody", HOME, None, "wrong credentials")

    async def away(*_arguments: object) -> None:
        raise Unavailable("away")

    with monkeypatch.context() as patched:
        patched.setattr(AuditLog, "note", away)
        with pytest.raises(Unavailable):
            await log.flush()
    await log.flush()
    assert (await told(stand))[-1]["after"]["count"] == 5
