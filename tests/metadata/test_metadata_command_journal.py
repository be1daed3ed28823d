"""The journal of commands on SQLite and on PostgreSQL: steps in order, contradictions left out."""

from __future__ import annotations

import asyncio
import json

import pytest

from terrazzo.audit.log import AuditLog
from terrazzo.commands.journal import CommandJournal
from terrazzo.domain.actor import Actor, Role
from terrazzo.domain.command import CommandState, CommandStep
from terrazzo.errors import Conflict

ACTOR = Actor(user_id=1, username="a", company_id=1, role=Role.OPERATOR)


@pytest.fixture
def journal(database) -> CommandJournal:
    return CommandJournal(database)


def values(uid: str, **changes):
    return {
        "uid": uid, "company_id": 1, "terminal_id": "t1", "object_id": None, "command": "A", "value": "1",
        "payload": b'{"Act":"Control","A":1}', "state": "queued", "queued_us": 100, "expires_us": 900,
        "created_by": 1, "idempotency_key": None,
    } | changes  # fmt: skip


def step(uid: str, state: CommandState, time_us: int, **more) -> CommandStep:
    return CommandStep(uid=uid, state=state, time_us=time_us, **more)


async def add(journal: CommandJournal, given):
    [[added]] = await journal.add_requests([(ACTOR, [given])])
    return added


async def rows(journal: CommandJournal):
    page = await journal.page(ACTOR, terminal_id=None, states=(), page_index=1, page_size=100)
    return {row["uid"]: row for row in page.rows}


async def test_one_key_is_one_command_also_at_the_same_time(journal):
    given = [values(f"{number}", idempotency_key="k") for number in range(8)]
    added = await asyncio.gather(*(add(journal, each) for each in given))
    assert sorted(is_new for _, is_new in added) == [False] * 7 + [True]
    assert len({row["uid"] for row, _ in added}) == len(await rows(journal)) == 1


async def test_commands_of_one_request_with_keys_are_journaled_with_one_statement_each_key_once(journal):
    await add(journal, values("a", idempotency_key="1"))
    given = [values(uid, idempotency_key=key) for uid, key in (("b", "2"), ("c", "1"), ("d", "2"), ("e", None))]
    [added] = await journal.add_requests([(ACTOR, given)])
    assert [(row["uid"], is_new) for row, is_new in added] == [("b", True), ("a", False), ("b", False), ("e", True)]
    assert set(await rows(journal)) == {"a", "b", "e"}
    for contradicting in ("2", "3"):  # one that is there, and one of the request itself
        again = [values("f", idempotency_key="3"), values("g", idempotency_key=contradicting, value="2")]
        with pytest.raises(Conflict, match="idempotency_key"):
            await journal.add_requests([(ACTOR, again)])
    assert set(await rows(journal)) == {"a", "b", "e"}


async def test_requests_whose_keys_cross_do_not_wait_for_each_other_forever(journal):
    keys = [f"{number}" for number in range(20)]
    given = [
        [values(f"{name}{key}", idempotency_key=key) for key in order]
        for name, order in (("a", keys), ("b", keys[::-1]), ("c", keys[7:] + keys[:7]))
    ]
    async with asyncio.timeout(30):
        added = await asyncio.gather(*(journal.add_requests([(ACTOR, each)]) for each in given))
    assert sum(is_new for [each] in added for _, is_new in each) == len(await rows(journal)) == len(keys)


async def test_requests_are_journaled_together_in_their_order_each_with_its_audit_entry(journal, database):
    other = Actor(user_id=2, username="b", company_id=1, role=Role.OPERATOR)
    given = [(ACTOR, [values("a"), values("b", terminal_id="t2")]), (other, [values("c", queued_us=101)])]
    added = await journal.add_requests(given)
    assert [[row["uid"] for row, is_new in each if is_new] for each in added] == [["a", "b"], ["c"]]
    assert added[0][1][0]["payload"] == {"Act": "Control", "A": 1}
    ids = [row["id"] for each in added for row, _ in each]
    assert ids == sorted(ids)
    assert [each.uid for each in await journal.open_commands()] == ["a", "b", "c"]
    entries = (await AuditLog(database).page(ACTOR)).rows
    assert {(each["uid"], each["username"], each["record_id"]) for each in entries} == {
        ("a", "a", ids[0]),
        ("b", "a", ids[1]),
        ("c", "b", ids[2]),
    }


