"""Rules without any I/O: what matches, when it is quiet, what is said."""

from __future__ import annotations

from datetime import UTC
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from terrazzo.domain.happened import Happened
from terrazzo.messenger.signature import sign
from terrazzo.metadata.definitions.rules import RULE
from terrazzo.metadata.repositories.repository import RowChange
from terrazzo.rules.message_text import Telling, compose
from terrazzo.rules.notice import Notice
from terrazzo.rules.quiet_hours import quiet_until_us
from terrazzo.rules.rule import ActiveRules, rule_of
from terrazzo.times import parse_time

BERLIN = ZoneInfo("Europe/Berlin")


def row(**values: Any) -> dict[str, Any]:
    defaults = {field.name: field.default for field in RULE.fields.values()}
    given = {"id": 1, "permission_company_id": 1, "name": "r", "kinds": ["event"], "channel": "email", "is_active": 1}
    return {**defaults, **given, "recipients": ["a@x"], **values}


def event(**values: Any) -> Happened:
    told = {"id": 5, "company_id": 1, "object_id": 7, "code": "HI", "label_en": "High", "label_cn": "", "value": "9"}
    return Happened(values.pop("kind", "event"), {**told, "created": 0, **values})


@pytest.mark.parametrize(
    ("rule", "happened", "is_told"),
    [
        ({}, {}, True),
        ({}, {"company_id": 2}, False),
        ({}, {"kind": "opened"}, False),
        ({"kinds": ["opened", "closed"]}, {"kind": "closed"}, True),
        ({"object_list": ["7", "8"]}, {}, True),
        ({"object_list": ["8"]}, {}, False),
        ({"codes": ["HI"]}, {}, True),
        ({"codes": ["LO"]}, {}, False),
        ({"severity": "major"}, {"severity": 4}, True),
        ({"severity": "major"}, {"severity": 3}, False),
        ({"severity": "major", "kinds": ["opened"]}, {"kind": "opened"}, True),
        ({"is_active": 0}, {}, False),
        ({"is_available": 0}, {}, False),
    ],
)
def test_what_matches(rule: dict[str, Any], happened: dict[str, Any], is_told: bool) -> None:
    active_rules = ActiveRules()
    active_rules.on_changed(RowChange(1, "u", row(**rule)))
    assert bool(active_rules.matching(event(**happened))) is is_told
    active_rules.on_changed(RowChange(1, "u", None))
    assert active_rules.matching(event(**happened)) == []


@pytest.mark.parametrize(
    ("now", "until"),
    [
        ("2026-03-01 21:59:59", "2026-03-01 21:59:59"),
        ("2026-03-01 22:00:00", "2026-03-02 06:00:00"),
        ("2026-03-02 05:59:59", "2026-03-02 06:00:00"),
        ("2026-03-02 06:00:00", "2026-03-02 06:00:00"),
        ("2026-03-28 23:00:00", "2026-03-29 06:00:00"),  # the clock is put forward in between
        ("2026-10-24 23:00:00", "2026-10-25 06:00:00"),  # and back
    ],
)
def test_quiet_hours(now: str, until: str) -> None:
    found = quiet_until_us(parse_time(now, BERLIN), "22:00", "06:00", BERLIN)
    assert found == parse_time(until, BERLIN)


@given(st.integers(0, 4_102_444_800_000_000), st.times(), st.times())
def test_quiet_hours_end_within_a_day_and_outside_them(now: int, start: Any, end: Any) -> None:
    begins, ends = f"{start:%H:%M}", f"{end:%H:%M}"
    until = quiet_until_us(now, begins, ends, BERLIN)
    assert now <= until <= now + 25 * 3_600_000_000
    assert quiet_until_us(until, begins, ends, BERLIN) == until


def notice(number: int) -> Notice:
    return Notice(
        id=number, rule_id=1, kind="event", record_id=number, object_id=7, code="HI", label="High", value=str(number),
        time_us=0, told=0,
    )  # fmt: skip


def test_a_storm_is_one_message_that_says_how_many() -> None:
    notices = [notice(number) for number in range(100)]
    told = Telling(notices, {each.id: "Tank" for each in notices}, {"event": 500})
    draft = compose(rule_of(row()), told, zone=UTC)
    assert draft.content["EmailSubject"] == "Tank: High (+499)"
    lines = draft.content["EmailContent"].splitlines()
    assert lines[0] == "Tank: High (HI) = 0 at 1970-01-01 00:00:00"
    assert (len(lines), lines[-1]) == (21, "... and 480 more")
    webhook = compose(rule_of(row(channel="webhook")), told._replace(reminder=2), zone=UTC)
    assert (webhook.content["count"], webhook.content["reminder"], len(webhook.content["items"])) == (500, 2, 100)


@pytest.mark.parametrize("channel", ["email", "sms", "android", "ios", "wechat"])
def test_each_channel_says_what_happened(channel: str) -> None:
    draft = compose(rule_of(row(channel=channel)), Telling([notice(3)], {3: "Tank"}, {"event": 1}, (), 1), zone=UTC)
    text = str(draft.content)
    assert "Reminder 1: " in text
    assert "Tank: High (HI) = 3" in text


def test_the_signature_is_as_documented() -> None:
    """Made with: printf '1700000000.{}' | openssl dgst -sha256 -hmac 0123456789abcdef"""
    import subprocess

    made = subprocess.run(
        ["openssl", "dgst", "-sha256", "-hmac", "0123456789abcdef"],
        input=b"1700000000.{}",
        capture_output=True,
        check=True,
    )
    assert sign(b"{}", "0123456789abcdef", time_s=1_700_000_000) == made.stdout.decode().split()[-1]
