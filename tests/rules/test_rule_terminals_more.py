"""Rules about terminals and objects: what they select, refusals, what ends without a word, limits, digests."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from rule_stand import Receiver
from watch_stand import Stand, watched_company

from mail_server import MailBox, MailServer
from messenger.messenger_rig import section_of
from terrazzo.domain.refusals.entry import RefusalEntry, ToldRefusal
from terrazzo.errors import BadParameter, QuotaExceeded, Unavailable
from terrazzo.metadata.company_limits import NAMES, PREFIX
from terrazzo.times import parse_time
from waiting import until

AWAY = {"kinds": ["offline", "back"], "minutes": 5, "back_minutes": 5}
BERLIN = ZoneInfo("Europe/Berlin")


@pytest.fixture
async def stand(tmp_path: Path) -> AsyncIterator[Stand]:
    async with watched_company(tmp_path, zone=BERLIN) as made:
        yield made


def refuse(stand: Stand, uid: str, reason: str, detail: str = "") -> None:
    """As the journal of refusals tells it."""
    entry = RefusalEntry(reason, "203.0.113.9", stand.now, stand.now, 1, detail=detail)
    stand.watch.on_refusals([ToldRefusal(stand.registry.terminal(uid), entry)])


async def test_a_rule_is_about_what_it_selects(stand: Stand, receiver: Receiver) -> None:
    uids = await stand.terminals(6)
    await stand.entities.terminals.update(stand.actor, uids[1], {"tags": "pumps"})
    item = await stand.entities.objects.create(stand.actor, {"name": "Tank", "terminal_list": [uids[2]]})
    other = await stand.entities.objects.create(stand.actor, {"name": "Well", "terminal_list": [uids[3]]})
    group = await stand.entities.groups.create(stand.actor, {"name": "North"})
    await stand.entities.group_maps.create(stand.actor, {"group_id": group["uid"], "object_id": other["uid"]})
    selected = {"terminal_list": [uids[0]], "tags": "pumps", "object_list": [item["uid"]], "group_list": [group["uid"]]}
    await stand.rule(**AWAY, **selected, **receiver.hook)
    stand.connect(*uids)
    stand.disconnect(*uids)
    await stand.pass_minutes(10)
    (hook,) = await stand.told(receiver, 1)
    assert [each["terminal"] for each in hook["items"]] == uids[:4]
    await stand.entities.terminals.update(stand.actor, uids[4], {"tags": "pumps"})
    await stand.pass_minutes(10)
    (_, late) = await stand.told(receiver, 2)
    assert [each["terminal"] for each in late["items"]] == [uids[4]]


async def test_refusals_are_told_once_until_the_terminal_is_back(stand: Stand, receiver: Receiver) -> None:
    (uid,) = await stand.terminals(1)
    await stand.rule(kinds=["refused", "back"], back_minutes=5, **receiver.hook)
    await stand.rule(name="clocks", kinds=["clock_off"], **receiver.hook)
    await stand.settle()
    for _ in range(30):
        refuse(stand, uid, "wrong_pin")
        refuse(stand, uid, "keep_alive_timeout")  # happens in order, too
        await stand.pass_minutes(1)
    (hook,) = await stand.told(receiver, 1)
    assert [(each["kind"], each["value"]) for each in hook["items"]] == [
        ("refused", "the user name is right, the password is not the terminal's pin")
    ]
    stand.connect(uid)
    await stand.pass_minutes(10)
    (_, back) = await stand.told(receiver, 2)
    assert back["items"][0]["kind"] == "back"
    refuse(stand, uid, "clock_off", "3,600 s behind")
    await stand.pass_minutes(2)
    told = (await stand.told(receiver, 4))[2:]
    values = {hook["rule"]: hook["items"][0]["value"] for hook in told}
    assert values == dict.fromkeys(("r", "clocks"), "the signature is right, its time is not: 3,600 s behind")


async def test_an_object_is_offline_when_all_its_terminals_are(stand: Stand, receiver: Receiver) -> None:
    one, two = await stand.terminals(2)
    made = await stand.entities.objects.create(stand.actor, {"name": "Tank", "terminal_list": [one, two]})
    await stand.rule(kinds=["object_offline", "back"], minutes=5, back_minutes=1, **receiver.hook)
    await stand.rule(name="silent", kinds=["object_silent"], minutes=30, **receiver.hook)
    stand.connect(one, two)
    stand.report(one)
    stand.disconnect(one)
    await stand.pass_minutes(20)
    assert receiver.hooks == []
    stand.disconnect(two)
    await stand.pass_minutes(7)
    (hook,) = await stand.told(receiver, 1)
    (item,) = hook["items"]
    assert (item["kind"], item["object"], item["object_id"]) == ("object_offline", "Tank", str(made["id"]))
    assert hook["summary"] == "1 object offline: Tank"
    stand.connect(one)
    await stand.pass_minutes(3)
    (_, back) = await stand.told(receiver, 2)
    assert back["summary"] == "1 object back: Tank"
    await stand.pass_minutes(10)
    (*_, silent) = await stand.told(receiver, 3)
    assert silent["summary"] == "1 object silent: Tank"


async def test_what_is_disabled_deleted_or_stopped_ends_without_a_word(stand: Stand, receiver: Receiver) -> None:
    one, two, three = await stand.terminals(3)
    rule = await stand.rule(**AWAY, **receiver.hook)
    await stand.pass_minutes(10)
    await stand.told(receiver, 1)
    assert len(await stand.open_rows()) == 3
    await stand.entities.terminals.update(stand.actor, one, {"is_available": 0})
    await stand.entities.terminals.delete(stand.actor, two)
    await stand.pass_minutes(1)
    third = stand.registry.terminal(three)
    assert third is not None
    assert await stand.open_rows() == [("offline", third.id)]
    await stand.entities.rules.set_active(stand.actor, rule, False)
    await stand.pass_minutes(30)
    assert await stand.open_rows() == []
    await stand.told(receiver, 1)
    await stand.entities.rules.set_active(stand.actor, rule, True)
    await stand.pass_minutes(10)
    (_, again) = await stand.told(receiver, 2)
    assert [each["terminal"] for each in again["items"]] == [three]


async def test_a_company_has_so_many_rules_and_open_conditions(stand: Stand, receiver: Receiver) -> None:
    await stand.terminals(10)
    no_limits = dict.fromkeys((PREFIX + name for name in NAMES), 0)
    stand.own.put(stand.actor.company_id, {**no_limits, "limit_rule_conditions": 6})
    stand.entities.rules.of_company = 2
    await stand.rule(**AWAY, **receiver.hook)
    await stand.rule(name="events", kinds=["event"], **receiver.hook)
    await stand.rule(name="silent", kinds=["silent"], minutes=60, **receiver.hook)
    with pytest.raises(QuotaExceeded, match=r"may have 2 \(limits\.company_rules\)"):
        await stand.rule(name="one more", kinds=["silent"], **receiver.hook)
    await stand.rule(name="more events", kinds=["event"], **receiver.hook)
    await stand.pass_minutes(10)
    (hook,) = await stand.told(receiver, 1)
    assert hook["count"] == 6
    assert stand.watch.stats.unopened >= 4


async def test_a_rule_sends_so_many_messages_an_hour_and_folds_the_rest(tmp_path: Path, receiver: Receiver) -> None:
    async with watched_company(tmp_path) as stand:
        uids = await stand.terminals(20)
        await stand.end()
        stand.messages_per_hour = 3
        await stand.begin()
        await stand.rule(kinds=["offline"], minutes=1, window_s=0, **receiver.hook)
        stand.connect(*uids)
        for uid in uids:
            stand.disconnect(uid)
            await stand.pass_minutes(1)
        assert [hook["count"] for hook in await stand.told(receiver, 3)] == [1, 1, 1]
        await stand.pass_minutes(60)
        assert [hook["count"] for hook in await stand.told(receiver, 4)] == [1, 1, 1, 17]


async def test_what_waits_when_a_rule_becomes_another_one_is_told_with_the_rest(
    stand: Stand, receiver: Receiver
) -> None:
    await stand.terminals(2)
    rule = await stand.rule(kinds=["event"], window_s=3_600, **receiver.hook)
    for count in (1, 1):
        await stand.happen(1)
        await stand.settle()
        await stand.told_plainly(receiver, count)
    await stand.entities.rules.update(stand.actor, rule, {"kinds": ["offline"], "window_s": 600})
    await stand.pass_minutes(20)
    await stand.told_plainly(receiver, 2)
    assert [item["kind"] for item in receiver.hooks[1]["items"]] == ["event", "offline", "offline"]


async def test_what_waits_when_a_rule_tells_nobody_any_more_is_dropped(stand: Stand, receiver: Receiver) -> None:
    rule = await stand.rule(kinds=["event"], window_s=60, **receiver.hook)
    for _ in range(2):
        await stand.happen(1)
        await stand.settle()
    await stand.entities.rules.update(stand.actor, rule, {"channel": "none", "command": "HEAT"})
    await stand.pass_minutes(5)
    await stand.told_plainly(receiver, 1)


async def test_a_process_that_stood_still_was_away(stand: Stand, receiver: Receiver) -> None:
    uids = await stand.terminals(2)
    await stand.rule(**AWAY, **receiver.hook)
    stand.report(*uids)
    await stand.pass_minutes(2)
    stand.now += 20 * 60_000_000
    await stand.watch._beat()
    stand.report(*uids)
    await stand.pass_minutes(4)
    (hook,) = await stand.told(receiver, 1)
    assert [(each["kind"], each["value"]) for each in hook["items"]] == [("outage", "for 20 min")]


async def test_a_failed_write_is_tried_again(stand: Stand, receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    await stand.terminals(3)
    await stand.rule(**AWAY, **receiver.hook)
    await stand.pass_minutes(4.5)
    with monkeypatch.context() as patch:
        patch.setattr(stand.watch._store, "apply", _fails)
        with pytest.raises(Unavailable, match="no database"):
            await stand.pass_minutes(2)
        assert await stand.open_rows() == []
    await stand.pass_minutes(3)
    (hook,) = await stand.told(receiver, 1)
    assert hook["count"] == 3


async def _fails(_changes: object) -> None:
    raise Unavailable("no database")


async def test_a_digest_is_one_mail_a_day_with_all_that_came_since(tmp_path: Path) -> None:
    async with MailServer(MailBox()) as server, watched_company(tmp_path, zone=BERLIN) as stand:
        uids = await stand.terminals(30)
        mail = {"host": "127.0.0.1", "port": server.port, "sender": "plant@example.com", "tls": "off"}
        await stand.end()
        stand.section = section_of({"id": 1, "name": "plant", "email": mail})
        stand.now = parse_time("2027-01-16 10:00:00", BERLIN)
        await stand.begin()
        stand.connect(*uids)
        fields = {"channel": "email", "recipients": ["ops@example.com"], "digest": "daily", "digest_at": "18:30"}
        await stand.rule(**AWAY, **fields)
        for uid in uids[:25]:
            stand.disconnect(uid)
            await stand.pass_minutes(10)
        stand.connect(uids[0])
        await stand.pass_minutes(240)
        assert server.box.taken == []
        await stand.pass_minutes(30)
        await until(lambda: server.box.taken, "the digest")
        await stand.pass_minutes(3 * 1_440)
    ((recipients, message),) = server.box.taken
    assert recipients == ["ops@example.com"]
    subject = "25 terminals offline, 1 terminal back: Pump t0001, Pump t0002, Pump t0003 and 23 more"
    assert message["Subject"] == subject
    lines = message.get_content().splitlines()
    assert (lines[0], len(lines)) == (subject, 27)
    assert lines[1] == "Pump t0001: offline (t0001) = for 5 min at 2027-01-16 10:00:00"
    assert lines[26] == "Pump t0001: back (t0001) = was offline for 4 h 10 min at 2027-01-16 14:10:00"


@pytest.mark.parametrize(
    ("digest", "at", "told_at"),
    [
        ({"digest": "hourly"}, "2027-01-15 10:20:00", "2027-01-15 11:00:00"),
        ({"digest": "daily", "digest_at": "08:00"}, "2027-01-15 10:20:00", "2027-01-16 08:00:00"),
        ({"digest": "daily", "digest_at": "02:30"}, "2027-03-27 10:00:00", "2027-03-28 03:30:00"),  # there is no 02:30
        ({"digest": "daily", "digest_at": "02:30"}, "2027-10-30 10:00:00", "2027-10-31 02:30:00"),  # there are two
    ],
)
def test_when_a_digest_is_due(digest: dict[str, str], at: str, told_at: str) -> None:
    from test_rule_logic import row

    from terrazzo.rules.pace import due_us
    from terrazzo.rules.rule import rule_of

    first_us = parse_time(at, BERLIN)
    found = due_us(rule_of(row(**digest)), told_us=first_us - 1, first_us=first_us, last_us=first_us, zone=BERLIN)
    assert found == parse_time(told_at, BERLIN)


@pytest.mark.parametrize(
    ("fields", "info"),
    [
        ({"kinds": ["offline", "event"]}, "kinds: event and offline are for two rules"),
        ({"kinds": ["offline", "object_silent"]}, "kinds: offline and object_silent are for two rules"),
        ({"kinds": ["back"]}, "kinds: back goes with one of offline"),
        ({"kinds": ["event", "outage"]}, "kinds: outage stands alone"),
        ({"kinds": ["offline"], "codes": ["HOT"]}, "codes: selects nothing that a rule with kinds offline is about"),
        ({"kinds": ["event"], "tags": "north"}, "tags: selects nothing that a rule with kinds event is about"),
        ({"kinds": ["object_offline"], "terminal_list": ["t"]}, "terminal_list: selects nothing"),
        ({"kinds": ["offline"], "terminal_list": ["nobody"]}, "terminal_list: no terminal 'nobody'"),
        ({"kinds": ["offline"], "group_list": ["nothing"]}, "group_list: no object_group 'nothing'"),
        ({"kinds": ["offline"], "minutes": 0}, "minutes: expected 1..10080, got 0"),
        ({"kinds": ["offline"], "digest": "daily"}, "digest: is sent by email, not by webhook"),
        ({"kinds": ["offline"], "digest": "weekly"}, "digest: expected one of none, hourly, daily"),
        ({"kinds": ["offline"], "digest_at": "8"}, "digest_at: expected HH:MM"),
        ({"kinds": ["offline"], "terminal_list": ["t"] * 1_001}, "terminal_list: at most 1000 elements, got 1001"),
    ],
)  # fmt: skip
async def test_a_bad_rule_is_refused_by_name(fields: dict[str, object], info: str, shared: Stand) -> None:
    hook = {"channel": "webhook", "url": "http://receiver.example/", "secret": "0123456789abcdef"}
    with pytest.raises(BadParameter) as caught:
        await shared.entities.rules.create(shared.actor, {"name": "r", **hook, **fields})
    assert str(caught.value).startswith(info)


@pytest.fixture
async def shared(tmp_path: Path) -> AsyncIterator[Stand]:
    async with watched_company(tmp_path) as made:
        yield made


def test_one_time_counts_for_each_and_the_heap_stays_small() -> None:
    from terrazzo.rules.timers import Timers

    timers: Timers[int] = Timers()
    for turn in range(100):
        for key in range(50):
            timers.set(key, 1_000 + key - turn)
    assert (len(timers), timers.next) == (50, 901)
    assert len(timers._heap) <= 2 * 50 + 1_001
    timers.drop(0)
    timers.hasten(1, 5_000)  # it has an earlier one
    assert timers.take(903, 10) == [1, 2]
    assert (timers.next, len(timers)) == (904, 47)
