"""Quiet hours on a running platform: what happens meanwhile is told when they end, as one message."""

from __future__ import annotations

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from rule_stand import Receiver, add_rule, open_notices, report

from running import Platform, wait_for

ZONE = ZoneInfo("Asia/Kathmandu")  # of the platform; no zone of whole hours


def only(database: str) -> pytest.MarkDecorator:
    """For tests that take their time: the other kind of database has another of them."""
    return pytest.mark.parametrize("each_database", [database], indirect=True)


def hours(begin_h: int, end_h: int) -> dict[str, str]:
    """Quiet hours that begin and end so many hours from now, to the minute."""
    now = datetime.now(ZONE)
    names = {"quiet_start": begin_h, "quiet_end": end_h}
    return {name: f"{now + timedelta(hours=away_h):%H:%M}" for name, away_h in names.items()}


def now_quiet() -> dict[str, str]:
    return hours(-2, 2)


def quiet_later() -> dict[str, str]:
    return hours(2, 4)


def test_what_happens_in_quiet_hours_is_told_as_one_when_they_end(platform: Platform, receiver: Receiver) -> None:
    everything = {"kinds": ["event", "opened", "closed"], "window_s": 0, **receiver.hook}
    add_rule(platform, name="loud", **everything)
    quiet = add_rule(platform, name="quiet", **everything, **now_quiet())
    report(platform, {"t": 90, "run": 1}, {"t": 70}, {"t": 91, "run": 0}, {"t": 70}, {"t": 92})
    wait_for(lambda: receiver.told("loud") == 5, "a rule without quiet hours has told")
    assert open_notices(platform) == [(kind, "waiting") for kind in ("closed", "event", "event", "event", "opened")]
    platform.call("update_rule", uid=quiet, description="still quiet", **now_quiet())
    report(platform, {"t": 70}, {"t": 93})
    wait_for(lambda: receiver.told("loud") == 6, "the other rule has told once more")
    assert receiver.of("quiet") == []
    platform.call("update_rule", uid=quiet, **quiet_later())
    wait_for(lambda: receiver.of("quiet"), "the quiet hours are over")
    (hook,) = receiver.of("quiet")
    assert (hook["count"], hook["reminder"]) == (6, 0)
    told = [(item["kind"], item["value"]) for item in hook["items"]]
    assert [value for kind, value in told if kind == "event"] == ["90", "91", "92", "93"]
    assert sorted(kind for kind, _ in told) == ["closed", *["event"] * 4, "opened"]
    assert open_notices(platform) == []
    report(platform, {"t": 70}, {"t": 94})
    wait_for(lambda: len(receiver.of("quiet")) == 2, "the next one is told at once")
    assert [item["value"] for item in receiver.of("quiet")[1]["items"]] == ["94"]
    assert receiver.faults == []


@only("sqlite")
def test_a_label_that_opens_in_quiet_hours_is_told_after_a_restart(platform: Platform, receiver: Receiver) -> None:
    label = add_rule(platform, kinds=["opened"], codes=["RUN"], window_s=3600, **receiver.hook, **now_quiet())
    report(platform, {"run": 1}, {"t": 90})
    wait_for(lambda: open_notices(platform) == [("opened", "waiting")], "the label waits, the event is nobody's")
    platform.kill()
    again = platform.again().login()
    try:
        loud = add_rule(again, kinds=["event"], channel="sms", recipients=["+1"], window_s=0)
        report(again, {"t": 70}, {"t": 90})
        wait_for(lambda: receiver.texts, "rules are followed again")
        assert receiver.hooks == []
        again.call("stop_rule", uid=loud)
        again.call("update_rule", uid=label, quiet_start="", quiet_end="")
        wait_for(lambda: receiver.hooks, "the rule has no quiet hours any more")
        assert [(hook["count"], hook["items"][0]["kind"]) for hook in receiver.hooks] == [(1, "opened")]
    finally:
        again.stop()


@only("postgresql")
def test_reminders_hold_their_tongue_too_also_over_a_restart(platform: Platform, receiver: Receiver) -> None:
    often = {"window_s": 0, "repeat_s": 1, "repeat_times": 1000}
    add_rule(platform, kinds=["event"], channel="sms", recipients=["+1"], **often)
    quiet = add_rule(platform, kinds=["event", "opened"], **receiver.hook, **often, **quiet_later())
    report(platform, {"t": 90, "run": 1})
    wait_for(lambda: any(hook["reminder"] for hook in receiver.hooks), "a reminder")
    platform.call("update_rule", uid=quiet, **now_quiet())
    others_remind(receiver, 1)  # one was perhaps on its way
    before = len(receiver.hooks)
    others_remind(receiver, 2)
    platform.kill()
    again = platform.again().login()
    try:
        others_remind(receiver, 2)
        assert len(receiver.hooks) == before, "it was to be quiet"
        again.call("update_rule", uid=quiet, **quiet_later())
        wait_for(lambda: len(receiver.hooks) > before, "it goes on")
        assert receiver.hooks[before]["reminder"] == receiver.hooks[before - 1]["reminder"] + 1
        again.call("acknowledge_event", id=again.call("get_event_list")["data"][0]["id"])
        wait_for(lambda: kinds_of(receiver) == ["opened"], "only the label is told again")
        report(again, {"run": 0})
        wait_for(lambda: open_notices(again) == [], "nothing is left to tell")
    finally:
        again.stop()


def others_remind(receiver: Receiver, count: int) -> None:
    """Until the rule without quiet hours has told so many times more."""
    before = len(receiver.texts)
    wait_for(lambda: len(receiver.texts) >= before + count, "the other rule reminds")


def kinds_of(receiver: Receiver) -> list[str]:
    """What the newest webhook is about."""
    return [item["kind"] for item in receiver.hooks[-1]["items"]]
