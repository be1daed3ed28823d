"""Rules that give commands: when something opens, and at times; guarded against loops, floods and what was missed."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rule_stand import Receiver
from watch_stand import ROOT, Stand, watched_company

from terrazzo.database.port import Conditions
from terrazzo.domain.actor import Actor, Role
from terrazzo.errors import BadParameter
from terrazzo.metadata.company_limits import NAMES, PREFIX
from terrazzo.rules import command_store
from terrazzo.rules.command_store import RuleCommandRecords, command_rows
from terrazzo.rules.schedule import next_run_us, runs_between, runs_of
from terrazzo.times import DAY_US, format_iso, format_spaced, parse_time

BERLIN = ZoneInfo("Europe/Berlin")
HEAT = {"channel": "none", "command": "HEAT"}
COLD = {"kinds": ["event"], "codes": ["COLD"], **HEAT}


@pytest.fixture
async def stand(tmp_path: Path, each_database: str) -> AsyncIterator[Stand]:
    async with watched_company(tmp_path, zone=BERLIN) as made:
        yield made


only_sqlite = pytest.mark.parametrize("each_database", ["sqlite"], indirect=True)


async def test_an_event_gives_a_command_with_the_rule_as_actor(stand: Stand) -> None:
    (uid,) = await stand.terminals(1)
    tank = await stand.tank(uid)
    await stand.rule(**COLD, command_value="21", command_expiry_s=600)
    await stand.happen(tank)
    await stand.happen(tank, code="OTHER")
    await stand.happen(tank, kind="opened")
    await stand.settle()
    (command,) = await stand.commands()
    assert (command["terminal_id"], command["object_id"], command["rule_id"]) == (uid, tank, 1)
    assert (command["command"], command["value"], command["created_by"]) == ("HEAT", "21", 0)
    assert json.loads(command["payload"]) == {"Act": "Control", "heat": 21}
    assert command["expires_us"] - command["queued_us"] == 600_000_000
    (entry,) = await stand.audited("command")
    assert (entry["username"], entry["user_id"], entry["company_id"]) == ("rule 1: r", 0, stand.actor.company_id)
    assert json.loads(entry["after"])["rule_id"] == 1
    assert stand.commander.stats.commands == 1


@only_sqlite
async def test_a_terminal_that_goes_gives_a_command_to_another_object(stand: Stand) -> None:
    one, two = await stand.terminals(2)
    await stand.tank(one)
    other = await stand.tank(two, name="Spare")
    fields = {"kinds": ["offline"], "minutes": 5, "terminal_list": [one], "command_objects": [str(other)]}
    await stand.rule(**fields, **HEAT)
    await stand.pass_minutes(4)
    assert await stand.commands() == []
    await stand.pass_minutes(30)
    assert [(each["terminal_id"], each["object_id"]) for each in await stand.commands()] == [(two, other)]


@only_sqlite
async def test_a_label_that_opens_gives_a_command_and_one_that_closes_none(stand: Stand) -> None:
    (uid,) = await stand.terminals(1)
    tank = await stand.tank(uid)
    await stand.rule(**{**COLD, "kinds": ["opened", "closed"]}, loop_s=0)
    await stand.happen(tank)  # an event of the same code
    await stand.happen(tank, kind="closed")
    await stand.settle()
    assert await stand.commands() == []
    await stand.happen(tank, kind="opened", record_id=2)
    await stand.settle()
    (command,) = await stand.commands()
    assert (command["terminal_id"], command["object_id"], command["command"]) == (uid, tank, "HEAT")
    assert json.loads(command["payload"]) == {"Act": "Control", "heat": 1}


@only_sqlite
async def test_an_object_all_of_whose_terminals_go_gives_a_command(stand: Stand) -> None:
    one, two, other = await stand.terminals(3)
    gone = await stand.tank(one, two)
    spare = await stand.tank(other, name="Spare")
    stand.connect(one, two, other)
    fields = {"kinds": ["object_offline", "back"], "minutes": 5, "object_list": [str(gone)]}
    await stand.rule(**fields, **HEAT, command_objects=[str(spare)], loop_s=0)
    stand.disconnect(one)
    await stand.pass_minutes(30)
    assert await stand.commands() == [], "one of its terminals is there"
    stand.hear(two)
    stand.disconnect(two)
    await stand.pass_minutes(4)
    assert await stand.commands() == [], "it is away since it was last heard"
    await stand.pass_minutes(2)
    assert [(each["terminal_id"], each["object_id"]) for each in await stand.commands()] == [(other, spare)]
    stand.connect(one)
    await stand.pass_minutes(30)
    assert len(await stand.commands()) == 1, "it is back, which is nothing to command"


async def test_what_a_command_may_have_caused_gives_no_command_of_the_same_rule(stand: Stand) -> None:
    one, two = await stand.terminals(2)
    tank, well = await stand.tank(one), await stand.tank(two, name="Well")
    await stand.rule(**COLD, loop_s=60)
    for _ in range(5):  # the command makes the event that it answers to
        await stand.happen(tank)
        await stand.settle()
        stand.now += 10_000_000
    await stand.happen(well)
    await stand.settle()
    assert [each["object_id"] for each in await stand.commands()] == [tank, well]
    assert stand.commander.stats.commands_refused == 4
    (entry,) = await stand.audited("command_refused")
    assert (entry["username"], entry["entity"], entry["record_id"]) == ("rule 1: r", "rule", 1)
    assert json.loads(entry["after"])["reason"].endswith("within 60 s after its last command (loop_s)")
    await stand.end()
    await stand.begin()
    await stand.happen(tank)
    await stand.settle()
    assert len(await stand.commands()) == 2, "a restart does not forget"
    stand.now += 61_000_000
    await stand.happen(tank)
    await stand.settle()
    assert len(await stand.commands()) == 3


@only_sqlite
async def test_a_rule_with_objects_of_its_own_choice_is_guarded_as_a_whole(stand: Stand) -> None:
    one, two = await stand.terminals(2)
    tank, well = await stand.tank(one), await stand.tank(two, name="Well")
    await stand.rule(**COLD, loop_s=60, command_objects=[str(tank), str(well)])
    await stand.happen(tank)
    await stand.settle()
    stand.now += 1_000_000
    await stand.happen(well)
    await stand.settle()
    assert [each["object_id"] for each in await stand.commands()] == [tank, well]


@only_sqlite
async def test_a_rule_and_a_company_give_so_many_commands_an_hour(stand: Stand) -> None:
    (uid,) = await stand.terminals(1)
    tank = await stand.tank(uid)
    await stand.end()
    stand.commands_of_company = 7
    await stand.begin()
    await stand.rule(**COLD, loop_s=0, commands_per_hour=4)
    await stand.rule(**COLD, loop_s=0)
    for _ in range(10):
        await stand.happen(tank)
        await stand.settle()
        stand.now += 1_000_000
    given = [each["rule_id"] for each in await stand.commands()]
    assert (given.count(1), given.count(2)) == (4, 3)
    reasons = [json.loads(each["after"])["reason"] for each in await stand.audited("command_refused")]
    assert len(reasons) == 2, "once for each reason"
    assert "(limits.company_rule_commands_per_hour)" in str(reasons)
    stand.now += 3_600_000_000
    await stand.happen(tank)
    await stand.settle()
    assert len(await stand.commands()) == 9
    no_limits = dict.fromkeys((PREFIX + name for name in NAMES), 0)
    stand.own.put(stand.actor.company_id, {**no_limits, "limit_rule_commands_per_hour": 3})
    stand.now += 1_000_000
    for _ in range(2):
        await stand.happen(tank)
        await stand.settle()
        stand.now += 1_000_000
    assert len(await stand.commands()) == 10, "by the company's own record"
    reasons = [json.loads(each["after"])["reason"] for each in await stand.audited("command_refused")]
    assert "(limit_rule_commands_per_hour of the company's record)" in str(reasons)


@only_sqlite
async def test_a_rule_reaches_no_object_of_another_company(stand: Stand) -> None:
    (uid,) = await stand.terminals(1)
    tank, mine = await stand.tank(uid), stand.actor
    company = await stand.entities.companies.create(ROOT, {"name": "two"})
    values = {"username": "other", "password": "a long password", "role": "admin"}
    user = await stand.entities.users.create(ROOT, {**values, "permission_company_id": company["id"]})
    stand.actor = Actor(user_id=user["id"], username="other", company_id=company["id"], role=Role.ADMIN)
    with pytest.raises(BadParameter, match=f"command_objects: no object '{tank}'"):
        await stand.rule(**COLD, command_objects=[str(tank)])
    await stand.rule(**COLD)
    other, stand.actor = stand.actor, mine
    await stand.happen(tank)
    await stand.settle()
    assert await stand.commands() == [], "its events are another company's"
    (rule,) = [each for each in stand.notifier.active_rules.every() if each.company_id == other.company_id]
    await stand.commander._store.add(command_rows(rule, tank, stand.now))
    await stand.settle()
    assert await stand.commands() == []
    (entry,) = await stand.audited("command_refused")
    assert json.loads(entry["after"])["reason"] == f"object_id: no record {tank}"


@only_sqlite
async def test_what_the_control_table_does_not_have_is_refused_and_told(stand: Stand) -> None:
    (uid,) = await stand.terminals(1)
    tank = await stand.tank(uid)
    await stand.rule(**{**COLD, "command": "FLY"})
    await stand.happen(tank)
    await stand.settle()
    assert await stand.commands() == []
    (entry,) = await stand.audited("command_refused")
    assert "'FLY' is not in the object's control script" in json.loads(entry["after"])["reason"]


async def test_what_was_refused_is_listed_with_its_reason_the_last_ones_of_each_rule(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command_store, "MOST_REFUSED", 3)
    (uid,) = await stand.terminals(1)
    tank = await stand.tank(uid)
    await stand.rule(**{**COLD, "command": "FLY"})
    await stand.rule(**{**COLD, "loop_s": 0})
    for _ in range(5):
        await stand.happen(tank)
        await stand.settle()
        stand.now += 1_000_000
    records = RuleCommandRecords(stand.database, zone=BERLIN)
    refused = await records.page(stand.actor, conditions=Conditions([("state", "=", "refused")]))
    assert [(row["rule_id"], row["cause_id"], row["command"]) for row in refused.rows] == [(1, tank, "FLY")] * 3
    assert all("'FLY' is not in the object's control script" in row["reason"] for row in refused.rows)
    assert [row["refused_us"] for row in refused.rows] == [stand.now - seconds * 1_000_000 for seconds in (1, 2, 3)]
    given = await records.page(stand.actor, conditions=Conditions([("state", "=", "sent")]))
    assert {(row["rule_id"], row["reason"]) for row in given.rows} == {(2, "")}
    assert given.total == 5
    assert (await records.page(Actor(user_id=9, username="x", company_id=9, role=Role.ADMIN))).total == 0
    stand.now += 8 * DAY_US
    await stand.settle()
    assert (await records.page(stand.actor)).total == 0, "after a week they are forgotten"


@only_sqlite
async def test_a_crash_between_journal_and_mark_gives_a_command_once(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    (uid,) = await stand.terminals(1)
    tank = await stand.tank(uid)
    await stand.rule(**COLD)
    await stand.happen(tank)
    with monkeypatch.context() as patch:
        patch.setattr(stand.commander._store, "mark_sent", _fails)
        with pytest.raises(OSError, match="killed"):
            await stand.settle()
    await stand.end()
    await stand.begin()
    assert len(await stand.commands()) == 1


async def _fails(*_: Any) -> None:
    raise OSError("killed")


@only_sqlite
async def test_a_schedule_runs_once_on_days_of_23_and_25_hours(stand: Stand) -> None:
    (uid,) = await stand.terminals(1)
    tank = await stand.tank(uid)
    runs = [{"at": "02:30"}, {"at": "18:00", "days": ["sat"]}]
    fields = {"kinds": ["schedule"], "schedule": runs, "command_objects": [str(tank)]}
    for begin, times in (
        ("2027-03-27 17:00:00", ["27T18:00:00+01:00", "28T03:30:00+02:00", "29T02:30:00+02:00"]),
        ("2027-10-30 17:00:00", ["30T18:00:00+02:00", "31T02:30:00+02:00", "01T02:30:00+01:00"]),
    ):
        await stand.stop()
        stand.now = parse_time(begin, BERLIN)
        await stand.begin()
        before = len(await stand.commands())
        rule = await stand.rule(**fields, **HEAT)
        await stand.pass_minutes(36 * 60)
        given = (await stand.commands())[before:]
        assert [format_iso(each["queued_us"], BERLIN)[8:] for each in given] == times
        await stand.entities.rules.delete(stand.actor, rule)


async def test_runs_that_were_missed_are_noted_and_not_made_up_for(stand: Stand) -> None:
    receiver = Receiver()
    (uid,) = await stand.terminals(1)
    tank = await stand.tank(uid)
    stand.now = parse_time("2027-01-16 06:59:00", BERLIN)
    runs = [{"at": "07:00"}, {"at": "08:00"}, {"at": "09:00"}, {"at": "10:00"}]
    fields = {"kinds": ["schedule"], "schedule": runs, "command_objects": [str(tank)], "command": "HEAT"}
    await stand.rule(**fields, **receiver.hook)
    await stand.pass_minutes(1.1)
    await stand.end()
    stand.now = parse_time("2027-01-16 09:30:00", BERLIN)
    await stand.begin()
    await stand.pass_minutes(60)
    times = [format_spaced(each["queued_us"], BERLIN)[11:] for each in await stand.commands()]
    assert times == ["07:00:00", "10:00:00"]
    (hook,) = await stand.told(receiver, 1)
    (item,) = hook["items"]
    assert (item["kind"], item["value"]) == ("missed", "2027-01-16 08:00:00, 2027-01-16 09:00:00")
    (entry,) = await stand.audited("run_missed")
    assert json.loads(entry["after"]) == {"schedule": item["value"]}
    assert stand.commander.stats.runs_missed == 2
    receiver.stop()


@given(st.integers(1_700_000_000_000_000, 1_900_000_000_000_000), st.sets(st.times(), min_size=1, max_size=4))
def test_each_time_of_day_comes_once_a_day(after_us: int, times: set[Any]) -> None:
    texts = sorted({f"{each:%H:%M}" for each in times})
    runs = runs_of([{"at": text} for text in texts])
    found = runs_between(runs, after_us, after_us + 21 * DAY_US, BERLIN, 1_000)
    assert found == sorted(set(found))
    by_day = [format_spaced(each, BERLIN)[:10] for each in found]
    assert max(by_day.count(day) for day in by_day) <= len(texts)
    assert len(found) >= 19 * len(texts) - 4, "a time in the hour that is left out may be another one's"
    assert next_run_us(runs, after_us, BERLIN) == found[0] > after_us


SCHEDULED = {"kinds": ["schedule"], "schedule": [{"at": "07:00"}]}


@pytest.mark.parametrize(
    ("fields", "info"),
    [
        ({"kinds": ["event"], "channel": "none"}, "channel: is none: a rule that gives no command"),
        ({"kinds": ["closed"], **HEAT}, "command: is given when something opens, not with kinds closed"),
        ({"kinds": ["schedule", "event"], **HEAT}, "kinds: schedule stands alone"),
        ({"kinds": ["schedule"], **HEAT}, "schedule: goes with kinds schedule"),
        ({"kinds": ["event"], "schedule": [{"at": "07:00"}], **HEAT}, "schedule: goes with kinds schedule"),
        ({**SCHEDULED, **HEAT}, "command_objects: is required with kinds schedule"),
        ({**SCHEDULED, **HEAT, "object_list": ["1"]}, "object_list: selects nothing"),
        ({**SCHEDULED, **HEAT, "command_objects": ["nothing"]}, "command_objects: no object 'nothing'"),
        ({**SCHEDULED, **HEAT, "schedule": [{"at": "7"}]}, "schedule: element 1: at: expected HH:MM"),
        ({**SCHEDULED, **HEAT, "schedule": [{"at": "07:00", "days": ["so"]}]}, "schedule: element 1: days: expected"),
        ({**SCHEDULED, **HEAT, "schedule": [{"at": "07:00"}] * 51}, "schedule: expected an array of at most 50"),
        ({**COLD, "commands_per_hour": 0}, "commands_per_hour: expected 1..1000, got 0"),
    ],
)  # fmt: skip
@only_sqlite
async def test_a_bad_rule_is_refused_by_name(stand: Stand, fields: dict[str, Any], info: str) -> None:
    uid = (await stand.terminals(1))[0]
    assert await stand.tank(uid) == 1
    with pytest.raises(BadParameter) as caught:
        await stand.entities.rules.create(stand.actor, {"name": "r", **fields})
    assert str(caught.value).startswith(info)