async def test_steps_of_many_commands_that_alternate_are_written_kind_by_kind(journal):
    uids = ("a", "b", "c")
    for uid in uids:
        await add(journal, values(uid))
    steps = [
        step(uid, state, 200 + n) for n, uid in enumerate(uids) for state in (CommandState.SENT, CommandState.DELIVERED)
    ]
    steps += [
        step("a", CommandState.ANSWERED, 300, answer="{}", terminal_id="t1"),
        step("c", CommandState.EXPIRED, 900),
    ]
    await journal.apply(steps)
    found = await rows(journal)
    assert [(found[uid]["sent_us"], found[uid]["delivered_us"]) for uid in uids] == [(n, n) for n in (200, 201, 202)]
    assert [found[uid]["state"] for uid in uids] == ["answered", "delivered", "delivered"]


async def test_steps_are_written_in_their_order(journal):
    for uid in ("a", "b", "c"):
        row, is_new = await add(journal, values(uid))
        assert is_new
        assert row["payload"] == {"Act": "Control", "A": 1}
    await journal.apply(
        [
            step("a", CommandState.SENT, 200),
            step("b", CommandState.SENT, 201),
            step("a", CommandState.DELIVERED, 300),
            step("b", CommandState.QUEUED, 301, reason="lost"),
            step("b", CommandState.SENT, 302),
            step("c", CommandState.EXPIRED, 950, reason="not there"),
            step("a", CommandState.ANSWERED, 400, answer='{"Result":"\\u0000ok"}', terminal_id="t1"),
        ]
    )
    found = await rows(journal)
    assert (found["a"]["state"], found["a"]["delivered_us"], found["a"]["ended_us"]) == ("answered", 300, 400)
    assert found["a"]["answer"] == {"Result": "\0ok"}
    assert (found["b"]["state"], found["b"]["sent_us"], found["b"]["reason"]) == ("sent", 302, "")
    assert (found["c"]["state"], found["c"]["reason"]) == ("expired", "not there")
    assert [command.uid for command in await journal.open_commands()] == ["b"]


async def test_steps_that_contradict_the_state_are_left_out(journal):
    await add(journal, values("a"))
    said = json.dumps({"Result": "ok"})
    await journal.apply([step("a", CommandState.ANSWERED, 400, answer=said, terminal_id="t2")])
    assert (await rows(journal))["a"]["state"] == "queued"
    await journal.apply([step("a", CommandState.ANSWERED, 400, answer=said, terminal_id="t1")])
    await journal.apply([step("a", state, 500) for state in CommandState if state is not CommandState.ANSWERED])
    await journal.apply([step("unknown", CommandState.SENT, 500)])
    found = (await rows(journal))["a"]
    assert (found["state"], found["answered_us"], found["delivered_us"], found["ended_us"]) == (
        "answered",
        400,
        400,
        400,
    )


async def test_a_late_acknowledgement_is_the_truth_after_expiry(journal):
    await add(journal, values("a"))
    await journal.apply([step("a", CommandState.SENT, 200), step("a", CommandState.EXPIRED, 900, reason="in time")])
    await journal.apply([step("a", CommandState.DELIVERED, 1000)])
    found = (await rows(journal))["a"]
    assert (found["state"], found["delivered_us"], found["reason"]) == ("delivered", 1000, "")


async def test_an_idempotency_key_counts_once_per_company(journal):
    first, _ = await add(journal, values("a", idempotency_key="k"))
    again, is_new = await add(journal, values("b", idempotency_key="k"))
    assert (again["uid"], is_new) == (first["uid"], False)
    assert (await add(journal, values("c", idempotency_key="k", company_id=2)))[1]
    assert (await add(journal, values("d")))[1]
    for change in ({"value": "2"}, {"command": "B"}, {"terminal_id": "t2"}, {"object_id": 7}):
        with pytest.raises(Conflict, match=next(iter(change))):
            await add(journal, values("e", idempotency_key="k", **change))


async def test_many_at_once(journal):
    await asyncio.gather(*(add(journal, values(f"{number:032x}")) for number in range(50)))
    await journal.apply([step(f"{number:032x}", CommandState.SENT, number) for number in range(50)])
    assert {row["state"] for row in (await rows(journal)).values()} == {"sent"}
