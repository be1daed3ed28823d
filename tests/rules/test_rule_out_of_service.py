"""Terminals out of service: nothing about them alarms meanwhile, and what is still so is told when they are back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from rule_stand import Receiver, add_rule, prepare, report
from watch_stand import Stand, watched_company

from running import Platform, wait_for
from terrazzo.metadata.out_of_service import OutOfServiceRecords
from terrazzo.times import format_iso, now_us

AWAY = {"kinds": ["offline", "back"], "minutes": 5, "back_minutes": 5}
HOUR_US = 3_600_000_000
only_sqlite = pytest.mark.parametrize("each_database", ["sqlite"], indirect=True)


def out_of_service(platform: Platform) -> dict[str, Any] | None:
    """What the terminal's record says of it."""
    found: dict[str, Any] | None = platform.call("get_terminal_item", uid="m1")["out_of_service"]
    return found


def codes(platform: Platform, *, shelved: bool) -> list[str]:
    """Codes of the events that are on the shelf, or are not."""
    events = platform.call("get_event_list", page_size=100)["data"]
    return sorted(each["code"] for each in events if (each["shelved_until"] is not None) is shelved)


def test_events_and_labels_hold_still_until_the_terminal_is_back(platform: Platform, receiver: Receiver) -> None:
    add_rule(platform, kinds=["event", "opened", "closed"], window_s=0, **receiver.hook)
    add_rule(platform, name="again", kinds=["event"], window_s=0, repeat_s=1, repeat_times=100, **receiver.hook)
    report(platform, {"t": 90}, {"t": 70})
    wait_for(lambda: receiver.told("again") >= 2, "it is told, and again")
    until = format_iso(now_us() + HOUR_US)
    assert platform.call("get_attention")["terminals"]["out_of_service"] == 0
    assert platform.call("put_out_of_service", uids=["m1"], until=until, reason="泵 is <b>out</b>") == {"terminals": 1}
    assert platform.call("get_attention")["terminals"]["out_of_service"] == 1, "at once, not what was just worked out"
    found = out_of_service(platform)
    assert found is not None
    assert (found["reason"], found["by"]) == ("泵 is <b>out</b>", "admin")
    report(platform, {"t": 95, "run": 1}, {"t": 70})
    wait_for(lambda: len(codes(platform, shelved=True)) == 2, "both events are on the shelf")
    wait_for(lambda: platform.call("get_open_retainer_list")["data"], "the label is open")
    needs = platform.call("get_attention")
    assert (needs["terminals"]["out_of_service"], needs["events"]["count"], needs["labels"]["count"]) == (1, 0, 0)
    assert [each["uid"] for each in platform.call("get_terminal_list", out_of_service=1)] == ["m1"]
    assert platform.call("get_terminal_list", out_of_service=0) == []
    told, again = receiver.told("hot"), receiver.told("again")
    add_rule(platform, name="other", kinds=["event"], window_s=0, **receiver.hook)  # works while the others hold still
    platform.kill()
    later = platform.again().login()
    try:
        report(later, {"t": 96}, {"t": 70})
        wait_for(lambda: len(codes(later, shelved=True)) == 3, "after a restart, too")
        assert (told, receiver.told("hot"), receiver.told("other")) == (1, 1, 0)
        assert receiver.told("again") <= again + 1, "one may have been on its way"
        assert later.call("put_into_service", uids=["m1"]) == {"terminals": 1}
        assert later.call("put_into_service", uids=["m1"]) == {"terminals": 0}
        assert out_of_service(later) is None
        wait_for(lambda: receiver.told("hot") == 4, "two events and a label are told")
        wait_for(lambda: receiver.told("again") > again + 1, "and reminders go on")
        assert codes(later, shelved=True) == []
        assert later.call("get_attention")["labels"]["count"] == 1
        entries = later.call("get_audit_list", entity="terminal", page_size=100)["data"]
        kept = [each["after"] for each in entries if "out_of_service_until" in (each["after"] or {})]
        assert [each.get("out_of_service_reason") for each in kept] == [None, "泵 is <b>out</b>"]
    finally:
        later.stop()


