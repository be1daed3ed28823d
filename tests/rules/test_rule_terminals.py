"""Rules about terminals: one message when they go, one when they are back, whatever happens in between."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from rule_stand import Receiver
from watch_stand import Stand, watched_company

AWAY = {"kinds": ["offline", "back"], "minutes": 5, "back_minutes": 5}


@pytest.fixture
async def stand(tmp_path: Path, each_database: str) -> AsyncIterator[Stand]:
    async with watched_company(tmp_path) as made:
        yield made


only_sqlite = pytest.mark.parametrize("each_database", ["sqlite"], indirect=True)


@only_sqlite
async def test_a_sites_uplink_with_a_thousand_terminals_is_one_message_and_one_when_it_is_over(
    stand: Stand, receiver: Receiver
) -> None:
    uids = await stand.terminals(1_000, tag="north")
    await stand.rule(**AWAY, **receiver.hook)
    stand.connect(*uids)
    await stand.pass_minutes(30)
    assert receiver.hooks == []
    for start in range(0, 1_000, 50):  # the broker misses them one after the other, within a minute and a half
        stand.disconnect(*uids[start : start + 50])
        await stand.pass_minutes(0.075)
    await stand.pass_minutes(20)
    (hook,) = await stand.told(receiver, 1)
    assert hook["kinds"] == {"offline": 1_000}
    assert hook["summary"] == ("1,000 terminals offline: Pump t0001, Pump t0002, Pump t0003 and 997 more (tag north)")
    assert (hook["count"], len(hook["items"]), hook["shared"]) == (1_000, 100, ["tag north"])
    first = hook["items"][0]
    assert (first["terminal"], first["object"], first["label"]) == ("t0001", "Pump t0001", "offline")
    assert len(await stand.open_rows()) == 1_000
    for start in range(0, 1_000, 50):
        stand.connect(*uids[start : start + 50])
        await stand.pass_minutes(0.075)
    await stand.pass_minutes(20)
    (_, back) = await stand.told(receiver, 2)
    assert (back["kinds"], back["count"]) == ({"back": 1_000}, 1_000)
    assert await stand.open_rows() == []


async def test_a_platform_that_was_away_for_ten_minutes_says_so_once(stand: Stand, receiver: Receiver) -> None:
    uids = await stand.terminals(100)
    await stand.rule(**AWAY, **receiver.hook)
    stand.connect(*uids)
    await stand.pass_minutes(10)
    await stand.end()
    stand.now += 600_000_000
    await stand.begin()
    await stand.pass_minutes(2)
    stand.connect(*uids[:99])  # within the minutes of the rule, which count from when the platform listens
    await stand.pass_minutes(20)
    outage, offline = await stand.told(receiver, 2)
    assert outage["kinds"] == {"outage": 1}
    assert (outage["items"][0]["object"], outage["items"][0]["value"]) == ("Terrazzo", "for 10 min")
    assert offline["kinds"] == {"offline": 1}, "the one that did not come back is not the platform's fault"
    assert offline["items"][0]["terminal"] == "t0100"


@only_sqlite
async def test_a_terminal_that_flaps_is_one_message_and_one_when_it_is_quiet(stand: Stand, receiver: Receiver) -> None:
    (uid,) = await stand.terminals(1)
    await stand.rule(**AWAY, **receiver.hook)
    for _ in range(20):
        stand.connect(uid)
        await stand.pass_minutes(3)
        stand.disconnect(uid)
        await stand.pass_minutes(6)
    (hook,) = await stand.told(receiver, 1)
    assert hook["kinds"] == {"offline": 1}
    stand.connect(uid)
    await stand.pass_minutes(4)
    await stand.told(receiver, 1)
    await stand.pass_minutes(30)
    (_, back) = await stand.told(receiver, 2)
    assert back["kinds"] == {"back": 1}
    assert back["items"][0]["value"].startswith("was offline for 3 h")


async def test_a_restart_in_the_middle_tells_nothing_twice_and_forgets_nothing(
    stand: Stand, receiver: Receiver
) -> None:
    one, two = await stand.terminals(2)
    await stand.rule(**AWAY, **receiver.hook)
    stand.connect(one, two)
    stand.disconnect(one)
    await stand.pass_minutes(5.5)  # it is noted, and waits for others that may go, too
    assert [kind for kind, _ in await stand.open_rows()] == ["offline"]
    assert receiver.hooks == []
    await stand.end()
    await stand.begin()
    stand.connect(two)
    await stand.pass_minutes(20)
    (hook,) = await stand.told(receiver, 1)
    assert [item["terminal"] for item in hook["items"]] == [one]
    await stand.end()
    await stand.begin()
    stand.connect(one, two)
    await stand.pass_minutes(20)
    (_, back) = await stand.told(receiver, 2)
    assert [(item["kind"], item["terminal"]) for item in back["items"]] == [("back", one)]
    assert await stand.open_rows() == []


@only_sqlite
async def test_who_is_connected_and_says_nothing_is_silent(stand: Stand, receiver: Receiver) -> None:
    one, two = await stand.terminals(2)
    await stand.rule(kinds=["silent", "back"], minutes=10, back_minutes=1, **receiver.hook)
    stand.connect(one, two)
    for _ in range(6):
        stand.report(one)
        stand.hear(two)
        await stand.pass_minutes(5)
    (hook,) = await stand.told(receiver, 1)
    assert [(item["kind"], item["terminal"]) for item in hook["items"]] == [("silent", two)]
    for _ in range(6):
        stand.report(one, two)
        await stand.pass_minutes(5)
    (_, back) = await stand.told(receiver, 2)
    assert [(item["kind"], item["terminal"]) for item in back["items"]] == [("back", two)]


@only_sqlite
async def test_a_routed_terminal_is_there_as_long_as_it_reports(stand: Stand, receiver: Receiver) -> None:
    one, two = await stand.terminals(2)
    await stand.rule(**AWAY, **receiver.hook)
    stand.connect(one)
    for _ in range(10):
        stand.report(two)  # by the connection of the other one
        await stand.pass_minutes(4)
    assert receiver.hooks == []
    await stand.pass_minutes(10)
    (hook,) = await stand.told(receiver, 1)
    assert [(item["kind"], item["terminal"]) for item in hook["items"]] == [("offline", two)]
    for _ in range(5):
        stand.report(two)
        await stand.pass_minutes(4)
    (_, back) = await stand.told(receiver, 2)
    assert back["kinds"] == {"back": 1}


@only_sqlite
async def test_who_has_never_been_here_is_not_missed_unless_it_is_named(stand: Stand, receiver: Receiver) -> None:
    uids = await stand.terminals(3)
    for uid in uids:
        terminal = stand.registry.terminal(uid)
        assert terminal is not None
        stand.registry.put_terminal(_changed(terminal, activated_us=None))
    await stand.rule(**AWAY, **receiver.hook)
    await stand.pass_minutes(30)
    assert receiver.hooks == []
    await stand.rule(**AWAY, terminal_list=[uids[1]], **receiver.hook)
    await stand.pass_minutes(30)
    (hook,) = await stand.told(receiver, 1)
    assert [item["terminal"] for item in hook["items"]] == [uids[1]]


def _changed(terminal: Any, **values: Any) -> Any:
    import msgspec

    return msgspec.structs.replace(terminal, **values)
