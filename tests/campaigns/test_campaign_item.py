"""A campaign's terminals and waves, without a platform: every transition with its times and reasons."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.campaigns.terminal_reports import reported_version, upgrade_notice
from terrazzo.domain.campaigns.item import Item, ItemState, Terms, UpgradeNotice
from terrazzo.domain.campaigns.rollout import CampaignState, Limits, Rollout
from terrazzo.domain.campaigns.waves import check_waves, wave_numbers
from terrazzo.domain.command import CommandState

TERMS = Terms(unit="LUA", version="3.0", retries=1, timeout_us=100)


def sent(now_us: int = 10) -> Item:
    item = Item(terminal_id="t", wave=1)
    item.give("a")
    item.on_step("a", CommandState.SENT, "", terms=TERMS, now_us=now_us)
    return item


def test_the_way_to_done() -> None:
    item = sent()
    assert (item.state, item.sent_us, item.deadline_us) == (ItemState.SENT, 10, None)
    item.on_step("a", CommandState.DELIVERED, "", terms=TERMS, now_us=20)
    assert item.deadline_us == 120
    item.on_notice(UpgradeNotice(True, ""), terms=TERMS, now_us=30)
    assert (item.state, item.downloading_us, item.deadline_us) == (ItemState.DOWNLOADING, 30, 130)
    item.on_version("2.0", terms=TERMS, now_us=40)
    assert item.state is ItemState.DOWNLOADING
    item.on_version("3.0", terms=TERMS, now_us=50)
    assert (item.state, item.ended_us, item.version, item.attempts) == (ItemState.DONE, 50, "3.0", 1)
    item.on_version("2.0", terms=TERMS, now_us=60)
    assert (item.state, item.version) == (ItemState.DONE, "3.0")


def test_one_that_has_the_version_is_done_without_a_command() -> None:
    item = Item(terminal_id="t", wave=1)
    item.on_version("3.0", terms=TERMS, now_us=5)
    assert (item.state, item.attempts, item.reason) == (ItemState.DONE, 0, "had the version already")


@pytest.mark.parametrize("state", [CommandState.EXPIRED, CommandState.FAILED])
def test_a_command_that_comes_to_nothing_is_given_again_and_then_never(state: CommandState) -> None:
    item = sent()
    item.on_step("a", state, "why", terms=TERMS, now_us=20)
    assert (item.state, item.is_waiting, item.reason, item.sent_us) == (ItemState.PENDING, True, "why", None)
    item.give("b")
    item.on_step("a", CommandState.SENT, "", terms=TERMS, now_us=25)
    assert item.state is ItemState.PENDING, "the step of an older command"
    item.on_step("b", state, "why not", terms=TERMS, now_us=30)
    assert (item.state, item.reason, item.ended_us, item.failures) == (ItemState.FAILED, "why not", 30, 2)


def test_a_power_cut_is_seen_by_the_version_after_the_reconnect() -> None:
    item = sent()
    item.on_reconnect()
    assert item.state is ItemState.SENT
    item.on_version("2.0", terms=TERMS, now_us=30)
    assert (item.state, item.reason) == (ItemState.PENDING, "came back with version 2.0")


def test_time_ends_an_attempt_only_after_its_delivery() -> None:
    item = sent()
    item.check_time(terms=TERMS, now_us=10_000)
    assert item.state is ItemState.SENT
    item.on_step("a", CommandState.DELIVERED, "", terms=TERMS, now_us=20)
    item.check_time(terms=TERMS, now_us=119)
    assert item.state is ItemState.SENT
    item.check_time(terms=TERMS, now_us=120)
    assert (item.state, item.failures) == (ItemState.PENDING, 1)


def test_a_terminal_is_heard_before_the_journal() -> None:
    item = Item(terminal_id="t", wave=1)
    item.on_notice(UpgradeNotice(False, "no"), terms=TERMS, now_us=1)
    assert item.failures == 0, "it was told nothing"
    item.give("a")
    item.on_download(terms=TERMS, now_us=2)
    item.on_step("a", CommandState.SENT, "", terms=TERMS, now_us=3)
    assert (item.state, item.sent_us, item.downloading_us) == (ItemState.DOWNLOADING, 2, 2)


@pytest.mark.parametrize(
    ("points", "version"),
    [
        ({"lua_version": "3.0"}, "3.0"),
        ({"LUA_Version": 3.5}, "3.5"),
        ({"Unit": "lua", "Version": "3.0"}, "3.0"),
        ({"Unit": "MCU", "Version": "3.0"}, None),
        ({"mcu_version": "3.0", "Version": "3.0"}, None),
        ({"lua_version": True}, None),
    ],
)
def test_which_names_say_a_version(points: dict[str, object], version: str | None) -> None:
    assert reported_version(points, "LUA") == version


def test_which_notices_are_about_the_upgrade() -> None:
    failed = {"Act": "AXUpgrade", "Unit": "LUA", "Result": "failed", "Reason": "checksum"}
    assert upgrade_notice(failed, "LUA") == UpgradeNotice(False, "checksum")
    assert upgrade_notice({"Act": "AXUpgrade", "Result": "ok"}, "LUA") == UpgradeNotice(True, "")
    for other in (failed | {"Unit": "MCU"}, {"Act": "Diag", "Result": "ok"}, {"Act": "AXUpgrade", "Result": "busy"}):
        assert upgrade_notice(other, "LUA") is None


def rollout(states: str, *, waves: str = "", **limits: int) -> Rollout:
    """A terminal for each letter: p, s, d, f."""
    meaning = {"p": ItemState.PENDING, "s": ItemState.SENT, "d": ItemState.DONE, "f": ItemState.FAILED}
    numbers = [int(number) for number in waves or "1" * len(states)]
    items = [
        Item(terminal_id=str(at), wave=wave, state=meaning[letter])
        for at, (letter, wave) in enumerate(zip(states, numbers, strict=True))
    ]
    given = {"failure_percent": 20, "failure_minimum": 2} | limits
    found = Rollout(
        id=1, company_id=1, file="f", created_by=1, terms=TERMS, limits=Limits(**given),
        state=CampaignState.RUNNING, wave=1,
    )  # fmt: skip
    found.places.add(items)
    return found


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ("pppp", None),
        ("dddd", CampaignState.DONE),
        ("dddf", CampaignState.DONE),
        ("fppp", None),  # one failure is below the minimum
        ("ffpp", CampaignState.ABORTED),
        ("ff" + "d" * 8 + "p", CampaignState.ABORTED),  # 2 of 10
        ("ff" + "d" * 9 + "p", None),  # 2 of 11
        ("ffff", CampaignState.DONE),  # nobody is left to be spared
    ],
)
def test_when_a_campaign_ends(states: str, expected: CampaignState | None) -> None:
    verdict = rollout(states).verdict()
    assert (None if verdict is None else verdict.state) is expected


def test_a_wave_begins_when_all_before_have_ended() -> None:
    one = rollout("dspp", waves="1122")
    assert not one.open_wave()
    for _ in range(2):
        one.items["1"].fail("no", terms=TERMS, now_us=5)
    assert list(one.due()) == []
    assert one.open_wave()
    assert [item.terminal_id for item in one.due()] == ["2", "3"]


def test_an_aborted_campaign_is_over_when_nobody_is_under_way() -> None:
    one = rollout("dsp")
    one.abort("why")
    assert not one.is_over
    assert not one.explain(10)
    assert one.items["2"].reason == "why"
    one.items["1"].fail("late", terms=one.terms, now_us=5)
    assert (one.items["1"].state, one.is_over) == (ItemState.FAILED, True)


@given(st.integers(1, 300), st.lists(st.integers(1, 99), min_size=1, max_size=8))
def test_waves_take_everybody_in_order(count: int, shares: list[int]) -> None:
    waves = [share * 100 // sum(shares) for share in shares]
    waves = [share for share in waves if share] or [100]
    waves[-1] += 100 - sum(waves)
    check_waves(waves)
    numbers = wave_numbers(count, waves)
    assert len(numbers) == count
    assert numbers == sorted(numbers)
    assert numbers[0] == 1
    for wave in range(1, len(waves) + 1):
        share = sum(waves[:wave])
        assert sum(number <= wave for number in numbers) == -(-count * share // 100)


@pytest.mark.parametrize(
    ("waves", "reason"),
    [
        ([], "expected an array of 1 to 20"),
        ([50, 49], "add up to 99"),
        ([0, 100], "element 1: expected a whole per cent"),
        ([50, 50.0], "element 2: expected a whole per cent"),
        ([True, 99], "element 1"),
        ({"a": 1}, "expected an array"),
    ],
)
def test_waves_that_are_none(waves: object, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        check_waves(waves)