@only_sqlite
def test_it_ends_by_itself(platform: Platform, receiver: Receiver) -> None:
    add_rule(platform, kinds=["event"], window_s=0, **receiver.hook)
    platform.call("put_out_of_service", uids="m1", until=format_iso(now_us() + 4_000_000), reason="short")
    report(platform, {"t": 90}, {"t": 70})
    wait_for(lambda: codes(platform, shelved=True) == ["HOT"], "the event is on the shelf")
    wait_for(lambda: out_of_service(platform) is None, "its time is over")
    wait_for(lambda: receiver.told("hot") == 1, "what is still open is told")
    (entry,) = platform.call("get_audit_list", entity="terminal", username="system")["data"]
    assert entry["after"] == {"out_of_service_until": None}


@pytest.mark.parametrize(
    ("fields", "code", "info"),
    [
        ({"until": "2000-01-01 00:00:00"}, 10401, "until: expected a time ahead, at most 366 days"),
        ({"until": format_iso(now_us() + 367 * 24 * HOUR_US)}, 10401, "until: expected a time ahead"),
        ({"minutes": 5}, 10401, "until: give either until or minutes"),
        ({"until": None}, 10401, "until: expected a time ahead"),
        ({"until": None, "minutes": 0}, 10401, "minutes: "),
        ({"reason": ""}, 10401, "reason: "),
        ({"reason": "a\0b"}, 10401, "reason: "),
        ({"uids": []}, 10401, "uids: names no terminal"),
        ({"uids": [str(number) for number in range(1_001)]}, 10401, "uids: 1001 entries"),
        ({"uids": ["m1", "nobody"]}, 10404, "uids: no record 'nobody'"),
    ],
)
def test_what_makes_no_sense_is_refused(shared: Platform, fields: dict[str, Any], code: int, info: str) -> None:
    given = {"uids": ["m1"], "until": format_iso(now_us() + HOUR_US), "reason": "why", **fields}
    answer = shared.ask("put_out_of_service", **given)
    assert (answer["code"], answer["info"].startswith(info)) == (code, True), answer
    assert out_of_service(shared) is None


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Platform]:
    with Platform(tmp_path_factory.mktemp("service") / "data") as started:
        prepare(started.login())
        yield started


@pytest.fixture
async def stand(tmp_path: Path, each_database: str) -> AsyncIterator[Stand]:
    async with watched_company(tmp_path) as made:
        yield made


@only_sqlite
async def test_rules_about_terminals_hold_still(stand: Stand, receiver: Receiver) -> None:
    records = OutOfServiceRecords(stand.database, stand.registry, clock=stand.clock)
    stand.registry.service_changes.listen(lambda uids: stand.watch.on_service(uids))
    first, other = await stand.terminals(2)
    await stand.rule(**AWAY, **receiver.hook)
    stand.connect(first, other)
    await stand.pass_minutes(1)
    until_us = stand.now + HOUR_US
    await records.put(stand.actor, [first], until_us=until_us, reason="a new pump")
    stand.disconnect(first, other)
    await stand.pass_minutes(30)
    (hook,) = await stand.told(receiver, 1)
    assert [each["terminal"] for each in hook["items"]] == [other]
    await stand.pass_minutes(31)
    await records.end_over()
    await stand.pass_minutes(1)
    (_, late) = await stand.told(receiver, 2)
    assert [each["terminal"] for each in late["items"]] == [first]
    await records.put(stand.actor, [first], until_us=stand.now + HOUR_US, reason="again")
    await stand.pass_minutes(1)
    still = stand.registry.terminal(other)
    assert still is not None
    assert [subject for _, subject in await stand.open_rows()] == [still.id]
