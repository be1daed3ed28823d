"""A notice: something that a rule has to tell of, an event, a label, a terminal, an object or the platform itself."""

from __future__ import annotations

from typing import Any

import msgspec

from terrazzo.domain.happened import Happened
from terrazzo.metadata.definitions.rules import BACK, HAPPENINGS, OUTAGE
from terrazzo.rules.rule import Rule

WAITING, TOLD, DONE = "waiting", "told", "done"
"""States of a notice: not told yet; told, and to be repeated while it is open; nothing more to tell."""

MISSED = "missed"
"""The kind of notices that a schedule's times have passed without the platform."""

_MOMENTS = {"event": "created", "opened": "opened_at", "closed": "close_at"}

WORDS = {
    "offline": "offline",
    "silent": "silent",
    "refused": "refused",
    "clock_off": "clock off",
    "object_offline": "offline",
    "object_silent": "silent",
    BACK: "back",
    OUTAGE: "the platform was away",
    MISSED: "times of the schedule were missed",
}


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A row of ``rule_notice``: what happened, and how often it was told.

    ``record_id`` is that of the event, label, terminal or object.
    """

    id: int
    rule_id: int
    kind: str
    record_id: int
    object_id: int
    code: str
    label: str
    value: str
    time_us: int
    told: int  # times, the present one too

    @property
    def is_happening(self) -> bool:
        """Whether it is about an event or label."""
        return self.kind in HAPPENINGS


def notice_row(rule: Rule, happened: Happened, now: int) -> dict[str, Any]:
    """The values of a new row of ``rule_notice``; ``now`` in UTC microseconds."""
    row = happened.row
    return {
        "company_id": rule.company_id,
        "rule_id": rule.id,
        "kind": happened.kind,
        "record_id": row["id"],
        "object_id": row["object_id"],
        "code": row["code"],
        "label": row["label_en"] or row["label_cn"] or row["code"],
        "value": row["value"],
        "time_us": row[_MOMENTS[happened.kind]],
        "state": WAITING,
        "told": 0,
        "noted_us": now,
    }


def condition_notice(
    rule: Rule,
    kind: str,
    *,
    record_id: int,
    object_id: int,
    code: str,
    text: str,
    since_us: int,
    until_us: int,
    now: int,
) -> dict[str, Any]:
    """The values of a new row about a terminal, an object or the platform; times in UTC microseconds.

    Args:
        kind: one of the kinds of rules.
        text: why; of the end of a condition, which it was. Empty: how long it has been.
        since_us, until_us: from when to when.
    """
    length = length_text(until_us - since_us)
    value = f"was {WORDS[text]} for {length}" if kind == BACK else text or f"for {length}"
    return {
        "company_id": rule.company_id,
        "rule_id": rule.id,
        "kind": kind,
        "record_id": record_id,
        "object_id": object_id,
        "code": code,
        "label": WORDS[kind],
        "value": value,
        "time_us": until_us if kind == BACK else since_us,
        "state": WAITING,
        "told": 0,
        "noted_us": now,
    }


def length_text(length_us: int) -> str:
    """A length of time in words, to the minute."""
    minutes = max(length_us, 0) // 60_000_000
    days, hours = minutes // 1_440, minutes // 60 % 24
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else "less than a minute"
